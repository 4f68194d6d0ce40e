"""Links between machines that are made again when they are cut.  Knows TLS and hellos; no frames, no rounds.

Who called calls again, and shows the same certificate.  Its hello says which link it goes on with, by the names that
both ends drew for it when they met, and how many bytes it has received; the answer says the same of the other side.
So nobody else takes a link over, and a peer that was started anew, whose end has another name, goes on with none:
then, and when the time of grace is over, the link has ended.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping

from ..errors import MaskedError
from . import hello
from .caller import Caller
from .door import Door, through
from .frames import Nodes
from .gathering import Callers
from .links import Link
from .member import Log, Member, Met
from .transport import DEFAULT_TIMEOUT, check_timeout

_LOOK = 0.1  # seconds between two looks after all links
_ANSWER = 5.0  # seconds that one call may take


def meet_lasting(
    member: Member, listener: socket.socket | None, *, grace: float, timeout: float = DEFAULT_TIMEOUT,
    starting: float | None = None, log: Log = lambda _: None,
) -> Met:  # fmt: skip
    """As `tls.meet`, but that links with those that this node computes with are made again when they are cut.

    grace: seconds in which that must be done.  listener: of one that is called; it is open as long as the links are.
    """
    check_timeout(grace)
    check_timeout(timeout)
    seconds = timeout if starting is None else starting
    try:
        door = Door(member, seconds, log)
        met = dict(through(door, listener, seconds))
        links = {node: Link(met[node], door.lives[node]) for node in member.computed_with}
    except BaseException:
        if listener is not None:
            listener.close()
        raise
    Keeper(member, links, listener, door.life, grace, log).start()
    return {**met, **links}  # type: ignore[dict-item]


class Keeper(threading.Thread):
    """Looks after the links of one node until all are closed.  life: this node's name for its ends of them."""

    def __init__(
        self, member: Member, links: Mapping[int, Link], listener: socket.socket | None, life: str, grace: float,
        log: Log,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self._member, self._links, self._listener, self._grace, self._log = member, links, listener, grace, log
        self._door = Door(member, grace, log, life=life)
        self._names = Nodes(member.parties, member.names)
        self._calling = set[int]()
        self._said = set[int]()
        self._over = set[tuple[int, bool]]()
        self._callers = None
        if listener is not None:  # here, as all links may be closed, and it with them, before the thread runs
            listener.setblocking(False)
            self._callers = Callers(self._door, listener)
        for link in links.values():
            link.closed = self._let_go

    def _let_go(self) -> None:
        """Where the last link is closed, whoever calls from then on is not for these links."""
        if self._listener is not None and all(link.leaving for link in self._links.values()):
            self._listener.close()

    def run(self) -> None:
        """Until nobody needs it."""
        callers = self._callers
        with callers or contextlib.nullcontext(), self._listener or contextlib.nullcontext():
            while not all(link.ended or link.leaving for link in self._links.values()):
                if callers is None:
                    time.sleep(_LOOK)
                else:
                    for greeting, caller in callers.proved(_LOOK):
                        assert isinstance(greeting, Caller)
                        if not self._welcome(greeting, caller):
                            greeting.sock.close()
                for node, link in self._links.items():
                    self._look(node, link)
                self._tell_ended()

    def _tell_ended(self) -> None:
        """Whoever waits over another link hears that one has ended, or that its other side has."""
        ended = {
            (node, bool(link.ended))
            for node, link in self._links.items()
            if (link.ended or link.parted) and not link.leaving
        }
        if ended - self._over:
            self._over |= ended
            for link in self._links.values():
                link.wake()

    def _look(self, node: int, link: Link) -> None:
        link.look()
        since = link.down_since
        if since is None or link.ended or link.leaving:
            self._said.discard(node)
            return
        who = self._names.name(node)
        if time.monotonic() > since + self._grace:
            link.end(f"the link to {who} was cut, and not made again within {self._grace:g} s")
            return
        if node not in self._said:
            self._said.add(node)
            self._log(f"the link to {who} is cut: waiting up to {self._grace:g} s for it to be made again")
        if node in self._member.called and node not in self._calling:
            self._calling.add(node)
            threading.Thread(target=self._call, args=(node, link), daemon=True).start()

    def _call(self, node: int, link: Link) -> None:
        """Once; the next look calls again."""
        try:
            received = link.cut()
            sock, theirs = self._door.call_again(node, link.theirs, received, time.monotonic() + _ANSWER)
            if theirs.life != link.theirs or theirs.knows != self._door.life:
                sock.close()
                link.end(f"{self._names.name(node)} began anew")
            elif not link.install(sock, theirs.received):
                sock.close()
                link.end(f"the link to {self._names.name(node)} cannot go on where it was")
            else:
                self._log(f"the link to {self._names.name(node)} is made again")
        except OSError:
            time.sleep(_LOOK)
        except MaskedError as error:
            link.end(str(error))
        finally:
            self._calling.discard(node)

    def _welcome(self, greeting: Caller, caller: int) -> bool:
        """One who has proved its number goes on with its link, or is told why not."""
        said, link, who = greeting.said, self._links.get(caller), self._names.name(caller)
        assert said is not None
        if link is None or (link.ended and not link.over):
            return False  # it may call again when all meet again
        if why := hello.judge(self._member.hello(caller), said, who):
            self._door.turn_away(greeting, why)
            return False
        if not said.knows:
            if link.over:
                self._door.take_leave(greeting)
            link.end(f"{who} was started again")
            return False
        if link.ended:
            return False
        if (said.life, said.knows) != (link.theirs, self._door.life):
            self._door.turn_away(greeting, f"{who} goes on with a link of before")
            return False
        received = link.cut()
        try:
            self._door.greet_back(greeting, received, knows=link.theirs)
        except OSError:
            return False
        if not link.install(greeting.sock, max(0, said.received)):  # one that still meets has received nothing
            return False  # a call of before, whose connection is gone: there will be another
        self._log(f"the link to {who} is made again")
        return True

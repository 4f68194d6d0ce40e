"""How nodes of different machines meet: who calls, who is let in, who is turned away and why.  Knows no rounds.

An answerer lets in whoever shows the certificate of the number it claims, and a link is up only after a hello inside
the channel, which both sides have judged.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import ssl
import time
from collections.abc import Mapping
from functools import partial

from ..errors import ConfigError, Desync, PeerLost, RunOver
from . import hello
from .caller import Caller, place_of, reason, says_why
from .certificates import fingerprint
from .frames import HEADER_BYTES, WORDS_LIMIT, Kind, Nodes, pack, shown, unpack
from .gathering import Callers, Greeting, exactly, meet_by
from .hello import Hello
from .member import Log, Member
from .transport import Stamp, check_timeout
from .tuning import prepare

_START, _OVER = Stamp(0, bytes(8), "joining"), Stamp(0, bytes(8), "the start is over")
_ATTEMPT = 20.0  # seconds that one call may take
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # between two calls
_LAST_WORDS = 10.0  # seconds in which who ends a start says why to those that call still
_READ_OUT = 1.0  # seconds in which what another still says is read, before its link is closed
_REMIND = 5.0  # seconds after which it is said again who is missing
_SILENT = "has not called"
_REFUSED = 1000  # lines; of more that are refused nothing is said


class StartOver(ConfigError):
    """Two disagree on what is public, which ends the start for all.  words: why, as all hear it."""

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words


def through(door: Door, listener: socket.socket | None, seconds: float) -> dict[int, socket.socket]:
    """Meet through a door, which knows whom it let in, and who is missing."""
    check_timeout(seconds)
    deadline = time.monotonic() + seconds
    to = {other: partial(door.call, other, deadline) for other in door.member.called}
    try:
        links = meet_by(door, to, listener, door.member.awaited, deadline)
    except StartOver as over:
        if listener is not None:
            _tell_callers(door, listener, over, min(deadline, time.monotonic() + _LAST_WORDS))
        raise
    finally:
        door.over = True
    for node in links.keys() & door.missing.keys():  # it waits for others still
        links.pop(node).close()
    return links


def _tell_callers(door: Door, listener: socket.socket, over: StartOver, until: float) -> None:
    """Those who have not called yet hear why nobody is here from now on, where they call soon."""
    unaware = set(door.member.awaited) - door.aware
    if unaware:
        door.say(f"{over}; those who call in the next {_LAST_WORDS:.0f} s hear it")
    with Callers(door, listener) as callers:
        while unaware and time.monotonic() < until:
            for greeting, caller in callers.proved(_PAUSE):
                assert isinstance(greeting, Caller)
                door.turn_away(greeting, over.words, _OVER)
                greeting.sock.close()
                unaware.discard(caller)


class Door:
    """One node's side of all its meetings.  over: nobody is called any more.  missing: who is, by number, and why.
    life, lives: names of ends of links.  aware: who knows why the start is over, where it is.

    Who has met all says so to each, and the meeting is over when all have said it: until then whoever leaves is met
    again, and all wait for it.  Who has not says whom it waits for, as a client has no link with other clients.
    """

    def __init__(self, member: Member, seconds: float, log: Log, *, some: bool = False, life: str = "") -> None:
        member.check()
        self.over, self.some, self._until = False, some, time.monotonic() + seconds
        self.member, self.life, self.lives = member, life or secrets.token_hex(8), dict[int, str]()
        self._member, self._seconds, self._log = member, seconds, log
        self._nodes = Nodes(member.parties, member.names)
        self.missing = dict.fromkeys(member.called, "does not answer yet")
        self.missing |= dict.fromkeys(member.awaited, _SILENT)
        self._of = {member.peers[other].certificate.fingerprint: other for other in member.awaited}
        self._lets_in = member.context(member.awaited, ssl.PROTOCOL_TLS_SERVER) if member.awaited else None
        self._calls = {other: member.context([other], ssl.PROTOCOL_TLS_CLIENT) for other in member.called}
        self._unproven = set[int]()  # called, and TLS said why not
        self._again, self._count = time.monotonic() + _REMIND / 2, 0
        self._tells, self._waits = time.monotonic() + _REMIND / 2, dict[int, str]()  # for whom those wait that were met
        self._heard: dict[socket.socket, bytes] = {}  # of a header, until it is that all were met
        self._told = set[socket.socket]()  # that this node has met all
        self.say, self.aware = log, set[int]()

    def call(self, other: int, deadline: float) -> socket.socket:
        """A connection to a node that may not listen yet, and that has proved who it is."""
        address, pause = self._member.peers[other].address, _PAUSE
        assert address is not None
        while True:
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise TimeoutError
                raw = socket.create_connection(address, timeout=min(left, _ATTEMPT))
                own = self._member.hello(
                    other, life=self.life, knows=self.lives.get(other, ""), received=hello.MEETING
                )  # fmt: skip
                sock, theirs = self._introduced(raw, other, min(deadline, time.monotonic() + _ATTEMPT), own)
                self.lives[other] = theirs.life
                if theirs.knows == self.life:
                    self._goes_on(sock)  # what it said of this was lost
                self.missing.pop(other, None)
                return sock
            except (ConfigError, Desync, RunOver) as error:  # it is there, and to call it again would change nothing
                if not self.some:
                    raise
                self.missing[other] = str(error)
                raise self.overdue({other}, "") from error
            except OSError as error:
                if left > 0 and not (self.some and other in self._unproven and not says_why(error)):
                    self.missing[other] = f"{address[0]}:{address[1]} {reason(error)}"
                if says_why(error):
                    self._unproven.add(other)
                if self.over or time.monotonic() + pause > deadline:
                    raise self.overdue({other}, "") from error
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def call_again(
        self, other: int, knows: str, received: int, deadline: float
    ) -> tuple[socket.socket, Hello]:  # fmt: skip
        """Once, a node that is to go on with a link."""
        address = self._member.peers[other].address
        assert address is not None
        raw = socket.create_connection(address, timeout=max(0.1, deadline - time.monotonic()))
        own = self._member.hello(other, life=self.life, knows=knows, received=received)
        return self._introduced(raw, other, deadline, own)

    def _introduced(
        self, raw: socket.socket, other: int, deadline: float, own: Hello
    ) -> tuple[socket.socket, Hello]:  # fmt: skip
        """Over a connection to a listener: OSError where it is a stranger, ConfigError where a peer does not agree."""
        who, sock = self._nodes.name(other), raw
        try:
            prepare(raw)
            sock = self._calls[other].wrap_socket(raw)
            self._check_shown(sock, other)
            words = own.pack()
            sock.sendall(pack(Kind.HELLO, self._member.node, _START, len(words)) + words)
            header = unpack(exactly(sock, HEADER_BYTES, deadline), other, self._nodes)
            if header.kind is Kind.ABORT:
                text = exactly(sock, min(header.length, WORDS_LIMIT), deadline).decode(errors="replace")
                if header.position == _OVER.position:
                    raise self._over(other, text)
                raise ConfigError(f"{who} turned this process away: {hello.shown(text, quoted=False)}")
            if header.kind is Kind.BYE:
                raise RunOver(f"{who} has come to its end and wants nobody any more: this run is over")
            if header.kind is not Kind.HELLO or header.length > hello.LIMIT:
                raise ConfigError(f"{who} does not greet: run the same release everywhere")
            theirs = Hello.unpack(exactly(sock, header.length, deadline))
            why = hello.judge(own, theirs, who)
            if not why and (why := hello.disagreement(own, theirs, who)):
                raise self._ends(other, why)
            if why or theirs.echo != own.nonce:
                raise ConfigError(why or f"{who} answers another hello than this one")
            return sock, theirs
        except BaseException:
            sock.close()
            raise

    def _check_shown(self, sock: socket.socket, other: int) -> None:
        assert isinstance(sock, ssl.SSLSocket)
        if fingerprint(sock.getpeercert(True) or b"") != self._member.peers[other].certificate.fingerprint:
            raise ConnectionError(f"shows a certificate that is not {self._nodes.name(other)}'s")

    def greet(self, sock: socket.socket) -> Greeting:
        """Who called is to show a certificate first; where none is awaited, who calls is none of this session."""
        if self._lets_in is None:
            self._refuse(place_of(sock), "no node calls this one")
            raise ConnectionError
        prepare(sock)
        return Caller(self._lets_in, sock, self._of, self._nodes)

    def answer(self, greeting: Greeting, *, awaited: bool) -> str:
        """Welcome a caller, or say why not.  One of this session that disagrees on what is public ends it for all."""
        assert isinstance(greeting, Caller) and greeting.claims is not None and greeting.said is not None
        caller, who = greeting.claims, self._nodes.name(greeting.claims)
        said, met = greeting.said, self.lives.get(caller)
        has_met_all = bool(said.knows) and said.received != hello.MEETING
        goes_on = has_met_all and (said.life, said.knows, said.received) == (met, self.life, 0)
        own = self._member.hello(caller, echo=said.nonce, life=self.life, knows=said.life if goes_on else "")
        why = hello.judge(own, said, who)  # one that is there already takes its own place: it began anew
        if not why and has_met_all and not goes_on:
            why = f"{who} goes on with a link, and all meet anew here"
        if why:
            if self.some:
                self.missing[caller] = why
            self.turn_away(greeting, why)
            return why
        with contextlib.suppress(OSError):
            self._reply(greeting, Kind.HELLO, own.pack())
        if why := hello.disagreement(own, greeting.said, who):
            if not self.some:
                raise self._ends(caller, f"{why}: agree on one, and start again")
            self.missing[caller] = why
            return why
        if goes_on:
            self._goes_on(greeting.sock)
        self.lives[caller] = said.life
        self.missing.pop(caller, None)
        return ""

    def greet_back(self, greeting: Caller, received: int, *, knows: str) -> None:
        """To a caller that goes on with a link: how much of it came here."""
        assert greeting.claims is not None and greeting.said is not None
        own = self._member.hello(
            greeting.claims, echo=greeting.said.nonce, life=self.life, knows=knows, received=received
        )
        self._reply(greeting, Kind.HELLO, own.pack())

    def take_leave(self, greeting: Caller) -> None:
        """Of a caller that comes when this node has come to its end."""
        with contextlib.suppress(OSError):
            self._reply(greeting, Kind.BYE, b"")

    def turn_away(self, greeting: Caller, why: str, stamp: Stamp = _START) -> None:
        """Say why, here and to the caller, who may go on at once: then it is said already."""
        self._refuse(greeting.place, why)
        with contextlib.suppress(OSError):
            self._reply(greeting, Kind.ABORT, why.encode()[:WORDS_LIMIT], stamp)

    def _reply(self, greeting: Caller, kind: Kind, words: bytes, stamp: Stamp = _START) -> None:
        greeting.sock.settimeout(_ATTEMPT)
        greeting.sock.sendall(pack(kind, self._member.node, stamp, len(words)) + words)

    def _ends(self, other: int, why: str) -> StartOver:
        """This node found that another disagrees, which knows it too."""
        self.aware.add(other)
        return StartOver(why, f"{self._nodes.name(self._member.node)} has ended: {why}")

    def _over(self, other: int, text: str) -> StartOver:
        """Another node says why."""
        self.aware.add(other)
        words = shown(text)  # whole: both values stand in it
        return StartOver(f"the start is over for all: {words}", words)

    def ended(self, error: BaseException, found: Mapping[int, socket.socket]) -> None:
        """Those that were met hear why this node leaves, where that ends the start for all; one of its own does not."""
        if not isinstance(error, StartOver):
            return
        words = error.words.encode()[:WORDS_LIMIT]
        for node, sock in found.items():
            if node in self.aware:
                continue
            with contextlib.suppress(OSError):  # it has left
                sock.settimeout(_PAUSE)
                sock.sendall(pack(Kind.ABORT, self._member.node, _OVER, len(words)) + words)
                self.aware.add(node)
                until = time.monotonic() + _READ_OUT
                while (
                    sock.recv(HEADER_BYTES) and time.monotonic() < until
                ):  # what is unread would take back what was said
                    pass

    def refused(self, greeting: Greeting, why: Exception) -> None:
        """Say that somebody was turned away, and why."""
        assert isinstance(greeting, Caller)
        self._refuse(greeting.place, reason(why))
        if self.some:  # it may have been any of those who have not called
            silent = [node for node, known in self.missing.items() if known.startswith(_SILENT)]
            self.missing |= dict.fromkeys(silent, f"{_SILENT}; somebody at {greeting.place} was refused: {reason(why)}")

    def _refuse(self, place: str, why: str) -> None:
        self._count += 1
        if self._count <= _REFUSED:
            more = "; of others nothing is said from here on" if self._count == _REFUSED else ""
            self._log(f"refused {place}: {why}{more}")

    def look(self) -> None:
        """Say every now and then who is missing."""
        if time.monotonic() >= self._again:
            self._again = time.monotonic() + _REMIND
            self._log(f"waiting for {self._list()}")

    def gathered(self, found: Mapping[int, socket.socket]) -> bool:
        """Whether all have met all, as far as each has said so to this node."""
        over = self.some and time.monotonic() > self._until
        if not over and (absent := {*self._member.called, *self._member.awaited} - found.keys()):
            for node, sock in found.items():
                self._has_met_all(node, sock)
            self._tell_absent(absent, found)
            return False
        for node, sock in found.items():
            if sock not in self._told:
                self._told.add(sock)
                sock.settimeout(_ATTEMPT)
                with contextlib.suppress(OSError):  # it has left, which is seen next
                    sock.sendall(pack(Kind.READY, self._member.node, _START, 0))
                sock.setblocking(False)
            if not self._has_met_all(node, sock):
                self.missing[node] = f"is there, and waits for {self._waits.get(node, 'others')}"
            else:
                self.missing.pop(node, None)
        return not found.keys() & self.missing.keys()

    def _tell_absent(self, absent: set[int], found: Mapping[int, socket.socket]) -> None:
        """Those that were met hear now and then whom this node waits for: they may have no link with it."""
        if time.monotonic() < self._tells:
            return
        self._tells = time.monotonic() + _REMIND
        whom = " and ".join(map(self._nodes.name, sorted(absent)))
        notice = pack(Kind.WAITS, self._member.node, Stamp(0, bytes(8), whom), 0)
        for sock in (sock for sock in found.values() if sock not in self._told):  # who was told all may have begun
            sock.settimeout(_ATTEMPT)
            with contextlib.suppress(OSError):  # it has left, which is seen next
                sock.sendall(notice)
            sock.setblocking(False)

    def _goes_on(self, sock: socket.socket) -> None:
        """Of a link whose other end has begun: both have said that they met all."""
        self._heard[sock] = bytes(HEADER_BYTES)
        self._told.add(sock)

    def _has_met_all(self, node: int, sock: socket.socket) -> bool:
        """Whether it says so; what else it says is heard too."""
        if (left := HEADER_BYTES - len(self._heard.setdefault(sock, b""))) == 0:
            return True
        with contextlib.suppress(OSError):  # nothing yet, or it has left
            sock.setblocking(False)
            self._heard[sock] += sock.recv(left)
        if len(self._heard[sock]) < HEADER_BYTES:
            return False
        header = unpack(self._heard[sock], node, self._nodes)
        if header.kind is Kind.ABORT:
            self._heard[sock] = b""
            with contextlib.suppress(OSError):  # it has left before it had said why
                raw = exactly(sock, min(header.length, WORDS_LIMIT), time.monotonic() + _ATTEMPT)
                raise self._over(node, raw.decode(errors="replace"))
            return False
        if header.kind is Kind.WAITS:
            self._waits[node], self._heard[sock] = hello.shown(header.position, quoted=False), b""
            return False
        if header.kind is not Kind.READY:
            raise ConfigError(f"{self._nodes.name(node)} begins before all have met: run the same release everywhere")
        self._waits.pop(node, None)
        return True

    def left(self, node: int, sock: socket.socket) -> bool:
        """Whether its connection has ended: it may be started again, and all wait for that."""
        try:
            if not select.select([sock], [], [], 0.0)[0] or socket.socket.recv(sock, 1, socket.MSG_PEEK):
                return False
        except OSError:
            pass
        self.missing[node] = "was there, and left again"
        return True

    def overdue(self, missing: set[int], turned_away: str) -> PeerLost:
        """All who are missing, and what is known of each."""
        peer = min([*missing, *self.missing])
        return PeerLost(f"not all are there after {self._seconds:g} s: {self._list()}{turned_away}", peer=peer)

    def _list(self) -> str:
        return ", ".join(f"{self._nodes.name(node)} ({self._known(node)})" for node in sorted(self.missing))

    def _known(self, node: int) -> str:
        """Why it is missing, and for whom it waited when that was heard last."""
        why, whom = self.missing[node], self._waits.get(node, "")
        return why if not whom or whom in why else f"{why}; it had waited for {whom}"

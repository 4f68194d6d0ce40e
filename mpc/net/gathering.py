"""How all nodes find together, by any way to prove who they are.  Knows connections and deadlines; no keys.

Callers are heard side by side, so that a stranger who says nothing delays nobody; and a node calls all that it calls
side by side, so that one which is frozen is missed by all, and nobody else is.  What is said until a caller has proved
its number is a `Door`'s.
"""

from __future__ import annotations

import contextlib
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from ..errors import ConfigError, MaskedError, PeerLost

CALLERS = 64
"""Heard at once; the eldest of more is turned away."""
_LOOK = 0.1  # seconds after which who waits for calls looks after those of its own
_SOON = 0.01  # seconds between two looks after what those say that were met

Beside = Callable[[Mapping[int, socket.socket]], bool]
"""Told who was met; whether there is more to wait for."""


class NotWelcome(OSError):
    """Not yet: one that was called has proved who it is, and waits for others.

    A `PeerLost` that comes of it names one who was there, and is not the one who is missing.
    """


class Calling:
    """Calls to several nodes, side by side, each in a thread of its own."""

    def __init__(self, to: Mapping[int, Callable[[], socket.socket]]) -> None:
        self._to, self._left, self._over = to, set[int](), False
        self._found: dict[int, socket.socket] = {}
        self._missing: dict[int, PeerLost] = {}
        self._answers: queue.SimpleQueue[tuple[int, socket.socket | BaseException]] = queue.SimpleQueue()

        for other in to:
            self._begin(other)

    @property
    def busy(self) -> bool:
        """Whether somebody has not answered yet."""
        return bool(self._left)

    @property
    def found(self) -> Mapping[int, socket.socket]:
        """Those that have."""
        return self._found

    def _begin(self, other: int) -> None:
        self._left.add(other)
        threading.Thread(target=self._call, args=(other,), daemon=True).start()

    def _call(self, other: int) -> None:
        try:
            sock = self._to[other]()
        except BaseException as error:
            self._answers.put((other, error))
            return
        self._answers.put((other, sock))
        if self._over:
            sock.close()

    def look(self, door: Door) -> None:
        """Raise what is wrong with a call; call those again who have left again."""
        for other, sock in list(self._found.items()):
            if door.left(other, sock):
                sock.close()
                del self._found[other]
                self._begin(other)
        self.check()

    def check(self, *, wait: float | None = 0.0) -> None:
        """Raise at once what is wrong with a call, but that nobody answers; wait: seconds for the next to end."""
        with contextlib.suppress(queue.Empty):
            while self._left:
                other, answer = self._answers.get(wait != 0.0, wait)
                self._left.discard(other)
                if isinstance(answer, PeerLost):
                    self._missing[other] = answer
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    self._found[other] = answer
                wait = 0.0

    def answered(
        self, beside: Callable[[], None] = lambda: None, enough: Callable[[], bool] = lambda: True, *,
        some: bool = False,
    ) -> dict[int, socket.socket]:  # fmt: skip
        """All connections; where several nodes do not answer in time, the first of them is named.

        enough: whether nothing else is waited for.  some: those who answer in time are enough.
        """
        while self._left or not ((self._missing and not some) or enough()):
            beside()
            self.check(wait=_LOOK)
            if not self._left:
                time.sleep(_SOON)
        silent = {node: error for node, error in self._missing.items() if not isinstance(error.__cause__, NotWelcome)}
        if (missing := silent or self._missing) and not some:
            raise missing[min(missing)]
        return self._found

    def give_up(self) -> None:
        """Close what is connected, and what will be."""
        self._over = True
        with contextlib.suppress(queue.Empty):
            while True:
                _, answer = self._answers.get_nowait()
                if isinstance(answer, socket.socket):
                    answer.close()
        for sock in self._found.values():
            sock.close()


class Greeting(Protocol):
    """One that has not proved yet who it is.  sock: its connection, as it is by now.  claims: who it says it is."""

    sock: socket.socket
    claims: int | None

    def hear(self) -> int | None:
        """Hear on: the number of a caller that has proved it.

        BlockingIOError where more must come; OSError or MaskedError where nothing will become of it.
        """


class Door(Protocol):
    """How a node that answers lets in those that prove who they are."""

    def greet(self, sock: socket.socket) -> Greeting:
        """A connection that is ready to be heard; OSError or ConfigError for one that is not to be."""

    def answer(self, greeting: Greeting, *, awaited: bool) -> str:
        """Welcome one who has proved its number, or turn it away; gives why, nothing if it is welcome."""

    def refused(self, greeting: Greeting, why: Exception) -> None:
        """Somebody did not prove a number, and is gone."""

    def look(self) -> None:
        """Done every now and then."""

    def gathered(self, found: Mapping[int, socket.socket]) -> bool:
        """Whether all know that all are there, so that nobody is to be met again.  found: those that were met."""

    @property
    def some(self) -> bool:
        """Whether those who are there when time is over are enough."""

    def left(self, node: int, sock: socket.socket) -> bool:
        """Whether one that was met has left before all were there, and is to be met again."""

    def ended(self, error: BaseException, found: Mapping[int, socket.socket]) -> None:
        """Before all were met it is over, and these are about to be closed."""

    def overdue(self, missing: set[int], turned_away: str) -> PeerLost:
        """What it means that time is over."""


def meet_by(
    door: Door, to: Mapping[int, Callable[[], socket.socket]], own: socket.socket | None, awaited: Iterable[int],
    deadline: float,
) -> dict[int, socket.socket]:  # fmt: skip
    """Meet all, side by side.  to: calls, each of which gives a connection to one that is met."""
    found, calling = dict[int, socket.socket](), Calling(to)
    more = deadline - time.monotonic()  # where some are enough, others may have begun so much later

    def look(met: Mapping[int, socket.socket]) -> bool:
        calling.look(door)
        if calling.busy and door.some:
            return True
        gathered = door.gathered({**met, **calling.found})
        return calling.busy or not gathered

    def seen() -> None:
        calling.look(door)
        door.look()
        if calling.busy and not door.some:
            door.gathered({**found, **calling.found})

    def together() -> bool:
        if door.gathered({**found, **calling.found}) or (door.some and time.monotonic() > deadline + more):
            return True
        if time.monotonic() > deadline and not door.some:
            raise door.overdue(set(), "")
        return False

    try:
        if own is not None:
            found |= taken(door, own, awaited, deadline, look)
        return found | calling.answered(seen, together, some=door.some)
    except BaseException as error:
        door.ended(error, {**found, **calling.found})
        calling.give_up()
        for sock in found.values():
            sock.close()
        raise


def taken(
    door: Door, own: socket.socket, awaited: Iterable[int], deadline: float, beside: Beside = lambda _: False
) -> dict[int, socket.socket]:
    """All of those awaited, when each has called and proved who it is; see `let_in`."""
    found: dict[int, socket.socket] = {}
    try:
        for caller, sock in let_in(door, own, awaited, deadline, beside):
            found[caller] = sock  # noqa: PERF403, what was found is closed where another is missing
    except BaseException as error:
        door.ended(error, found)
        for sock in found.values():
            sock.close()
        raise
    return found


def let_in(
    door: Door, own: socket.socket, awaited: Iterable[int], deadline: float, beside: Beside = lambda _: False
) -> Iterator[tuple[int, socket.socket]]:
    """Those awaited, each as it calls and proves who it is; once more, where it left before all were there.

    beside: done every now and then with those that were met; as long as it gives true, there is more to wait for.
    """
    missing, met, turned_away = set(awaited), dict[int, socket.socket](), ""
    own.setblocking(False)
    with Callers(door, own) as callers:
        while (busy := beside(met)) or missing:
            door.look()
            for caller in [caller for caller, sock in met.items() if door.left(caller, sock)]:
                met.pop(caller).close()
                missing.add(caller)
            if (left := deadline - time.monotonic()) <= 0:
                if door.some or (not missing and busy):
                    return
                raise door.overdue(missing, turned_away)
            for greeting, caller in callers.proved(min(left, _LOOK)):
                if why := door.answer(greeting, awaited=caller in missing):
                    turned_away = f" (turned away: {why})"
                    greeting.sock.close()
                    continue
                if caller in met:
                    met.pop(caller).close()
                missing.discard(caller)
                met[caller] = greeting.sock
                yield caller, greeting.sock


class Callers:
    """Connections of callers who have not proved yet who they are."""

    def __init__(self, door: Door, own: socket.socket) -> None:
        self._door, self._own = door, own
        self._waiting: dict[socket.socket, Greeting] = {}
        self._ready = selectors.DefaultSelector()
        self._ready.register(own, selectors.EVENT_READ)

    def __enter__(self) -> Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self._ready.close()
        for sock in self._waiting:
            sock.close()

    def proved(self, seconds: float) -> list[tuple[Greeting, int]]:
        """Wait, at most so long, and hear on: who has proved now which node it is."""
        proved = []
        for key, _ in self._ready.select(seconds):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is self._own:
                self._accept()
            elif greeting := self._waiting.get(sock):
                try:
                    number = greeting.hear()
                except BlockingIOError:
                    continue
                except (OSError, MaskedError) as error:
                    self._turn_out(sock, error)
                    continue
                if number is not None:
                    self._forget(sock)
                    proved.append((greeting, number))
        return proved

    def _accept(self) -> None:
        try:
            sock, _ = self._own.accept()
        except OSError:  # the caller has left again
            return
        sock.setblocking(False)
        try:
            greeting = self._door.greet(sock)
        except (OSError, ConfigError):
            sock.close()
            return
        if len(self._waiting) == CALLERS:
            self._turn_out(next(iter(self._waiting)), ConnectionError(f"{CALLERS} others called behind it"))
        self._waiting[greeting.sock] = greeting
        self._ready.register(greeting.sock, selectors.EVENT_READ)

    def _turn_out(self, sock: socket.socket, why: Exception) -> None:
        greeting = self._waiting[sock]
        self._forget(sock)
        self._door.refused(greeting, why)
        sock.close()

    def _forget(self, sock: socket.socket) -> None:
        self._ready.unregister(sock)
        del self._waiting[sock]


def exactly(sock: socket.socket, count: int, deadline: float) -> bytes:
    """So many bytes, in time; OSError where they do not come."""
    raw = b""
    while len(raw) < count:
        if (left := deadline - time.monotonic()) <= 0:
            raise TimeoutError("the greeting came too slowly")
        sock.settimeout(left)
        more = sock.recv(count - len(raw))
        if not more:
            raise ConnectionError("closed during the greeting")
        raw += more
    return raw

"""How nodes of one machine meet: one calls, the other answers.  Knows addresses, greetings and deadlines; no rounds.

Each proves to the other who it is, by the messages of `keys`, each a HELLO.  Whom the answerer does not want is told
why in an ABORT.  Callers are heard side by side, so that a stranger who says nothing delays nobody; and a node calls
all that it calls side by side, so that one which is frozen is missed by all, and nobody else is.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import queue
import secrets
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import DEALER, ConfigError, MaskedError, PeerLost
from .frames import ANYBODY, DEALER_NODE, HEADER_BYTES, WORDS_LIMIT, Kind, Nodes, pack, shown, unpack
from .keys import NONCE_BYTES, PROOF_BYTES, Keys, Meeting
from .transport import Stamp

_BUFFER = 1 << 20
_START = Stamp(0, bytes(8), "joining")
_ANSWER = struct.Struct(f"{NONCE_BYTES}s{PROOF_BYTES}s")
_SAME_KEY = "hand both processes the key that was made for the two of them"
_LOOK = 0.1  # seconds after which who waits for calls looks after those of its own
_CALLERS = 64  # heard at once; the eldest of more is turned away

Address = tuple[str, int]
"""Host and port; or a name that begins with '@', and 0, for a socket of this machine's kernel."""


def listen_in_kernel() -> tuple[socket.socket, Address]:
    """A listening socket that only this machine has, without the costs of TCP; on loopback where there is no such."""
    if sys.platform != "linux":
        sock = listen()
        host, port = sock.getsockname()
        return sock, (host, port)
    address = f"@masked-{secrets.token_hex(16)}", 0
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(_place(address))
    sock.listen(_CALLERS)
    return sock, address


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A listening socket on loopback."""
    check_loopback((host, port))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(_CALLERS)
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another port") from error
    return sock


def check_loopback(address: Address) -> None:
    """Plain sockets hide nothing, so they stay on this machine."""
    host, port = address
    if host.startswith("@"):
        return
    try:
        loopback = host == "localhost" or ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f"plain sockets stay on this machine: use a loopback address such as 127.0.0.1, not {host!r}")
    if not 0 <= port < 1 << 16:
        raise ConfigError(f"a port lies in 0..65535, not {port}")


def check_here(sock: socket.socket) -> None:
    """The same of a socket as the kernel has it, by whatever name it was made: 0.0.0.0 hears other machines."""
    if sock.family != socket.AF_UNIX:
        check_loopback(sock.getsockname()[:2])


def call(
    node: int,
    other: int,
    address: Address,
    keys: Keys,
    deadline: float,
    nodes: Nodes = ANYBODY,
    *,
    patient: bool = True,
) -> socket.socket:
    """Connect to a node that may not listen yet; not patient: to one that must be listening already."""
    check_loopback(address)
    if (key := keys.get(other)) is None:
        raise ConfigError(f"{nodes.name(node)} has no key for {nodes.name(other)}: {_SAME_KEY}")
    met = False
    while True:
        sock = socket.socket(_family(address))
        try:
            _prepare(sock)
            sock.settimeout(max(0.1, deadline - time.monotonic()))
            sock.connect(_place(address))
            _check_ends(sock)
            if sock.family == socket.AF_INET and sock.getsockname() == sock.getpeername():
                raise ConnectionError("the kernel connected the socket to itself: nobody listens yet")
            _introduce(sock, node, other, key, deadline, nodes)
            return sock
        except OSError as error:
            sock.close()
            met = met or isinstance(error, _NotWelcome)
            if met and time.monotonic() + 0.05 > deadline:
                who = nodes.name(other)
                raise _StillAwaits(f"{who} still waits for others to call: are all started?", peer=other) from error
            if not patient or time.monotonic() + 0.05 > deadline:
                raise _unanswered(other, address, nodes) from error
            time.sleep(0.02)
        except BaseException:
            sock.close()
            raise


class _NotWelcome(OSError):
    """Not yet: one that was called has proved who it is, and waits for others."""


class _StillAwaits(PeerLost):
    """It did so to the end, and is not the one who is missing."""


class Calling:
    """Calls to several nodes, side by side, each in a thread of its own."""

    def __init__(
        self, node: int, addresses: Mapping[int, Address], keys: Keys, deadline: float, nodes: Nodes = ANYBODY
    ) -> None:
        self._left, self._over = set(addresses), False
        self._found: dict[int, socket.socket] = {}
        self._missing: dict[int, PeerLost] = {}
        self._answers: queue.SimpleQueue[tuple[int, socket.socket | BaseException]] = queue.SimpleQueue()

        def one(other: int, address: Address) -> None:
            try:
                sock = call(node, other, address, keys, deadline, nodes)
            except BaseException as error:
                self._answers.put((other, error))
                return
            self._answers.put((other, sock))
            if self._over:
                sock.close()

        for each in addresses.items():
            threading.Thread(target=one, args=each, daemon=True).start()

    def check(self, *, wait: bool = False) -> None:
        """Raise at once what is wrong with a call, but that nobody answers; wait: for the next to end."""
        with contextlib.suppress(queue.Empty):
            while self._left:
                other, answer = self._answers.get(wait)
                self._left.discard(other)
                if isinstance(answer, PeerLost):
                    self._missing[other] = answer
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    self._found[other] = answer
                wait = False

    def answered(self) -> dict[int, socket.socket]:
        """All connections; where several nodes do not answer in time, the first of them is named."""
        while self._left:
            self.check(wait=True)
        silent = {node: error for node, error in self._missing.items() if not isinstance(error, _StillAwaits)}
        if missing := silent or self._missing:
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


def meet(
    node: int, addresses: Mapping[int, Address], own: socket.socket | None, awaited: Iterable[int], keys: Keys,
    deadline: float, nodes: Nodes = ANYBODY,
) -> dict[int, socket.socket]:  # fmt: skip
    """Call the nodes at these addresses and answer those awaited, side by side: who is there is met."""
    found, calling = dict[int, socket.socket](), Calling(node, addresses, keys, deadline, nodes)
    try:
        if own is not None:
            found |= take_calls(node, own, keys, awaited, deadline, nodes, calling.check)
        return found | calling.answered()
    except BaseException:
        calling.give_up()
        for sock in found.values():
            sock.close()
        raise


def take_calls(
    node: int, own: socket.socket, keys: Keys, awaited: Iterable[int], deadline: float, nodes: Nodes = ANYBODY,
    beside: Callable[[], None] = lambda: None,
) -> dict[int, socket.socket]:  # fmt: skip
    """Answer until every node awaited has called; strangers are turned away.  beside: done every now and then.

    Nobody is welcome before all are there: who goes on to the first round would miss there whom this node still awaits.
    """
    found: dict[int, socket.socket] = {}
    try:
        for caller, sock in calls(node, own, keys, awaited, deadline, nodes, beside):
            found[caller] = sock  # noqa: PERF403, what was found is closed where another is missing
        for sock in found.values():
            welcome(node, sock)
    except BaseException:
        for sock in found.values():
            sock.close()
        raise
    return found


def calls(
    node: int, own: socket.socket, keys: Keys, awaited: Iterable[int], deadline: float, nodes: Nodes = ANYBODY,
    beside: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, socket.socket]]:  # fmt: skip
    """The same, each as it calls; to be made `welcome`."""
    check_here(own)
    missing, turned_away = set(awaited), ""
    own.setblocking(False)
    with _Callers(node, own, keys) as callers:
        while missing:
            beside()
            if (left := deadline - time.monotonic()) <= 0:
                who = nodes.name(min(missing))
                if min(missing) in callers.unproved:
                    turned_away = f" (one that called as {who} did not prove it: {_SAME_KEY})"
                raise PeerLost(f"{who} did not call in time: is it started?{turned_away}", peer=min(missing))
            for sock, caller in callers.proved(min(left, _LOOK)):
                if why := _refusal(caller, missing, nodes):
                    turned_away = f" (turned away: {why})"
                    with sock, contextlib.suppress(OSError):
                        sock.sendall(_turn_away(node, why))
                else:
                    missing.discard(caller)
                    yield caller, sock


def welcome(node: int, sock: socket.socket) -> None:
    """Tell a caller that it is met."""
    with contextlib.suppress(OSError):  # it has left again: the first message to it says so
        sock.sendall(_hello(node, b""))


def _unanswered(other: int, address: Address, nodes: Nodes) -> PeerLost:
    """What it means that nobody answers; the dealer is none of those that are launched together."""
    who, dealer = f"{nodes.name(other)} at {address[0]}:{address[1]}", other == DEALER_NODE
    return PeerLost(f"{who} did not answer: is it started?", peer=DEALER if dealer else other, witness=not dealer)


@dataclass
class _Caller:
    """One that has not proved yet who it is: what it said of its message, and the meeting that it called for."""

    said: bytearray = field(default_factory=bytearray)
    meeting: Meeting | None = None


class _Callers:
    """Connections of callers who have not proved yet who they are.  unproved: who they said they were, and left."""

    def __init__(self, node: int, own: socket.socket, keys: Keys) -> None:
        self.unproved: set[int] = set()
        self._node, self._own, self._keys = node, own, keys
        self._waiting: dict[socket.socket, _Caller] = {}
        self._ready = selectors.DefaultSelector()
        self._ready.register(own, selectors.EVENT_READ)

    def __enter__(self) -> _Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self._ready.close()
        for sock in self._waiting:
            sock.close()

    def proved(self, seconds: float) -> list[tuple[socket.socket, int]]:
        """Wait, at most so long, and hear on: who has proved now which node it is."""
        proved = []
        for key, _ in self._ready.select(seconds):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is self._own:
                self._accept()
            elif caller := self._waiting.get(sock):
                try:
                    number = self._hear(sock, caller)
                except BlockingIOError:
                    continue
                except (OSError, MaskedError):
                    self._forget(sock)
                    sock.close()
                    if caller.meeting is not None:
                        self.unproved.add(caller.meeting.caller)
                    continue
                if number is not None:
                    self._forget(sock)
                    proved.append((sock, number))
        return proved

    def _hear(self, sock: socket.socket, caller: _Caller) -> int | None:
        """Hear on: the number of a caller that has proved it."""
        wanted = HEADER_BYTES + (NONCE_BYTES if caller.meeting is None else PROOF_BYTES)
        more = sock.recv(wanted - len(caller.said))
        if not more:
            raise ConnectionError("closed during the greeting")
        caller.said += more
        if len(caller.said) < wanted:
            return None
        header, words = unpack(bytes(caller.said[:HEADER_BYTES]), 0), bytes(caller.said[HEADER_BYTES:])
        if header.kind is not Kind.HELLO or header.length != len(words):
            raise ConnectionError("this is no greeting")
        if caller.meeting is None:
            caller.meeting = self._answered(sock, header.sender, words)
            caller.said = bytearray()
            return None
        if not hmac.compare_digest(words, caller.meeting.calls()):
            raise ConnectionError("this is no proof")
        return caller.meeting.caller

    def _answered(self, sock: socket.socket, number: int, x: bytes) -> Meeting:
        """Prove to somebody, who says to be this number, who is here."""
        key = self._keys.get(number)
        if key is None:
            sock.sendall(_turn_away(self._node, ""))
            raise ConnectionError("a stranger")
        meeting = Meeting(key, number, self._node, x, secrets.token_bytes(NONCE_BYTES))
        sock.sendall(_hello(self._node, meeting.y + meeting.answers()))
        return meeting

    def _accept(self) -> None:
        try:
            sock, _ = self._own.accept()
        except OSError:  # the caller has left again
            return
        try:
            _check_ends(sock)
        except (OSError, ConfigError):
            sock.close()
            return
        sock.setblocking(False)
        _prepare(sock)
        if len(self._waiting) == _CALLERS:
            eldest = next(iter(self._waiting))
            self._forget(eldest)
            eldest.close()
        self._waiting[sock] = _Caller()
        self._ready.register(sock, selectors.EVENT_READ)

    def _forget(self, sock: socket.socket) -> None:
        self._ready.unregister(sock)
        del self._waiting[sock]


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_UNIX if address[0].startswith("@") else socket.AF_INET


def _place(address: Address) -> str | Address:
    """An address as the kernel takes it: an abstract name begins with a zero byte."""
    return "\0" + address[0][1:] if address[0].startswith("@") else address


def _check_ends(sock: socket.socket) -> None:
    """A kernel socket's name is everybody's to see and, once it is free, to take: the other end must be ours."""
    check_here(sock)
    if sock.family == socket.AF_UNIX:
        _, user, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if user != os.getuid():
            raise ConfigError(f"the other end of a party's socket is of user {user}: start all parties as one user")


def _prepare(sock: socket.socket) -> None:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def _hello(node: int, words: bytes) -> bytes:
    return pack(Kind.HELLO, node, _START, len(words)) + words


def _turn_away(node: int, why: str) -> bytes:
    text = why.encode()[:WORDS_LIMIT]
    return pack(Kind.ABORT, node, _START, len(text)) + text


def _refusal(caller: int, missing: set[int], nodes: Nodes) -> str:
    """Why one who has proved its number is turned away; nothing if it is welcome."""
    if caller in missing:
        return ""
    who = nodes.name(caller)
    return f"{who} has joined already, or is not part of this session: give each process a number of its own"


def _introduce(sock: socket.socket, node: int, other: int, key: bytes, deadline: float, nodes: Nodes) -> None:
    """Prove to the one called who this is, once it has proved who it is itself."""
    who, x = nodes.name(other), secrets.token_bytes(NONCE_BYTES)
    sock.sendall(_hello(node, x))
    stranger = f"{who} knows no {nodes.name(node)}: check the numbers and keys of both"
    y, proof = _ANSWER.unpack(_answer(sock, other, _ANSWER.size, deadline, nodes, refused=stranger))
    meeting = Meeting(key, node, other, x, y)
    if not hmac.compare_digest(proof, meeting.answers()):
        raise ConfigError(f"whoever answers as {who} did not prove it: {_SAME_KEY}")
    sock.sendall(_hello(node, meeting.calls()))
    try:
        _answer(sock, other, 0, deadline, nodes)
    except OSError as error:
        raise _NotWelcome from error


def _answer(
    sock: socket.socket, other: int, size: int, deadline: float, nodes: Nodes, *, refused: str = ""
) -> bytes:  # fmt: skip
    """What the one called says, which must be a HELLO of so many bytes.

    refused: what it means that this process is turned away; else its words, which only one who has proved itself may
    put into a user's mouth.
    """
    who, header = nodes.name(other), unpack(_exactly(sock, HEADER_BYTES, deadline), other, nodes)
    if header.sender != other:
        raise ConfigError(f"{nodes.name(header.sender)} answers where {who} is expected: check the addresses")
    if header.kind is Kind.ABORT:
        said = b"" if refused else _exactly(sock, min(header.length, WORDS_LIMIT), deadline)
        words = refused or shown(said.decode(errors="replace"))
        raise ConfigError(f"{who} turned this process away: {words}")
    if header.kind is not Kind.HELLO or header.length != size:
        raise ConfigError(f"{who} does not greet: check its address")
    return _exactly(sock, size, deadline)


def _exactly(sock: socket.socket, count: int, deadline: float) -> bytes:
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

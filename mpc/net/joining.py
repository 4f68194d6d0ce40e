"""How nodes of one machine meet: one calls, the other answers.  Knows addresses and greetings; no rounds.

Each proves to the other who it is by the messages of `keys`, each a HELLO.  Whom the answerer does not want is told why
in an ABORT.  That all are met side by side is `gathering`'s; between machines, `tls` has the other way to prove it.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from ..errors import DEALER, ConfigError, PeerLost
from .frames import ANYBODY, DEALER_NODE, HEADER_BYTES, WORDS_LIMIT, Kind, Nodes, pack, shown, unpack
from .gathering import CALLERS, Greeting, NotWelcome, exactly, let_in, meet_by, taken
from .keys import NONCE_BYTES, PROOF_BYTES, Keys, Meeting
from .transport import Stamp

_BUFFER = 1 << 20
_WORDS = 4  # how often one that went on hears for whom its peer still waits: so often its round begins anew
_START = Stamp(0, bytes(8), "joining")
_ANSWER = struct.Struct(f"{NONCE_BYTES}s{PROOF_BYTES}s")
_SAME_KEY = "hand both processes the key that was made for the two of them"

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
    sock.listen(CALLERS)
    return sock, address


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A listening socket on loopback."""
    check_loopback((host, port))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(CALLERS)
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
    unwelcome: NotWelcome | None = None
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
            unwelcome = error if isinstance(error, NotWelcome) else unwelcome
            late = time.monotonic() + 0.05 > deadline
            if unwelcome is not None and (late or isinstance(error, ConnectionRefusedError)):
                raise _unwelcome(other, nodes, left=not late) from unwelcome
            if not patient or late:
                raise _unanswered(other, address, nodes) from error
            time.sleep(0.02)
        except BaseException:
            sock.close()
            raise


def meet(
    node: int, addresses: Mapping[int, Address], own: socket.socket | None, awaited: Iterable[int], keys: Keys,
    deadline: float, nodes: Nodes = ANYBODY, *, patience: float = 0.0,
) -> dict[int, socket.socket]:  # fmt: skip
    """Call the nodes at these addresses and answer those awaited, side by side: who is there is met.

    patience: seconds after which one that was called, and has gone on to its first round, would miss this node; within
    them it hears for whom this node waits.
    """
    if own is not None:
        check_here(own)
    to = {other: partial(call, node, other, address, keys, deadline, nodes) for other, address in addresses.items()}
    return meet_by(_ByKeys(node, keys, nodes, awaited, addresses, patience), to, own, awaited, deadline)


def take_calls(
    node: int, own: socket.socket, keys: Keys, awaited: Iterable[int], deadline: float, nodes: Nodes = ANYBODY
) -> dict[int, socket.socket]:
    """Answer until every node awaited has called; strangers are turned away."""
    check_here(own)
    return taken(_ByKeys(node, keys, nodes, awaited), own, awaited, deadline)


def calls(
    node: int, own: socket.socket, keys: Keys, awaited: Iterable[int], deadline: float, nodes: Nodes = ANYBODY,
    beside: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, socket.socket]]:  # fmt: skip
    """The same, each as it calls.  beside: done every now and then."""
    check_here(own)

    def look(_: object) -> bool:
        beside()
        return False

    return let_in(_ByKeys(node, keys, nodes), own, awaited, deadline, look)


class _ByKeys:
    """A door of this machine: each two nodes have a key.

    together: none of these is welcome before all of them have called; who goes on to the first round would miss there
    whom this node still awaits.
    """

    def __init__(
        self, node: int, keys: Keys, nodes: Nodes, together: Iterable[int] = (), called: Iterable[int] = (),
        patience: float = 0.0,
    ) -> None:  # fmt: skip
        self._node, self._keys, self._nodes = node, keys, nodes
        self._called, self._patience = set(called), patience
        self._words, self._next = _WORDS * bool(patience), time.monotonic() + patience / 4
        self._together, self._proved = set(together), list[socket.socket]()
        self._unproved: set[int] = set()  # who callers said they were, and left

    def greet(self, sock: socket.socket) -> _Caller:
        """Who is to prove it."""
        _check_ends(sock)
        _prepare(sock)
        return _Caller(sock, self._node, self._keys)

    def answer(self, greeting: Greeting, *, awaited: bool) -> str:
        """The last word of a meeting."""
        assert greeting.claims is not None
        if not awaited:
            why = _refusal(greeting.claims, self._nodes)
            with contextlib.suppress(OSError):
                greeting.sock.sendall(_turn_away(self._node, why))
            return why
        self._together.discard(greeting.claims)
        self._proved.append(greeting.sock)
        while self._proved and not self._together:
            with contextlib.suppress(OSError):  # it has left again: the first message to it says so
                self._proved.pop().sendall(_hello(self._node, b""))
        return ""

    def refused(self, greeting: Greeting, why: Exception) -> None:
        """To be remembered, where it said a number."""
        if greeting.claims is not None:
            self._unproved.add(greeting.claims)

    def look(self) -> None:
        """Nothing is said of those who are missing before time is over."""

    some = False

    def gathered(self, found: Mapping[int, socket.socket]) -> bool:
        """Who is welcome knows it; one that has gone on hears a few times for whom this node still waits."""
        if self._together and self._words and time.monotonic() >= self._next:
            self._words -= 1
            self._next += self._patience / 2
            whom = Stamp(0, bytes(8), self._nodes.name(min(self._together)))
            for sock in (sock for node, sock in found.items() if node in self._called):
                with contextlib.suppress(OSError):
                    sock.sendall(pack(Kind.WAITS, self._node, whom, 0))
        return True

    def left(self, node: int, sock: socket.socket) -> bool:
        """Who leaves ends a launch."""
        return False

    def ended(self, error: BaseException, found: Mapping[int, socket.socket]) -> None:
        """Nothing: its launcher says why."""

    def overdue(self, missing: set[int], turned_away: str) -> PeerLost:
        """The first of them is named."""
        who = self._nodes.name(min(missing))
        if min(missing) in self._unproved:
            turned_away = f" (one that called as {who} did not prove it: {_SAME_KEY})"
        return PeerLost(f"{who} did not call in time: is it started?{turned_away}", peer=min(missing))


def _unanswered(other: int, address: Address, nodes: Nodes) -> PeerLost:
    """What it means that nobody answers; the dealer is none of those that are launched together."""
    who, dealer = f"{nodes.name(other)} at {address[0]}:{address[1]}", other == DEALER_NODE
    return PeerLost(f"{who} did not answer: is it started?", peer=DEALER if dealer else other, witness=not dealer)


def _unwelcome(other: int, nodes: Nodes, *, left: bool) -> PeerLost:
    """What it means that one who was met says no last word.  left: nobody listens there any more.

    The dealer waits for nobody before it does, and is none of those that are launched together.
    """
    who = nodes.name(other)
    if other == DEALER_NODE:
        return PeerLost(f"{who} answered, and no more came: it hangs", peer=DEALER, witness=False)
    if left:
        why = "it died or was stopped, or others did not call it in time"
        return PeerLost(f"{who} left before all had met: {why}", peer=other)
    return PeerLost(f"{who} still waits for others to call: are all started?", peer=other)


class _Caller:
    """What a caller said of its message, and the meeting that it called for."""

    def __init__(self, sock: socket.socket, node: int, keys: Keys) -> None:
        self.sock: socket.socket = sock
        self.claims: int | None = None
        self._node, self._keys, self._said = node, keys, bytearray()
        self._meeting: Meeting | None = None

    def hear(self) -> int | None:
        """Hear on."""
        wanted = HEADER_BYTES + (NONCE_BYTES if self._meeting is None else PROOF_BYTES)
        more = self.sock.recv(wanted - len(self._said))
        if not more:
            raise ConnectionError("closed during the greeting")
        self._said += more
        if len(self._said) < wanted:
            return None
        header, words = unpack(bytes(self._said[:HEADER_BYTES]), 0), bytes(self._said[HEADER_BYTES:])
        if header.kind is not Kind.HELLO or header.length != len(words):
            raise ConnectionError("this is no greeting")
        if self._meeting is None:
            self._meeting = self._answered(header.sender, words)
            self.claims, self._said = header.sender, bytearray()
            return None
        if not hmac.compare_digest(words, self._meeting.calls()):
            raise ConnectionError("this is no proof")
        return self._meeting.caller

    def _answered(self, number: int, x: bytes) -> Meeting:
        """Prove to somebody, who says to be this number, who is here."""
        key = self._keys.get(number)
        if key is None:
            self.sock.sendall(_turn_away(self._node, ""))
            raise ConnectionError("a stranger")
        meeting = Meeting(key, number, self._node, x, secrets.token_bytes(NONCE_BYTES))
        self.sock.sendall(_hello(self._node, meeting.y + meeting.answers()))
        return meeting


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


def _refusal(caller: int, nodes: Nodes) -> str:
    """Why one who has proved its number is turned away all the same."""
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
        raise NotWelcome from error


def _answer(
    sock: socket.socket, other: int, size: int, deadline: float, nodes: Nodes, *, refused: str = ""
) -> bytes:  # fmt: skip
    """What the one called says, which must be a HELLO of so many bytes.

    refused: what it means that this process is turned away; else its words, which only one who has proved itself may
    put into a user's mouth.
    """
    who, header = nodes.name(other), unpack(exactly(sock, HEADER_BYTES, deadline), other, nodes)
    if header.sender != other:
        raise ConfigError(f"{nodes.name(header.sender)} answers where {who} is expected: check the addresses")
    if header.kind is Kind.ABORT:
        said = b"" if refused else exactly(sock, min(header.length, WORDS_LIMIT), deadline)
        words = refused or shown(said.decode(errors="replace"))
        raise ConfigError(f"{who} turned this process away: {words}")
    if header.kind is not Kind.HELLO or header.length != size:
        raise ConfigError(f"{who} does not greet: check its address")
    return exactly(sock, size, deadline)

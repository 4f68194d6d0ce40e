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
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ..errors import ConfigError, PeerLost
from . import hello
from .certificates import fingerprint
from .frames import HEADER_BYTES, WORDS_LIMIT, Kind, Nodes, pack, unpack
from .gathering import Greeting, exactly, meet_by
from .hello import Hello
from .member import Log, Member, TlsSocket
from .transport import Stamp, check_timeout

_START = Stamp(0, bytes(8), "joining")
_ATTEMPT = 20.0  # seconds that one call may take
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # between two calls
_REMIND = 5.0  # seconds after which it is said again who is missing
KEEP_ALIVE = 60  # seconds, well below the four minutes after which routers forget a link
_PROBE, _PROBES = 15, 4
_WINDOW = b"bbr"
"""How TCP is to find its window, where this machine's users may choose it.  The usual ways forget it in a fifth of a
second of silence: after it, the first message of more than 14 kB takes a round trip more, and each doubling another."""
_WINDOWS_NEAR = b"cubic", b"reno"
_NEAR = 0.002  # seconds of a round trip; below it there is little to save, and bbr holds back what could leave
_ROUND_TRIP, _LEAST_ROUND_TRIP = 68, 148  # where Linux's tcp_info has them, each a word of microseconds
_RESTARTS = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")
_REFUSED = 1000  # lines; of more that are refused nothing is said


def through(door: Door, listener: socket.socket | None, seconds: float) -> dict[int, socket.socket]:
    """Meet through a door, which knows whom it let in, and who is missing."""
    check_timeout(seconds)
    deadline = time.monotonic() + seconds
    to = {other: partial(door.call, other, deadline) for other in door.member.called}
    try:
        links = meet_by(door, to, listener, door.member.awaited, deadline)
    finally:
        door.over = True
    for node in links.keys() & door.missing.keys():  # it waits for others still
        links.pop(node).close()
    return links


class Door:
    """One node's side of all its meetings.  over: nobody is called any more.  missing: who is, by number, and why.
    life, lives: names of ends of links.

    Who has met all says so to each, and the meeting is over when all have said it: until then whoever leaves is met
    again, and all wait for it.
    """

    def __init__(self, member: Member, seconds: float, log: Log, *, some: bool = False, life: str = "") -> None:
        member.check()
        self.over, self.some, self._until = False, some, time.monotonic() + seconds
        self.member, self.life, self.lives = member, life or secrets.token_hex(8), dict[int, str]()
        self._member, self._seconds, self._log = member, seconds, log
        self._nodes = Nodes(member.parties, member.names)
        self.missing = dict.fromkeys(member.called, "does not answer yet")
        self.missing |= dict.fromkeys(member.awaited, "has not called")
        self._of = {member.peers[other].certificate.fingerprint: other for other in member.awaited}
        self._lets_in = member.context(member.awaited, ssl.PROTOCOL_TLS_SERVER) if member.awaited else None
        self._calls = {other: member.context([other], ssl.PROTOCOL_TLS_CLIENT) for other in member.called}
        self._again, self._count = time.monotonic() + _REMIND / 2, 0
        self._heard: dict[socket.socket, bytes] = {}  # of those that were told that this node has met all

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
                    self._heard[sock] = bytes(HEADER_BYTES)  # what it said of this was lost: it goes on with the link
                self.missing.pop(other, None)
                return sock
            except OSError as error:
                if left > 0:
                    self.missing[other] = f"{address[0]}:{address[1]} {_reason(error)}"
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
            _prepare(raw)
            sock = self._calls[other].wrap_socket(raw)
            self._check_shown(sock, other)
            words = own.pack()
            sock.sendall(pack(Kind.HELLO, self._member.node, _START, len(words)) + words)
            header = unpack(exactly(sock, HEADER_BYTES, deadline), other, self._nodes)
            if header.kind is Kind.ABORT:
                text = exactly(sock, min(header.length, WORDS_LIMIT), deadline).decode(errors="replace")
                raise ConfigError(f"{who} turned this process away: {hello.shown(text, quoted=False)}")
            if header.kind is not Kind.HELLO or header.length > hello.LIMIT:
                raise ConfigError(f"{who} does not greet: run the same release everywhere")
            theirs = Hello.unpack(exactly(sock, header.length, deadline))
            why = hello.judge(own, theirs, who) or hello.disagreement(own, theirs, who)
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
        """Who called is to show a certificate first."""
        assert self._lets_in is not None
        _prepare(sock)
        return Caller(self._lets_in, sock, self._of)

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
            self.turn_away(greeting, why)
            return why
        with contextlib.suppress(OSError):
            self._reply(greeting, Kind.HELLO, own.pack())
        if why := hello.disagreement(own, greeting.said, who):
            raise ConfigError(f"{why}: agree on one, and start again")
        if goes_on:
            self._heard[greeting.sock] = bytes(HEADER_BYTES)
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

    def turn_away(self, greeting: Caller, why: str) -> None:
        """Say why, here and to the caller, who may go on at once: then it is said already."""
        self._refuse(greeting.place, why)
        with contextlib.suppress(OSError):
            self._reply(greeting, Kind.ABORT, why.encode()[:WORDS_LIMIT])

    def _reply(self, greeting: Caller, kind: Kind, words: bytes) -> None:
        greeting.sock.settimeout(_ATTEMPT)
        greeting.sock.sendall(pack(kind, self._member.node, _START, len(words)) + words)

    def refused(self, greeting: Greeting, why: Exception) -> None:
        """Say that somebody was turned away, and why."""
        assert isinstance(greeting, Caller)
        self._refuse(greeting.place, _reason(why))

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
        if not over and found.keys() != {*self._member.called, *self._member.awaited}:
            return False
        for node, sock in found.items():
            if sock not in self._heard:
                self._heard[sock] = b""
                sock.settimeout(_ATTEMPT)
                with contextlib.suppress(OSError):  # it has left, which is seen next
                    sock.sendall(pack(Kind.READY, self._member.node, _START, 0))
                sock.setblocking(False)
            if not self._has_met_all(node, sock):
                self.missing[node] = "is there, and waits for others"
            else:
                self.missing.pop(node, None)
        return not found.keys() & self.missing.keys()

    def _has_met_all(self, node: int, sock: socket.socket) -> bool:
        if (left := HEADER_BYTES - len(self._heard[sock])) == 0:
            return True
        with contextlib.suppress(OSError):  # nothing yet, or it has left
            self._heard[sock] += sock.recv(left)
        if len(self._heard[sock]) < HEADER_BYTES:
            return False
        if unpack(self._heard[sock], node, self._nodes).kind is not Kind.READY:
            raise ConfigError(f"{self._nodes.name(node)} begins before all have met: run the same release everywhere")
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
        return ", ".join(f"{self._nodes.name(node)} ({why})" for node, why in sorted(self.missing.items()))


class Caller:
    """One who calls: first a certificate, then a hello."""

    def __init__(self, context: ssl.SSLContext, sock: socket.socket, numbers: Mapping[str, int]) -> None:
        self.place = _place_of(sock)
        self.sock: socket.socket = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.claims: int | None = None
        self.said: Hello | None = None
        self._numbers, self._raw, self._wanted = numbers, b"", HEADER_BYTES

    def hear(self) -> int | None:
        """Hear on; nothing is read beyond the hello, and no hello is long."""
        assert isinstance(self.sock, TlsSocket)
        if self.claims is None:
            try:
                self.sock.do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise BlockingIOError from None
            self.claims = self._numbers.get(fingerprint(self.sock.getpeercert(True) or b""))
            if self.claims is None:
                raise ConnectionError("its certificate is nobody's here")
        while len(self._raw) < self._wanted:
            more = self.sock.recv(self._wanted - len(self._raw))
            if not more:
                raise ConnectionError("it left before it had said who it is")
            self._raw += more
            if len(self._raw) == self._wanted == HEADER_BYTES:
                header = unpack(self._raw, self.claims)
                if header.kind is not Kind.HELLO or not 0 < header.length <= hello.LIMIT:
                    raise ConnectionError(f"it begins with no hello of at most {hello.LIMIT:,} bytes")
                self._wanted += header.length
        self.said = Hello.unpack(self._raw[HEADER_BYTES:])
        return self.claims


_REASONS: Sequence[tuple[str, str]] = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "shows no certificate"),
    ("CERTIFICATE_VERIFY_FAILED", "shows a certificate that is not of a peer in this place"),
    ("CERTIFICATE_REQUIRED", "wants this node's certificate"),
    ("UNKNOWN_CA", "does not trust this node's certificate in this place: send it yours, for 'masked keys trust'"),
    ("BAD_CERTIFICATE", "refuses this node's certificate"),
    ("UNSUPPORTED_PROTOCOL", "speaks an older TLS than 1.3"),
    ("PROTOCOL_VERSION", "speaks an older TLS than 1.3"),
    ("WRONG_VERSION_NUMBER", "speaks no TLS"),
    ("HTTP_REQUEST", "speaks plain HTTP, no TLS"),
    ("UNEXPECTED_EOF", "left in the middle of the handshake"),
    ("UNEXPECTED_MESSAGE", "says things of TLS out of turn"),
    ("RECORD_TOO_SMALL", "speaks no TLS"),
    ("PACKET_LENGTH", "speaks no TLS"),
)


def _reason(error: BaseException) -> str:
    """Why a meeting came to nothing, in words."""
    if isinstance(error, ssl.SSLError):
        said = f"{error.reason or ''} {type(error).__name__}".upper()
        if isinstance(error, ssl.SSLEOFError):
            said += " UNEXPECTED_EOF"
        return next(
            (words for key, words in _REASONS if key in said), f"does not speak TLS as it should ({error.reason})"
        )
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return f"does not answer ({error.strerror})"
    return str(error)


def _prepare(sock: socket.socket) -> None:
    """Messages leave at once, and a link that is idle stays known on its way."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_CONGESTION"):
        for way in (_WINDOW,) if round_trip(sock) > _NEAR else _WINDOWS_NEAR:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, way)
                break
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": KEEP_ALIVE, "TCP_KEEPINTVL": _PROBE, "TCP_KEEPCNT": _PROBES}
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def round_trip(sock: socket.socket) -> float:
    """Seconds, the least that TCP has seen, as it met the other side or later; 0 where this system does not say it."""
    told = b""
    if hasattr(socket, "TCP_INFO"):
        with contextlib.suppress(OSError):
            told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LEAST_ROUND_TRIP + 4)
    words = [told[at : at + 4] for at in (_ROUND_TRIP, _LEAST_ROUND_TRIP)]
    return 1e-6 * min((int.from_bytes(word, sys.byteorder) for word in words if len(word) == 4), default=0)


def keeps_window(sock: socket.socket) -> bool:
    """Whether what is sent after a silence finds the window that TCP had before it, as far as this machine says."""
    if hasattr(socket, "TCP_CONGESTION") and _WINDOW in sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16):
        return True
    with contextlib.suppress(OSError):
        return _RESTARTS.read_text().strip() == "0"
    return False


def _place_of(sock: socket.socket) -> str:
    host, port = sock.getpeername()[:2]
    return f"{host}:{port}"

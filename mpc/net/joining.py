"""How nodes of one machine meet: one calls, the other answers.  Knows addresses, tokens and greetings; no rounds.

A greeting is a HELLO with the session's token.  The answer is a HELLO with the same token, or an ABORT that says why
the caller is turned away.  Callers are heard side by side, so that a stranger who says nothing delays nobody.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterable

from ..errors import DEALER, ConfigError, MaskedError, PeerLost
from .frames import ANYBODY, DEALER_NODE, HEADER_BYTES, WORDS_LIMIT, Header, Kind, Nodes, pack, unpack
from .transport import Stamp

_BUFFER = 1 << 20
_START = Stamp(0, bytes(8), "joining")
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


def call(
    node: int,
    other: int,
    address: Address,
    token: bytes,
    deadline: float,
    nodes: Nodes = ANYBODY,
    *,
    patient: bool = True,
) -> socket.socket:
    """Connect to a node that may not listen yet; not patient: to one that must be listening already."""
    check_loopback(address)
    while True:
        sock = socket.socket(_family(address))
        try:
            _prepare(sock)
            sock.settimeout(max(0.1, deadline - time.monotonic()))
            sock.connect(_place(address))
            _check_user(sock)
            if sock.family == socket.AF_INET and sock.getsockname() == sock.getpeername():
                raise ConnectionError("the kernel connected the socket to itself: nobody listens yet")
            sock.sendall(_greeting(node, token))
            _answer(sock, other, token, nodes)
            return sock
        except OSError as error:
            sock.close()
            if not patient or time.monotonic() + 0.05 > deadline:
                raise _unanswered(other, address, nodes) from error
            time.sleep(0.02)
        except BaseException:
            sock.close()
            raise


def take_calls(
    node: int, own: socket.socket, token: bytes, awaited: Iterable[int], deadline: float, nodes: Nodes = ANYBODY
) -> dict[int, socket.socket]:
    """Answer until every node awaited has called; strangers are turned away."""
    missing, found, turned_away = set(awaited), {}, ""
    own.setblocking(False)
    with _Callers(own) as callers:
        try:
            while missing:
                if (left := deadline - time.monotonic()) <= 0:
                    who = nodes.name(min(missing))
                    raise PeerLost(f"{who} did not call in time: is it started?{turned_away}", peer=min(missing))
                for sock, header, text in callers.greetings(left):
                    why = _refusal(header, text, token, missing, nodes)
                    with contextlib.suppress(OSError):
                        sock.sendall(_turn_away(node, why) if why else _greeting(node, token))
                    if why:
                        turned_away = f" (turned away: {why})"
                        sock.close()
                    else:
                        missing.discard(header.sender)
                        found[header.sender] = sock
        except BaseException:
            for sock in found.values():
                sock.close()
            raise
    return found


def _unanswered(other: int, address: Address, nodes: Nodes) -> PeerLost:
    """What it means that nobody answers; the dealer is none of those that are launched together."""
    who, dealer = f"{nodes.name(other)} at {address[0]}:{address[1]}", other == DEALER_NODE
    return PeerLost(f"{who} did not answer: is it started?", peer=DEALER if dealer else other, witness=not dealer)


class _Callers:
    """Connections whose greeting is not complete yet."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        self._said: dict[socket.socket, bytearray] = {}
        self._ready = selectors.DefaultSelector()
        self._ready.register(own, selectors.EVENT_READ)

    def __enter__(self) -> _Callers:
        return self

    def __exit__(self, *_: object) -> None:
        self._ready.close()
        for sock in self._said:
            sock.close()

    def greetings(self, seconds: float) -> list[tuple[socket.socket, Header, bytes]]:
        """Wait, at most so long, and hear on: the greetings that are complete now."""
        complete = []
        for key, _ in self._ready.select(seconds):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            if sock is self._own:
                self._accept()
            elif sock in self._said:
                try:
                    header = _heard(sock, self._said[sock])
                except BlockingIOError:
                    continue
                except (OSError, MaskedError):
                    self._forget(sock)
                    sock.close()
                    continue
                if header is not None:
                    complete.append((sock, header, bytes(self._forget(sock)[HEADER_BYTES:])))
        return complete

    def _accept(self) -> None:
        try:
            sock, _ = self._own.accept()
        except OSError:  # the caller has left again
            return
        try:
            _check_user(sock)
        except (OSError, ConfigError):
            sock.close()
            return
        sock.setblocking(False)
        _prepare(sock)
        if len(self._said) == _CALLERS:
            eldest = next(iter(self._said))
            self._forget(eldest)
            eldest.close()
        self._said[sock] = bytearray()
        self._ready.register(sock, selectors.EVENT_READ)

    def _forget(self, sock: socket.socket) -> bytearray:
        self._ready.unregister(sock)
        return self._said.pop(sock)


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_UNIX if address[0].startswith("@") else socket.AF_INET


def _place(address: Address) -> str | Address:
    """An address as the kernel takes it: an abstract name begins with a zero byte."""
    return "\0" + address[0][1:] if address[0].startswith("@") else address


def _check_user(sock: socket.socket) -> None:
    """A kernel socket's name is everybody's to see and, once it is free, to take: the other end must be ours."""
    if sock.family == socket.AF_UNIX:
        _, user, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if user != os.getuid():
            raise ConfigError(f"the other end of a party's socket is of user {user}: start all parties as one user")


def _prepare(sock: socket.socket) -> None:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def _greeting(node: int, token: bytes) -> bytes:
    return pack(Kind.HELLO, node, _START, len(token)) + token


def _turn_away(node: int, why: str) -> bytes:
    text = why.encode()[:WORDS_LIMIT]
    return pack(Kind.ABORT, node, _START, len(text)) + text


def _heard(sock: socket.socket, said: bytearray) -> Header | None:
    """Hear on; the header when the greeting is complete."""
    more = sock.recv(HEADER_BYTES + WORDS_LIMIT - len(said))
    if not more:
        raise ConnectionError("closed during the greeting")
    said += more
    if len(said) < HEADER_BYTES:
        return None
    header = unpack(bytes(said[:HEADER_BYTES]), 0)
    if header.kind is not Kind.HELLO or header.length > WORDS_LIMIT:
        raise ConnectionError("this is no greeting")
    return header if len(said) >= HEADER_BYTES + header.length else None


def _refusal(header: Header, text: bytes, token: bytes, missing: set[int], nodes: Nodes) -> str:
    """Why a caller is turned away; nothing if it is welcome."""
    who = nodes.name(header.sender)
    if not hmac.compare_digest(text, token):
        return f"{who} belongs to another session: start all parties with the same token"
    if header.sender not in missing:
        return f"{who} has joined already, or is not part of this session: give each process a number of its own"
    return ""


def _answer(sock: socket.socket, other: int, token: bytes, nodes: Nodes) -> None:
    """Hear what the one called says to our greeting."""
    header = unpack(_exactly(sock, HEADER_BYTES), other, nodes)
    if header.length > WORDS_LIMIT:
        raise ConfigError(f"{nodes.name(other)} does not greet: check its address")
    text = _exactly(sock, header.length)
    if header.kind is Kind.ABORT:
        raise ConfigError(f"{nodes.name(other)} turned this process away: {text.decode(errors='replace')}")
    if header.kind is not Kind.HELLO or header.sender != other:
        answering = nodes.name(header.sender)
        raise ConfigError(f"{answering} answers where {nodes.name(other)} is expected: check the addresses")
    if not hmac.compare_digest(text, token):
        raise ConfigError(f"{nodes.name(other)} belongs to another session: start all parties with the same token")


def _exactly(sock: socket.socket, count: int) -> bytes:
    raw = b""
    while len(raw) < count:
        more = sock.recv(count - len(raw))
        if not more:
            raise ConnectionError("closed during the greeting")
        raw += more
    return raw

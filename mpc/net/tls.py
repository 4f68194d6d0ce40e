"""A mesh between machines: mutual TLS 1.3.  Knows certificates, addresses and deadlines; no shares.

Who dials whom: a node calls all parties with lower numbers and is called by those with higher ones.  Clients have the
highest numbers and do not listen, so they may sit behind NAT.  Each node has the certificates of its peers, and trusts
these alone, each in its own place: an answerer lets in whoever of them shows the certificate of the number it claims.

Rounds, their deadlines and last words are those of `mesh`, over sockets that encrypt: see `TlsSocket`.  Bytes that
a record brought beyond what was asked for are in no poll, hence `unread`; nothing else of that page differs.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Mapping

from ..errors import ConfigError
from .client_mesh import ClientMesh
from .door import Door, through
from .links import Link
from .member import RECORD, Log, Member, Met
from .mesh import Mesh
from .party_mesh import PartyMesh
from .transport import DEFAULT_TIMEOUT, check_timeout

_QUEUE = 64  # callers that the kernel keeps


def _unread(sock: socket.socket) -> bool:
    if isinstance(sock, Link):
        return sock.unread()
    return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0


class Tls(PartyMesh):
    """A computing party's end."""

    small = RECORD  # which the smallest of buffers takes

    @classmethod
    def join(
        cls, member: Member, listener: socket.socket, *, timeout: float = DEFAULT_TIMEOUT,
        starting: float | None = None, log: Log = lambda _: None,
    ) -> Tls:  # fmt: skip
        """Meet the other parties and all clients.  timeout: of a round.  starting: until all have met, else as many.

        log: told who is missing, and who was refused and why.
        """
        return cls.over(member, meet(member, listener, timeout=timeout, starting=starting, log=log), timeout, log)

    @classmethod
    def over(cls, member: Member, links: Mapping[int, socket.socket], timeout: float, log: Log = lambda _: None) -> Tls:
        """The same, of one that has met all."""
        peers = {node: links[node] for node in member.computed_with}
        return cls(member.node, member.parties, peers, timeout, member.names, unread=_unread, stalled=log)


class TlsClient(ClientMesh):
    """A client's end: it calls all parties."""

    @classmethod
    def join(
        cls, member: Member, *, timeout: float = DEFAULT_TIMEOUT, starting: float | None = None,
        log: Log = lambda _: None,
    ) -> TlsClient:  # fmt: skip
        """Meet all parties; as a party does."""
        return cls.over(member, meet(member, None, timeout=timeout, starting=starting, log=log), timeout, log)

    @classmethod
    def over(
        cls, member: Member, links: Mapping[int, socket.socket], timeout: float, log: Log = lambda _: None
    ) -> TlsClient:
        """The same, of one that has met all."""
        peers = {node: links[node] for node in member.computed_with}
        return cls(member.node, member.parties, peers, timeout, member.names, unread=_unread, stalled=log)


def let_idle(links: Met) -> None:
    """From here on nothing keeps a link alive that nobody uses."""
    for sock in links.values():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0)


def version_of(sock: socket.socket) -> str | None:
    """Of TLS, that a link speaks."""
    return sock.version() if isinstance(sock, ssl.SSLSocket) else None


def over(member: Member, links: Mapping[int, socket.socket], timeout: float, log: Log = lambda _: None) -> Mesh:
    """All links alike, for messages outside any round."""
    return Mesh(member.node, member.parties, dict(links), timeout, member.names, unread=_unread, stalled=log)


Listener = socket.socket
"""As `listen_on` makes it."""


def listen_on(host: str, port: int) -> Listener:
    """A listening socket at an address of this machine."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_QUEUE)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host}:{port}: {why}; choose another address or port") from error


def meet(
    member: Member, listener: socket.socket | None, *, timeout: float = DEFAULT_TIMEOUT, starting: float | None = None,
    log: Log = lambda _: None,
) -> dict[int, socket.socket]:  # fmt: skip
    """Connections to all that this node has links with.  listener: of one that is called; it is closed."""
    check_timeout(timeout)
    seconds = timeout if starting is None else starting
    with listener or contextlib.nullcontext():
        return through(Door(member, seconds, log), listener, seconds)


def meet_some(
    member: Member, listener: socket.socket | None, seconds: float, log: Log = lambda _: None
) -> tuple[dict[int, socket.socket], dict[int, str]]:
    """Connections to those who are there in time, and why each other one is not."""
    door = Door(member, seconds, log, some=True)
    with listener or contextlib.nullcontext():
        return through(door, listener, seconds), door.missing

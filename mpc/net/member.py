"""Who is who in a session between machines: its nodes, their certificates and places.  Knows TLS; meets nobody.

A node calls all parties with lower numbers and is called by those with higher ones.  It has the certificates of its
peers, and trusts these alone, each in its own place.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from . import hello
from .certificates import Certificate
from .hello import Hello, Public
from .joining import Address

_VERSION = 2
RECORD = 1 << 14
"""Bytes that are encrypted together."""
Log = Callable[[str], None]
Links = frozenset[tuple[int, int]]
"""As (who calls, who is called)."""
Met = Mapping[int, socket.socket]
"""Connections to others, by node."""


@dataclass(frozen=True)
class Peer:
    """Another node.  address: where it listens; None of one that calls."""

    certificate: Certificate
    address: Address | None = None


@dataclass(frozen=True)
class Member:
    """A node of a session between machines, and all that it knows of the others.

    key_file, certificate_file: its own, in PEM.  peers: by number.  names: of all nodes.  public: what all must agree
    on.  beside: links beyond those that parties need.
    """

    node: int
    parties: int
    names: tuple[str, ...]
    session: str
    certificate: Certificate
    certificate_file: Path
    key_file: Path = field(repr=False)
    peers: Mapping[int, Peer]
    public: Public = field(default_factory=dict, repr=False)
    beside: Links = frozenset()

    @property
    def called(self) -> list[int]:
        """Whom it calls: all parties before it."""
        return called_by(self.node, self.parties, self.beside)

    @property
    def awaited(self) -> list[int]:
        """Who calls it."""
        return calling(self.node, self.parties, len(self.names), self.beside)

    @property
    def linked(self) -> list[tuple[int, int]]:
        """All links of the session, in one order that all nodes know."""
        needed = {(one, other) for one in range(self.parties) for other in range(one + 1, len(self.names))}
        return sorted(needed | {(min(link), max(link)) for link in self.beside})

    @property
    def computed_with(self) -> list[int]:
        """Whom rounds are played with: of a party all others, of a client the parties."""
        return [q for q in range(len(self.names) if self.node < self.parties else self.parties) if q != self.node]

    def check(self) -> None:
        """ConfigError where a peer is missing, or two nodes have one certificate."""
        owners = {self.certificate.fingerprint: self.node}
        for other in (*self.called, *self.awaited):
            if other not in self.peers:
                raise ConfigError(f"{self.names[other]} is no peer here: give its certificate")
            peer = self.peers[other]
            if other in self.called and peer.address is None:
                raise ConfigError(f"{self.names[other]} has no address here, and {self.names[self.node]} calls it")
            if (same := owners.setdefault(peer.certificate.fingerprint, other)) != other:
                raise ConfigError(f"{self.names[other]} and {self.names[same]} have one certificate: each has its own")

    def hello(self, to: int, echo: str = "", life: str = "", knows: str = "", received: int = 0) -> Hello:
        """Its word to another node, with a fresh nonce."""
        mine, yours = self.certificate.fingerprint, self.peers[to].certificate.fingerprint
        digest, nonce = hello.digest_of(self.public), secrets.token_hex(32)
        return Hello(
            _VERSION, self.node, to, self.session, nonce, echo, mine, yours, digest, life, knows, received, self.public
        )

    def context(self, others: Iterable[int], side: int) -> ssl.SSLContext:
        """TLS 1.3 with these nodes alone."""
        context = ssl.SSLContext(side)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # a certificate is compared as a whole, by whose it is
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_cert_chain(self.certificate_file, self.key_file)
        context.load_verify_locations(cadata="".join(self.peers[other].certificate.pem for other in others))
        context.sslsocket_class = TlsSocket
        if side == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0  # nobody comes back to a session of TLS
        return context


def called_by(node: int, parties: int, beside: Links = frozenset()) -> list[int]:
    """Whom a node calls: all parties before it, and who is named beside."""
    return sorted({p for p in range(parties) if p < node} | {called for caller, called in beside if caller == node})


def calling(node: int, parties: int, nodes: int, beside: Links = frozenset()) -> list[int]:
    """Who calls a node."""
    behind = {q for q in range(nodes) if q > node} if node < parties else set()
    return sorted(behind | {caller for caller, called in beside if called == node})


class TlsSocket(ssl.SSLSocket):
    """A connection that encrypts, and otherwise behaves as a plain socket does.

    What would wait raises BlockingIOError; a send takes whole lists, and as much as there is room for; to shut down the
    way out leaves the way in.
    """

    def send(self, data: Any, flags: int = 0) -> int:
        """As much as the kernel takes; what it did not take must be the beginning of what is sent next.

        A record at a time: of several at once, some may have arrived when none is said to be sent.
        """
        done = 0
        try:
            if len(data) <= RECORD:
                return self.write(data)
            view = memoryview(data)
            while done < len(view):
                done += self.write(view[done : done + RECORD])
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            if not done:
                raise BlockingIOError from None
        except OSError:  # what went before counts, since it may have arrived; the next call fails alike
            if not done:
                raise
        return done

    def sendmsg(self, buffers: Iterable[Any], *_: Any) -> int:  # type: ignore[override]
        """All parts, as one."""
        return self.send(b"".join(buffers))

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """What is there, decrypted."""
        try:
            return super().recv(buflen)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """The same, into a buffer."""
        try:
            return self.read(nbytes or len(buffer), buffer)  # type: ignore[return-value]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        """Of the connection; what still comes is decrypted."""
        socket.socket.shutdown(self, how)

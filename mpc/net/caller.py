"""Who calls from another machine, until it has said who it is; and why a meeting came to nothing, in words.

Knows TLS, certificates and hellos; no door.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence

from . import hello
from .certificates import fingerprint
from .frames import HEADER_BYTES, Kind, Nodes, unpack
from .hello import Hello
from .member import TlsSocket


class Caller:
    """One who calls: first a certificate, then a hello."""

    def __init__(
        self, context: ssl.SSLContext, sock: socket.socket, numbers: Mapping[str, int], nodes: Nodes
    ) -> None:  # fmt: skip
        self.place = place_of(sock)
        self.sock: socket.socket = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.claims: int | None = None
        self.said: Hello | None = None
        self._numbers, self._nodes, self._raw, self._wanted = numbers, nodes, b"", HEADER_BYTES

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
                header = unpack(self._raw, self.claims, self._nodes)
                if header.kind is not Kind.HELLO or not 0 < header.length <= hello.LIMIT:
                    raise ConnectionError(f"it begins with no hello of at most {hello.LIMIT:,} bytes")
                self._wanted += header.length
        self.said = Hello.unpack(self._raw[HEADER_BYTES:])
        return self.claims


_OUT_OF_TIME = 9, 10  # of OpenSSL: not yet, and no more
_REASONS: Sequence[tuple[str, str]] = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "shows no certificate"),
    ("CERTIFICATE_VERIFY_FAILED", "shows a certificate that is not of a peer in this place"),
    ("CERTIFICATE_REQUIRED", "wants this node's certificate"),
    ("UNKNOWN_CA", "does not trust this node's certificate in this place: send it yours, for 'masked keys trust'"),
    ("CERTIFICATE_EXPIRED", "finds that this node's certificate is not valid at its machine's time"),
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


def says_why(error: BaseException) -> bool:
    """Whether it is of TLS, and not of a peer that is gone: that may come of it, and then says less."""
    return isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError))


def reason(error: BaseException) -> str:
    """Why a meeting came to nothing, in words."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OUT_OF_TIME:
        return "shows a certificate that is not valid at this machine's time"
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


def place_of(sock: socket.socket) -> str:
    host, port = sock.getpeername()[:2]
    return f"{host}:{port}"

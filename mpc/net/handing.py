"""Messages and open descriptors handed from one process of this machine to another.  Knows one pair of sockets."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

_SIZE = struct.Struct(">I")
_DESCRIPTORS = 64  # more than come with a message


class Line:
    """One end.  What goes wrong with it is an OSError, the other's end included."""

    def __init__(self, descriptor: int) -> None:
        self._sock = socket.socket(fileno=descriptor)

    @classmethod
    def pair(cls) -> tuple[Line, Line]:
        """Both ends."""
        one, other = socket.socketpair()
        return cls(one.detach()), cls(other.detach())

    def send(self, message: Any, descriptors: Sequence[int] = (), *, seconds: float | None = None) -> None:
        """Say something in JSON, behind its length, and hand over copies of these."""
        self._sock.settimeout(seconds)
        raw = json.dumps(message).encode()
        header = _SIZE.pack(len(raw))
        if socket.send_fds(self._sock, [header], descriptors) < len(header):
            raise ConnectionError("a header was cut short")
        self._sock.sendall(raw)

    def receive(self, *, seconds: float | None = None) -> tuple[Any, list[int]]:
        """The next message, and the descriptors that came with it."""
        self._sock.settimeout(seconds)
        header, descriptors, _, _ = socket.recv_fds(self._sock, _SIZE.size, _DESCRIPTORS)
        (size,) = _SIZE.unpack(header + self._exactly(_SIZE.size - len(header)))
        return json.loads(self._exactly(size)), descriptors

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            if not (more := self._sock.recv(size - len(found))):
                raise ConnectionResetError("the other end is gone")
            found += more
        return bytes(found)

    def end(self, *, seconds: float) -> None:
        """Nothing more is said from here; wait for the other's end."""
        self._sock.shutdown(socket.SHUT_WR)
        self._sock.settimeout(seconds)
        self._sock.recv(1)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._sock.fileno()

    def detach(self) -> int:
        """The descriptor, which is the caller's from now on."""
        return self._sock.detach()

    def close(self) -> None:
        """This end is gone; once more does nothing."""
        self._sock.close()

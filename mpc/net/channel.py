"""A one-way stream of framed messages on loopback: from a dealer to one party.  Knows bytes; no items."""

from __future__ import annotations

import socket
import struct
import time

from ..errors import PeerLost
from .tcp import Address, call, listen, take_call
from .transport import DEFAULT_TIMEOUT

_LENGTH = struct.Struct("<Q")


class Channel:
    """A connected socket that carries messages with a length in front."""

    def __init__(self, sock: socket.socket, what: str) -> None:
        self._sock = sock
        self._what = what
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: bytes) -> None:
        """Send a message; waits while the receiver is far behind."""
        try:
            self._sock.sendall(_LENGTH.pack(len(message)))
            self._sock.sendall(message)
        except OSError as error:
            raise PeerLost(f"{self._what} closed its connection: it died or was stopped", peer=-1) from error

    def receive(self) -> bytes | None:
        """The next message; None when the sender has closed in peace."""
        head = self._exactly(_LENGTH.size, at_start=True)
        if head is None:
            return None
        return self._exactly(_LENGTH.unpack(head)[0])

    def _exactly(self, count: int, *, at_start: bool = False) -> bytes | None:
        buffer = bytearray(count)
        view, done = memoryview(buffer), 0
        while done < count:
            try:
                got = self._sock.recv_into(view[done:])
            except OSError as error:
                raise PeerLost(f"{self._what} closed its connection: it died or was stopped", peer=-1) from error
            if not got and done == 0 and at_start:
                return None
            if not got:
                raise PeerLost(f"{self._what} closed its connection in the middle of a message", peer=-1)
            done += got
        return bytes(buffer)

    def close(self) -> None:
        """Close."""
        self._sock.close()


def call_dealer(party: int, address: Address, token: bytes, timeout: float = DEFAULT_TIMEOUT) -> Channel:
    """A party's connection to the dealer."""
    return Channel(call(party, DEALER_NODE, address, token, time.monotonic() + timeout), "the dealer")


def await_parties(
    parties: int, listener: socket.socket, token: bytes, timeout: float = DEFAULT_TIMEOUT
) -> dict[int, Channel]:
    """The dealer's connections to all parties."""
    waiting, channels, deadline = set(range(parties)), {}, time.monotonic() + timeout
    while waiting:
        sock, party = take_call(DEALER_NODE, listener, token, waiting, deadline)
        waiting.discard(party)
        channels[party] = Channel(sock, f"party {party}")
    return channels


DEALER_NODE = 0xFFFF
__all__ = ["Channel", "await_parties", "call_dealer", "listen"]

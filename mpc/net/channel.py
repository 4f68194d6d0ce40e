"""A one-way stream of framed messages on loopback: from a dealer to one party.  Knows bytes; no items."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

from ..errors import DEALER, PeerLost
from ..prg import Unshared
from .frames import DEALER_NODE
from .joining import Address, call, calls, listen
from .keys import Keys
from .transport import DEFAULT_TIMEOUT

_LENGTH = struct.Struct("<Q")
_ANY = 1 << 40
_MOMENT = 1e-4  # seconds in which what is there already is taken, though the time for it is over


class Channel(Unshared):
    """A connected socket that carries messages with a length in front.

    what, peer: who is at the other end.  together: whether that was launched together with this process, which then is
    a witness of its end.
    """

    ahead = True  # it may be read by a thread of its own

    def __init__(self, sock: socket.socket, what: str, *, peer: int = DEALER, together: bool = True) -> None:
        super().__init__()
        self._sock = sock
        self._what = what
        self._peer, self._together = peer, together
        sock.settimeout(None)
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: bytes, *, timeout: float | None = None) -> None:
        """Send a message; waits while the receiver is far behind, at most `timeout` seconds."""
        self.require_own()
        try:
            self._sock.settimeout(timeout)
            self._sock.sendall(_LENGTH.pack(len(message)))
            self._sock.sendall(message)
        except TimeoutError as error:
            raise self._lost(f"took nothing for {timeout:g} s: it hangs") from error
        except OSError as error:
            raise self._lost() from error

    def receive(self, *, timeout: float | None = None, limit: int = _ANY) -> bytes | None:
        """The next message, of at most `limit` bytes; None when the sender has closed between two messages.

        Waits at most `timeout` seconds for the whole of it, or for as long as the sender lives.
        """
        self.require_own()
        until = None if timeout is None else time.monotonic() + timeout
        try:
            head = self._exactly(_LENGTH.size, until, at_start=True)
            if head is None:
                return None
            (length,) = _LENGTH.unpack(head)
            if length > limit:
                raise self._lost(f"announces {length} bytes where {limit} are due: is it the same release?")
            return self._exactly(length, until)
        except TimeoutError as error:
            raise self._lost(f"was silent for {timeout:g} s: it hangs") from error
        except OSError as error:
            raise self._lost() from error

    def _exactly(self, count: int, until: float | None, *, at_start: bool = False) -> bytes | None:
        buffer = bytearray(count)
        view, done = memoryview(buffer), 0
        while done < count:
            self._sock.settimeout(None if until is None else max(_MOMENT, until - time.monotonic()))
            got = self._sock.recv_into(view[done:])
            if not got and done == 0 and at_start:
                return None
            if not got:
                raise self._lost("closed its connection in the middle of a message")
            done += got
        return bytes(buffer)

    def _lost(self, how: str = "closed its connection: it died or was stopped") -> PeerLost:
        return PeerLost(f"{self._what} {how}", peer=self._peer, witness=self._together)

    def close(self) -> None:
        """Close, and wake up a thread that waits in `receive`; a forked half lets go of what is its parent's."""
        if not self.forked:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


def adopt(descriptor: int) -> socket.socket:
    """The listening socket that a launcher handed down by its descriptor."""
    return socket.socket(fileno=descriptor)


def call_dealer(party: int, address: Address, keys: Keys, timeout: float = DEFAULT_TIMEOUT) -> Channel:
    """A party's connection to the dealer, which listens before any party is started."""
    sock = call(party, DEALER_NODE, address, keys, time.monotonic() + timeout, patient=False)
    return Channel(sock, "the dealer", together=False)


def await_parties(
    parties: int, listener: socket.socket, keys: Keys, timeout: float = DEFAULT_TIMEOUT
) -> Iterator[tuple[int, Channel]]:
    """The dealer's connections to all parties, each as it calls."""
    for party, sock in calls(DEALER_NODE, listener, keys, range(parties), time.monotonic() + timeout):
        yield party, Channel(sock, f"party {party}", peer=party)


__all__ = ["Channel", "adopt", "await_parties", "call_dealer", "listen"]

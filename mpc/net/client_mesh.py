"""A client's end of a mesh: it has links with the parties alone."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence

import numpy as np

from .frames import HEADER_BYTES, Header, Kind, expect, noted_stamp, pack
from .links import Link
from .mesh import Mesh
from .transport import Stamp

_FOREVER = 1e9  # seconds
_MOMENT = 5.0  # seconds in which all parties end


class ClientMesh(Mesh):
    """A client's end: it is connected to the parties only."""

    def __init__(
        self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float, names: Sequence[str] = (), *,
        unread: Callable[[socket.socket], bool] = lambda _: False, stalled: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(node, parties, peers, timeout, names, unread=unread, stalled=stalled)
        self._sent, self._received = [0] * parties, 0

    def send(self, payloads: np.ndarray, what: str) -> None:
        """Row p to party p."""
        self._begin()
        for party, payload in enumerate(payloads):
            self._send_next(party, memoryview(payload), what)

    def send_to(self, party: int, payload: bytes, what: str) -> None:
        """To one party alone."""
        self._begin()
        self._send_next(party, memoryview(payload), what)

    def _send_next(self, party: int, payload: memoryview, what: str) -> None:
        self._sent[party] += 1
        self._tell(party, payload, Stamp(self._sent[party], bytes(8), what))

    def await_end(self) -> None:
        """Nothing more is to be said: hear that every party has ended its program; the error of one that failed.

        However long that takes: a party that is gone is noticed, and one that hangs is missed by the others.  A party
        ends when all parties have all, so behind the first the others are waited for a moment only, and not missed: one
        that has died, or whose link carries nothing, would never bring its word.
        """
        self._timeout = _FOREVER
        self._begin()
        self._said = self._told = True
        stamp, left, raw = Stamp(0, bytes(8), "waiting for the end"), set(self._peers), dict[int, bytes]()
        while left and time.monotonic() < self._until:
            if len(left) == len(self._peers):
                self._check_links(stamp)
            else:
                left = {party for party in left if not isinstance(link := self._peers[party], Link) or not link.lost}
            ready = [party for party in left if self._is_there(party)]
            for party in ready:
                if (header := self._come(party, raw, stamp)) is not None and self._has_ended(party, header, stamp):
                    left.discard(party)
                    self._until = time.monotonic() + _MOMENT
            if not ready:
                self._polled(dict.fromkeys(left, select.POLLIN), self._until)

    def _is_there(self, party: int) -> bool:
        """Whether something is to be read of it now."""
        sock, poll = self._peers[party], select.poll()
        if self._unread(sock) or sock.fileno() < 0:
            return self._unread(sock)
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))

    def _has_ended(self, party: int, header: Header, stamp: Stamp) -> bool:
        """What it says: whether that is its end."""
        link = self._peers[party]
        if header.kind is Kind.ABORT:
            raise self._aborted(party, header, b"")
        if header.kind is Kind.ARRIVED and isinstance(link, Link):
            link.arrived(header.round)
        elif header.kind not in (Kind.BYE, Kind.WAITS):
            expect(header, party, stamp, 0, self.nodes, self.node)
        if header.kind is Kind.BYE and isinstance(link, Link):  # its other end wants nothing more
            link.leave()
        return header.kind is Kind.BYE

    def receive(self, count: int, what: str) -> np.ndarray:
        """(parties, count) bytes, row p from party p."""
        self._begin()
        self._received += 1
        stamp = Stamp(self._received, bytes(8), what)
        rows = np.empty((self.parties, HEADER_BYTES + count), np.uint8)
        for party in range(self.parties):
            self._receive(party, memoryview(rows[party]), stamp)
        return np.ascontiguousarray(rows[:, HEADER_BYTES:])

    def say_noted(self, done: int) -> None:
        """To all parties."""
        self._begin()
        for party in self._peers:
            if self._send(party, [pack(Kind.NOTED, self.node, stamp := noted_stamp(done), 0)], stamp) is not None:
                raise self._broken(party, stamp)

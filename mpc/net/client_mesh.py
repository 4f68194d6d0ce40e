"""A client's end of a mesh: it has links with the parties alone."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import Desync
from .frames import HEADER_BYTES, Kind, noted_stamp, pack, unpack
from .links import Link
from .mesh import Mesh
from .transport import Stamp

_FOREVER = 1e9  # seconds


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

        However long that takes: a party that is gone is noticed, and one that hangs is missed by the others.
        """
        self._timeout = _FOREVER
        self._begin()
        self._said = self._told = True
        for party in self._peers:
            stamp = Stamp(0, bytes(8), "waiting for the end")
            raw = bytearray(HEADER_BYTES)
            try:
                self._receive(party, memoryview(raw), stamp)
            except Desync:
                if unpack(bytes(raw), party, self.nodes).kind is not Kind.BYE:
                    raise
            if isinstance(link := self._peers[party], Link):  # its other end wants nothing more
                link.leave()

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

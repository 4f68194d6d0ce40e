"""What a link between two nodes can do: round trip, bandwidth, clocks.  Knows meshes and frames; no shares.

All pairs take turns, in one order that all nodes know, so each link is measured alone.  One of a pair asks, the other
answers with what it heard:

    a few bytes, `_TRIES` times          the round trip is the median; the answer has the other's clock
    `_LARGE` bytes, to and fro           the bandwidth, what the round trip takes left out
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from ..errors import PeerLost
from .mesh import Mesh
from .transport import Stamp

_TRIES = 11
_LARGE = 1 << 20
_CLOCK = struct.Struct("<d")
_START = _CLOCK.size


@dataclass(frozen=True)
class Link:
    """round_trip: seconds.  bandwidth: bytes a second.  clock: seconds by which the other's is ahead of this one's."""

    peer: int
    round_trip: float
    bandwidth: float
    clock: float


def probe(
    mesh: Mesh, pairs: Sequence[tuple[int, int]], met: Container[int], *,
    seconds: Callable[[], float] = time.perf_counter, clock: Callable[[], float] = time.time,
) -> dict[int, Link | PeerLost]:  # fmt: skip
    """Measure this node's links, of all pairs that have one; all nodes do so at once.

    met: whom this node has a link with; the others are passed over.  A link that ends meanwhile gives its error.
    """
    found: dict[int, Link | PeerLost] = {}
    for number, (one, other) in enumerate(pairs):
        peer = other if mesh.node == one else one
        if mesh.node in (one, other) and peer in met:
            try:
                found[peer] = _measured(mesh, peer, mesh.node == one, number, seconds, clock)
            except PeerLost as error:
                found[peer] = error
    return found


def _measured(
    mesh: Mesh, peer: int, asks_first: bool, number: int, seconds: Callable[[], float], clock: Callable[[], float]
) -> Link:
    """Both of a pair ask, one after the other, and measure while they do."""
    if asks_first:
        link = _asked(mesh, peer, number, seconds, clock)
        _answered(mesh, peer, number, clock)
    else:
        _answered(mesh, peer, number, clock)
        link = _asked(mesh, peer, number, seconds, clock)
    return link


def _asked(mesh: Mesh, peer: int, number: int, seconds: Callable[[], float], clock: Callable[[], float]) -> Link:
    trips, ahead = [], []
    for _ in range(_TRIES):
        before, own = seconds(), clock()
        mesh.say(peer, bytes(_START), _stamp(number, "small"))
        (theirs,) = _CLOCK.unpack(mesh.hear(peer, _START, _stamp(number, "small")))
        trips.append(seconds() - before)
        ahead.append(theirs - own - trips[-1] / 2)
    before = seconds()
    mesh.say(peer, bytes(_LARGE), _stamp(number, "large"))
    mesh.hear(peer, _LARGE, _stamp(number, "large"))
    trip = statistics.median(trips)
    moved = max(1e-9, seconds() - before - trip)
    return Link(peer, trip, 2 * _LARGE / moved, statistics.median(ahead))


def _answered(mesh: Mesh, peer: int, number: int, clock: Callable[[], float]) -> None:
    for _ in range(_TRIES):
        mesh.hear(peer, _START, _stamp(number, "small"))
        mesh.say(peer, _CLOCK.pack(clock()), _stamp(number, "small"))
    mesh.say(peer, mesh.hear(peer, _LARGE, _stamp(number, "large")), _stamp(number, "large"))


def _stamp(number: int, what: str) -> Stamp:
    return Stamp(number, bytes(8), f"probe of a link, {what}")

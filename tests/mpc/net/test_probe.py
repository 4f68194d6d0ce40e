"""What is measured of a link: its round trip, what it carries in a second, and how far apart two clocks are."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from mpc.errors import PeerLost
from mpc.net.probe import Link, probe

CLOCK = struct.Struct("<d")


class Wire:
    """A mesh of node 0 to nodes that answer at once, over links with a delay and a speed; time passes as it waits."""

    node = 0

    def __init__(self, delay: float, speed: float, ahead: float, lost: tuple[int, ...] = ()) -> None:
        self._delay, self._speed, self._ahead, self._lost, self.now = delay, speed, ahead, lost, 1000.0

    def say(self, peer: int, content: bytes, stamp: Any) -> None:
        if peer in self._lost:
            raise PeerLost(f"party {peer} left", peer=peer)

    def hear(self, peer: int, count: int, stamp: Any) -> bytes:
        small = count == CLOCK.size
        self.now += self._delay + (0.0 if small else 2 * count / self._speed)
        return CLOCK.pack(self.now - self._delay / 2 + self._ahead) if small else bytes(count)


def measured(wire: Any, pairs: list[tuple[int, int]], met: tuple[int, ...]) -> dict[int, Link | PeerLost]:
    return probe(wire, pairs, met, seconds=lambda: wire.now, clock=lambda: wire.now)


@pytest.mark.parametrize("pair", [(0, 2), (2, 0)], ids=["asks first", "answers first"])
@pytest.mark.parametrize(("delay", "speed", "ahead"), [(0.04, 1e7, 3.0), (2e-4, 5e8, -0.5), (0.5, 1e5, 0.0)])
def test_a_link_is_measured(delay: float, speed: float, ahead: float, pair: tuple[int, int]) -> None:
    found = measured(Wire(delay, speed, ahead), [(1, 2), pair], (1, 2))
    link = found.pop(2)
    assert not found and isinstance(link, Link) and link.peer == 2
    assert (link.round_trip, link.bandwidth, link.clock) == pytest.approx((delay, speed, ahead), rel=1e-6, abs=1e-6)


def test_a_link_that_takes_no_time_is_no_division_by_zero() -> None:
    link = measured(Wire(0.0, float("inf"), 0.0), [(0, 1)], (1,))[1]
    assert isinstance(link, Link) and link.bandwidth >= 1e15


def test_of_a_link_that_ends_its_error_is_given_and_one_that_is_not_there_is_passed_over() -> None:
    found = measured(Wire(0.01, 1e7, 0.0, lost=(1,)), [(0, 1), (0, 2), (0, 3)], (1, 3))
    assert isinstance(found[1], PeerLost) and isinstance(found[3], Link) and len(found) == 2

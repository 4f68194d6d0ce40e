"""Seeds that two parties share are made of a half of each: neither chooses one alone, and neither can repeat one."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpc.net.memory import Memory
from mpc.net.transport import Stamp
from mpc.pairs import PairStreams, agree_on_pairs
from mpc.prg import KEY_BYTES, Prg


class Answering(Memory):
    """One party's way to peers who say what they are told to.  said: their halves.  sent: its own, by peer."""

    def __init__(self, party: int, said: Mapping[int, bytes]) -> None:
        super().__init__(len(said) + 1)
        self.hosted, self.said, self.sent = (party,), said, dict[int, bytes]()

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        (me,) = self.hosted
        self.sent = {q: half.tobytes() for q, half in direct.items()}
        rows = [self.said.get(p, self.sent[me]) for p in range(self.parties)]
        return np.repeat(common, self.parties, axis=0), {me: np.stack([np.frombuffer(row, np.uint8) for row in rows])}


def agreed(party: int, said: Mapping[int, bytes]) -> tuple[PairStreams, dict[int, bytes]]:
    """One party's streams, and the halves that it sent."""
    source: Any = SimpleNamespace(statement=lambda: b"", agree=lambda _: None)
    transport = Answering(party, said)
    return agree_on_pairs(transport, source, None), transport.sent


@pytest.mark.parametrize("party", [0, 1, 2])
def test_a_pair_s_seed_is_of_both_halves(party: int) -> None:
    said = {q: bytes(range(q, q + KEY_BYTES)) for q in range(3) if q != party}
    streams, sent = agreed(party, said)
    for q, theirs in said.items():
        both = bytes(a ^ b for a, b in zip(sent[q], theirs))
        words = streams.words(party, q, (4,)).tolist()
        assert words == Prg(both).words((4,)).tolist()
        assert words not in [Prg(half).words((4,)).tolist() for half in (sent[q], theirs)]


def test_both_ends_make_the_same_of_them() -> None:
    first, sent = agreed(0, {1: bytes(range(KEY_BYTES))})
    answered = Prg(bytes(a ^ b for a, b in zip(sent[1], range(KEY_BYTES)))).words((4,))
    assert (first.words(1, 0, (4,)) == answered).all()


def test_halves_are_fresh_and_each_peer_s_its_own() -> None:
    """So a peer that says what it said before has another seed all the same."""
    said = {1: bytes(KEY_BYTES), 2: bytes(KEY_BYTES)}
    (first, one), (second, other) = agreed(0, said), agreed(0, said)
    assert len({one[1], one[2], other[1], other[2]}) == 4
    assert (first.words(0, 1, (4,)) != second.words(0, 1, (4,))).all()

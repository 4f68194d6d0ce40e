"""XOR shares against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc import ops

Fixture = Callable[..., Any]
EDGES = np.array([0, 1, -1, 2**62 - 1, -(2**62) + 1, 2**40, -(2**40)])


@pytest.mark.parametrize("width", [1, 7, 8, 13, 32, 33, 64])
def test_conjunction(width: int, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session, rng = simulate(parties), np.random.default_rng(width)
    x, y = (rng.integers(0, 1 << min(width, 63), shape, endpoint=False) for shape in ((3, 4), (4,)))
    left, right = session.share_bits(x, width=width), session.share_bits(y, owner=1, width=width)
    assert reveal(session.run(ops.conjunction(session, left, right))).tolist() == (x & y).tolist()


@given(st.sampled_from([8, 13, 32, 64]), st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), min_size=1, max_size=4))
def test_addition(parties: int, simulate: Fixture, reveal: Fixture, width: int, pairs: list[tuple[int, int]]) -> None:
    session, kept = simulate(parties), (1 << width) - 1
    x, y = ([pair[i] & kept for pair in pairs] for i in range(2))
    left, right = (session.share_bits(np.array(v, np.uint64), owner=i, width=width) for i, v in enumerate((x, y)))
    total = reveal(session.run(ops.add_binary(session, left, right)))
    assert [int(v) & kept for v in total] == [(a + b) & kept for a, b in zip(x, y, strict=True)]


def test_to_binary_and_back(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x = np.concatenate([EDGES, np.random.default_rng(10).integers(-(2**62) + 1, 2**62, 1000)])
    bits = session.run(ops.to_binary(session, session.share(x, scale=0)))
    assert bits.width == 64 and (reveal(bits) == x).all()
    assert (reveal(session.run(ops.to_arithmetic(session, bits))) == x).all()


def test_any_word_converts(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    """All of Z_2^64, not only what encodes."""
    session = simulate(parties)
    x = np.array([-(2**63), 2**63 - 1, -1, 0])
    arithmetic = session.run(ops.to_arithmetic(session, session.share_bits(x)))
    assert (reveal(arithmetic) == x).all()
    assert (reveal(session.run(ops.to_binary(session, arithmetic))) == x).all()


@pytest.mark.parametrize("width", [1, 5, 8, 13, 32, 33])
def test_narrow_words_are_unsigned_numbers(width: int, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x = np.array([0, 1, (1 << width) - 1, 1 << (width - 1)])
    shared = session.share_bits(x, owner=1, width=width)
    assert reveal(session.run(ops.to_arithmetic(session, shared))).tolist() == x.tolist()


def test_a_bit_becomes_a_number(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    bits = np.random.default_rng(11).integers(0, 2, (5, 7))
    shared = session.share_bits(bits, width=1)
    assert (reveal(session.run(ops.bit_to_arithmetic(session, shared))) == bits).all()

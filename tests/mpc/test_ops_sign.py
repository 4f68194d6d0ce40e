"""Comparisons by tables and by circuit agree with plaintext, and with each other, at every edge of their range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc import Session, ops
from mpc.chunks import cut
from mpc.ops import Compare
from mpc.share import Share
from mpc.strings import strings

Fixture = Callable[..., Any]
WIDTHS = (8, 16, 33, 48, 60, 64)
PAIRS = 60_000  # for each of 6 widths and 3 numbers of parties: 1.08 million in all
CHUNK = 20_000


def words_share(session: Session, words: np.ndarray) -> Share:
    """A share of any words, also those too large to encode: they are added to a random sharing of 0."""
    zero = session.share(np.zeros(words.shape), owner=1, scale=0)
    return Share(session, zero.words + session.public(words.view(np.uint64)), 0)


def pairs(width: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y with |x - y| < 2^(w - 1): every edge, equal pairs, neighbours, and uniform differences of each size."""
    rng = np.random.default_rng(seed)
    top = (1 << (width - 1)) - 1
    edges = np.array([0, 1, -1, 2, -2, top, -top, top - 1, 1 - top, top // 2, -top // 2, *(1 << np.arange(width - 1))])
    uniform = rng.integers(-top, top, (count - edges.size) // 2, endpoint=True)
    sizes = rng.integers(-top, top, count - edges.size - uniform.size, endpoint=True) >> rng.integers(
        0, width, count - edges.size - uniform.size
    )
    d = np.concatenate([edges, -edges[-(width - 1) :], uniform, sizes])[:count]
    y = rng.integers(-(1 << 61), 1 << 61, count) if width <= 60 else -(d // 2)
    return y + d, y


@pytest.mark.parametrize("width", WIDTHS)
def test_both_ways_agree_with_plaintext(width: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    x, y = pairs(width, PAIRS, seed=width)
    for start in range(0, PAIRS, CHUNK):
        part = slice(start, start + CHUNK)
        d = words_share(session, x[part]) - words_share(session, y[part])
        smaller = x[part] < y[part]
        assert 0 < smaller.mean() < 1
        assert (evaluate(session, ops.sign_by_tables(session, d, width=width)) == smaller).all()
        assert (evaluate(session, ops.sign_by_circuit(session, d, width=width)) == smaller).all()


def edges(width: int) -> np.ndarray:
    """Small numbers, powers of 2 and their neighbours, and both ends of the range."""
    top = (1 << (width - 1)) - 1
    powers = np.array([step + (1 << k) for k in range(width - 1) for step in (-1, 0, 1)])
    every = np.concatenate([np.arange(0, min(top, 300) + 1), powers[powers <= top], [top, top - 1]])
    return np.unique(np.concatenate([every, -every]))


@pytest.mark.parametrize("how", Compare)
@pytest.mark.parametrize("width", [2, 3, 7, 9, 10, 15, 17, 18, 24, 25, 31, 32, 34, 41, 57, 63])
def test_other_widths(width: int, how: Compare, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, d = simulate(parties), edges(width)
    result = evaluate(session, ops.is_negative(session, words_share(session, d), width=width, how=how))
    assert (result == (d < 0)).all()


@pytest.mark.parametrize("by", [ops.sign_by_tables, ops.sign_by_strings])
@pytest.mark.parametrize("ring", [8, 16, 64])
def test_every_width(by: Fixture, ring: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Edges, ties and numbers of every size, with what a width does not look at set to anything."""
    session, rng = simulate(parties), np.random.default_rng(ring)
    for width in range(2, 65):
        d = edges(width)
        d = np.concatenate([d, rng.integers(d[0], d[-1], 100, endpoint=True) >> rng.integers(0, width, 100)])
        above = rng.integers(0, 1 << (64 - width), d.size, np.uint64) if width < 64 else np.zeros(d.size, np.uint64)
        words = d.view(np.uint64) + (above << np.uint64(width % 64))
        sign = by(session, words_share(session, words), width=width, ring=ring)
        assert (evaluate(session, sign) == (d < 0)).all(), width


def test_the_groups_of_every_width() -> None:
    """All chunks are in a group, no width deals more than a wider one by much, and the sizes are those of the book."""
    for width in range(2, 65):
        for ring in (8, 16, 64):
            found = cut(width, ring)
            assert found.chunks == -(-(width - 1) // 4) and 1 <= len(found.groups) <= 3
            assert found.dealt_bytes <= cut(64, ring).dealt_bytes
    assert [cut(w, 8).dealt_bytes for w in (64, 54, 51, 43, 32, 16)] == [61, 51, 45, 41, 25, 12]
    assert [cut(w, 16).dealt_bytes for w in (64, 54, 51, 43, 32, 16)] == [72, 62, 56, 48, 30, 14]
    assert [cut(w, 64).dealt_bytes for w in (64, 54, 51, 43, 32, 16)] == [138, 108, 94, 78, 60, 26]


def test_the_chunks_of_every_width() -> None:
    """All bits are in a chunk, and the sizes are those of the book."""
    for width in range(2, 65):
        for ring in (8, 16, 64):
            assert sum(strings(width, ring).chunks) == width - 1 and len(strings(width, ring).chunks) <= 8
    assert [strings(w, 8).dealt_bytes for w in (64, 54, 51, 43, 32, 16)] == [623, 367, 319, 191, 95, 23]
    assert [strings(w, 64).dealt_bytes for w in (64, 54, 51, 43, 32, 16)] == [1912, 1112, 1016, 600, 296, 88]


@pytest.mark.parametrize("ring", [8, 16])
def test_a_bit_is_lifted(ring: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """The sum of the shares of a bit wraps, and shares of every kind occur."""
    session, d = simulate(parties), np.arange(-300, 300)
    bit = session.run(ops.is_negative(session, words_share(session, d), width=20, ring=ring))
    assert bit.ring == ring and (bit.words.sum(axis=0, dtype=np.uint64) >> np.uint64(ring)).any()
    lifted = session.run(ops.lift(session, bit))
    assert lifted.ring == 64 and (evaluate(session, ops.product(session, lifted, lifted)) == (d < 0)).all()


@pytest.mark.parametrize("how", Compare)
def test_less_on_reals_and_axes(how: Compare, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, rng = simulate(parties), np.random.default_rng(12)
    x, y = rng.integers(-(2**20), 2**20, (3, 4, 5)) * 2.0**-10, rng.integers(-(2**20), 2**20, 5) * 2.0**-10
    x[0, 0] = y  # ties are not less
    result = evaluate(session, ops.less(session, session.share(x), session.share(y, owner=1), how=how))
    assert result.dtype == np.int64 and (result == (x < y)).all()
    scalar = evaluate(session, ops.less(session, session.share(1.0), session.share(2.0), how=how))
    assert scalar.shape == () and scalar == 1


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 33, 60, 64])
def test_is_zero(width: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Every single bit that makes a word differ from 0 is seen; bits from `width` on are not."""
    session = simulate(parties)
    bits = np.array([int(1 << i) - (1 << 64 if i == 63 else 0) for i in range(64)])
    d = np.concatenate([[0, 0, -1, 255, 256, -256], bits, -bits[:63]])
    d = np.concatenate([d, np.random.default_rng(width).integers(-(2**62), 2**62, 500)])
    result = evaluate(session, ops.is_zero(session, words_share(session, d), width=width))
    assert (result == [int(v) % (1 << width) == 0 for v in d]).all()


@given(st.integers(-(2**40), 2**40), st.integers(-2, 2))
def test_equal(parties: int, simulate: Fixture, evaluate: Fixture, value: int, step: int) -> None:
    session = simulate(parties)
    x, y = session.share([value], scale=3), session.share([value + step], owner=1, scale=3)
    assert evaluate(session, ops.equal(session, x, y)).tolist() == [step == 0]

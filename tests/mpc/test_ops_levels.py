"""The square root by levels: one relative error over any range, at the edges of its levels as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc import RangeError, Session, ops
from offline import InProcessDealer

Fixture = Callable[..., Any]
RANGES = [(3e-5, 31.3, 56), (1e-8, 31.3, 56), (1.2e-7, 1.71, 60), (0.5, 10.0, 20), (1.0, 7000.0, 0), (1.0, 2.0**40, 20)]


def words(levels: ops.Levels, lower: float, upper: float, count: int) -> np.ndarray:
    """Both ends, each threshold and its neighbour below, and numbers of all sizes between."""
    low, high = int(np.ceil(lower * 2.0**levels.scale)), int(upper * 2.0**levels.scale)
    between = np.exp(np.random.default_rng(4).uniform(np.log(low), np.log(high), count))
    at = np.concatenate([between.astype(np.int64), levels.thresholds, levels.thresholds - 1, [low, high]])
    return at[(at >= low) & (at <= high)]


def worst(session: Session, levels: ops.Levels, at: np.ndarray) -> float:
    """The largest relative error."""
    x = session.share(at, scale=0).at_scale(levels.scale)
    y = session.run(ops.square_root_levelled(session, x, levels))
    assert y.scale == levels.root_scale
    got = np.ldexp(y.words.sum(axis=0, dtype=np.uint64).view(np.int64).astype(np.float64), -y.scale)
    return float(np.abs(got / np.sqrt(np.ldexp(at.astype(np.float64), -levels.scale)) - 1.0).max())


@pytest.mark.parametrize(("lower", "upper", "scale"), RANGES)
def test_the_relative_error_is_the_same_over_any_range(
    lower: float, upper: float, scale: int, parties: int, simulate: Fixture
) -> None:
    levels = ops.Levels.over(lower, upper, scale)
    at = words(levels, lower, upper, 200)
    assert (at >= levels.thresholds[0]).any() and (at < levels.thresholds[-1]).any()  # the first level, and the last
    assert worst(simulate(parties), levels, at) < 1e-7


def test_fewer_bits_are_coarser(simulate: Fixture) -> None:
    levels = ops.Levels.over(1e-5, 5.0, 40, bits=16)
    assert 2e-7 < worst(simulate(2), levels, words(levels, 1e-5, 5.0, 200)) < 2.0**-16 + 4e-8


@given(low=st.floats(1e-9, 1e3), wide=st.floats(1.01, 1e10), scale=st.integers(10, 56), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_any_range_that_fits_is_as_precise(low: float, wide: float, scale: int, seed: int) -> None:
    high = low * wide
    if low * 2.0**scale < 1.0:
        return
    try:
        levels = ops.Levels.over(low, high, scale)
    except RangeError:
        assert high * 2.0**scale > 2.0**60 or levels_too_many(low, high)
        return
    rng = np.random.default_rng(seed)
    first, last = int(np.ceil(low * 2.0**scale)), int(high * 2.0**scale)
    if first > last:
        return
    at = np.clip(np.exp(rng.uniform(np.log(first), np.log(max(last, first + 1)), 20)).astype(np.int64), first, last)
    assert worst(Session.simulate(2, InProcessDealer(2)), levels, at) < 1e-7


def levels_too_many(low: float, high: float) -> bool:
    """Whether a root cannot have 25 bits on the largest level and on the smallest."""
    return 26 + np.log2(high / low) / 2 > 40


def test_rounds_do_not_depend_on_the_number_of_levels(parties: int, simulate: Fixture) -> None:
    for lower, rounds in ((1e-8, 8), (1.0, 8)):
        session = simulate(parties)
        levels = ops.Levels.over(lower, 30.0, 40)
        session.run(ops.square_root_levelled(session, session.share([1.5], scale=40), levels))
        assert session.round == rounds and len(session.ledger) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "scale", "bits", "words"),
    [
        (0.0, 1.0, 20, 25, "two positive ends"),
        (2.0, 1.0, 20, 25, "two positive ends"),
        (1e-3, 8.0, 60, 25, "leaves no room for levels"),
        (1e-12, 1.0, 60, 50, "do not fit a word"),
    ],
)
def test_ranges_that_do_not_fit_are_refused(lower: float, upper: float, scale: int, bits: int, words: str) -> None:
    with pytest.raises(RangeError, match=words):
        ops.Levels.over(lower, upper, scale, bits=bits)


def test_an_argument_of_another_scale_is_refused(simulate: Fixture) -> None:
    session = simulate(2)
    with pytest.raises(RangeError, match="do not fit an argument with 20"):
        session.run(ops.square_root_levelled(session, session.share([1.0]), ops.Levels.over(0.1, 2.0, 40)))

"""Masked tables: exact on every k-bit value, and lines within their stated error at every offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import RangeError, ops
from mpc.cases import on_grid
from mpc.curves import Curve, Exponential, InverseSquareRoot, Reciprocal, SquareRoot, Table, indicator
from mpc.ops import Lines

Fixture = Callable[..., Any]


@pytest.mark.parametrize("bits", [1, 2, 7, 8, 9, 11])
def test_every_value_is_looked_up(bits: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    table = Table(np.random.default_rng(bits).integers(0, 1 << 64, 1 << bits, dtype=np.uint64))
    x = np.arange(1 << bits)
    result = evaluate(session, ops.lookup(session, session.share(x, owner=1, scale=0), table))
    assert (result == table.values.view(np.int64)).all()
    beyond = evaluate(session, ops.lookup(session, session.share(x - (5 << bits), scale=0), table))
    assert (beyond == result).all()  # taken mod 2^k, as stated


def test_shape_and_scale(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, table = simulate(parties), Table(np.arange(16, dtype=np.uint64) << np.uint64(4))
    x = np.arange(12).reshape(3, 2, 2)
    result = evaluate(session, ops.lookup(session, session.share(x, scale=0), table, scale=4))
    assert (result == x).all() and result.dtype == np.float64
    assert evaluate(session, ops.lookup(session, session.share(3, scale=0), table)) == 48


@pytest.mark.parametrize("value", [0, 1, 6, 7])
def test_indicator(value: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(3)
    result = evaluate(session, ops.lookup(session, session.share(np.arange(8), scale=0), indicator(value, 3)))
    assert result.tolist() == [int(i == value) for i in range(8)]


def test_tables_are_equal_by_content() -> None:
    one, same, other = Table(np.arange(4)), Table(np.arange(4)), Table(np.arange(4)[::-1])
    assert one == same and hash(one) == hash(same) and one != other and one.bits == 2
    assert not one.values.flags.writeable


CURVES = [  # curve, upper, segments, the largest |f''|
    (Reciprocal(1.0), 2.0, 10, 2.0),
    (Reciprocal(1.0), 3.0, 9, 2.0),
    (Reciprocal(0.5), 20.0, 9, 16.0),
    (Exponential(-1.0), 1.0, 9, np.e),
    (Exponential(-6.0), 0.0, 8, 1.0),
    (InverseSquareRoot(0.5), 10.0, 9, 0.75 * 0.5**-2.5),
    (SquareRoot(1.0), 9.0, 8, 0.25),
]


@pytest.mark.parametrize(("curve", "upper", "segments", "bend"), CURVES, ids=str)
def test_lines_keep_their_error(
    curve: Curve, upper: float, segments: int, bend: float, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """|f''| h^2 / 16 (5 % for the next order), and half a unit in the last place of x, at both ends and between."""
    session, rng = simulate(parties), np.random.default_rng(16)
    lines = Lines.over(curve, upper, 20, segments)
    ulp = 2.0**-20
    ends = [curve.lower, curve.lower + ulp, curve.lower + 3 * ulp, upper, upper - ulp, upper - 3 * ulp]
    x = np.concatenate([np.repeat(ends, 50), on_grid(rng.uniform(curve.lower, upper, 1000))])
    for part in np.split(x, 2):
        y = evaluate(session, ops.curve(session, session.share(part), lines))
        h = 2.0 ** (lines.bits - segments) * ulp
        assert np.abs(y - curve(part)).max() <= 1.05 * bend * h**2 / 16 + ulp / 2 + 2.0**-lines.out_scale


@pytest.mark.parametrize("spare", [1, 8, 9, 13, 14])
def test_coarser_lines_share_what_is_lost(spare: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """2^(spare / 2) units of x beside the chord's error, half as much again where the bits are odd.

    A slope for a single unit would be off by sqrt(2^spare) times more.
    """
    session, rng = simulate(parties), np.random.default_rng(19)
    full = Lines.over(Reciprocal(), 4.0, 20, 9)
    lines = full.coarser(full.out_scale - spare)
    assert lines.out_scale == full.out_scale - spare and lines.step == spare // 2
    x = np.concatenate([[1.0, 1.0 + 2.0**-20, 4.0], on_grid(rng.uniform(1.0, 4.0, 1000))])
    off = np.abs(evaluate(session, ops.curve(session, session.share(x), lines)) - 1 / x).max()
    chord = 1.05 * 2 * 2.0 ** (2 * (lines.bits - 9) - 40) / 16
    assert off <= chord + (1.5 * 2.0 ** (spare / 2) + 0.5) * 2.0**-20 + 2.0**-lines.out_scale


@pytest.mark.parametrize("scale", [10, 20, 30])
def test_lines_at_other_scales(scale: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(3)
    lines = Lines.over(Reciprocal(), 2.0, scale, 8)
    x = on_grid(np.random.default_rng(17).uniform(1, 2, 500), scale)
    y = evaluate(session, ops.curve(session, session.share(x, scale=scale), lines))
    h = 2.0 ** (lines.bits - 8 - scale)
    assert np.abs(y - 1 / x).max() <= 1.05 * h**2 / 8 + 2.0**-scale


def test_an_interval_leaves_one_piece_to_spare() -> None:
    for upper in (1.5, 1.75, 2 - 2**-9, 1.9, 1.99, 1.999, 2.0, 2.01, 3.0, 100.0):
        lines = Lines.over(Reciprocal(), upper, 20, 9)
        assert (upper - 1.0) * 2**20 + 2 ** (lines.bits - 9) < 2**lines.bits
        assert lines.out_scale == 20 + lines.bits - 9


@pytest.mark.parametrize(
    ("curve", "upper", "at"),
    [
        (SquareRoot(), 3e6, [0.9e6, 3e6]),
        (Exponential(0.0), 20.0, [10.0, 20.0]),
        (Reciprocal(1.0), 2.0**16, [30000.0, 65536.0]),
    ],
)
def test_large_values_and_intervals_do_not_wrap(
    curve: Curve, upper: float, at: list[float], parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """What does not fit at the finer scale gets fewer fraction bits; the lines stay within 1 % of the largest value."""
    session = simulate(parties)
    lines = Lines.over(curve, upper, 20, 9)
    assert lines.out_scale >= 20
    true = curve(np.array(at))
    largest = np.abs(curve(np.linspace(curve.lower, upper, 100))).max()
    assert np.abs(evaluate(session, ops.curve(session, session.share(at), lines)) - true).max() < 0.01 * largest


@pytest.mark.parametrize(
    ("curve", "upper", "scale", "out_scale"),
    [
        (Exponential(0.0), 27.5, 20, 20),  # up to 2^40: what is left is just enough
        (Exponential(0.0), 26.9, 20, 21),
        (Reciprocal(1.0), 2.0, 50, 60),
        (Exponential(-6.0), -5.0, 50, 60),  # below 1: no bit more
    ],
)
def test_values_get_all_the_fraction_bits_that_they_leave(
    curve: Curve, upper: float, scale: int, out_scale: int, simulate: Fixture, evaluate: Fixture
) -> None:
    session, lines = simulate(3), Lines.over(curve, upper, scale, 9)
    assert lines.out_scale == out_scale
    x = np.array([curve.lower, upper])
    y = evaluate(session, ops.curve(session, session.share(x, scale=scale), lines))
    assert (np.abs(y - curve(x)) < 1e-3 * curve(x).max()).all()


@pytest.mark.parametrize(
    ("curve", "upper", "segments", "words"),
    [
        (Exponential(0.0), 40.0, 9, "too large for 20 fraction bits"),
        (Exponential(0.0), 27.7, 9, "too large for 20 fraction bits"),
        (Reciprocal(1.0), 0.5, 9, "must lie above"),
        (Reciprocal(1.0), 1.0, 9, "must lie above"),
        (Reciprocal(1.0), 2.0, 0, "1 to 20 bits"),
        (Reciprocal(1.0), 2.0**43, 9, "smaller upper end"),
    ],
)
def test_lines_that_cannot_be_drawn(curve: Curve, upper: float, segments: int, words: str) -> None:
    with pytest.raises(RangeError, match=words):
        Lines.over(curve, upper, 20, segments)


def test_values_without_end_are_refused_at_every_scale() -> None:
    with np.errstate(over="ignore"), pytest.raises(RangeError, match="too large for 0 fraction bits"):
        Lines.over(Exponential(0.0), 800.0, 0, 9)


def test_the_widest_interval() -> None:
    assert Lines.over(Reciprocal(1.0), 2.0**41 + 1, 20, 9).bits == 62
    with pytest.raises(RangeError, match="smaller upper end"):
        Lines.over(Reciprocal(1.0), 2.0**42 + 1, 20, 9)


def test_a_lower_end_between_two_units_costs_no_accuracy(simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(2)
    lines = Lines.over(Reciprocal(0.3), 1.0, 12, 8)
    x = np.arange(0.3125, 1.0, 2.0**-12)
    error = np.abs(evaluate(session, ops.curve(session, session.share(x, scale=12), lines)) - 1 / x).max()
    width = 2.0 ** (lines.bits - lines.segments - 12)
    assert error < width**2 / (8 * 0.3**3) + 2.0**-13

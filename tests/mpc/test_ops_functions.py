"""Reciprocal, square root, exponential and inverse within the errors their docstrings state, f = 20.

Inputs lie on the grid of fixed point, so that an error is the function's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import RangeError, Session, ops
from mpc.cases import on_grid

Fixture = Callable[..., Any]
ULP = 2.0**-20


def points(lower: float, upper: float, count: int = 600) -> np.ndarray:
    """Both ends several times, for each look-up has its own offset; and between."""
    x = on_grid(np.random.default_rng(18).uniform(lower, upper, count))
    return np.concatenate([np.repeat([lower, upper], 30), np.clip(x, lower, upper)])


@pytest.mark.parametrize(
    ("lower", "upper", "limit"), [(1.0, 2.0, 2e-6), (1.0, 3.0, 4e-6), (0.25, 1.0, 4e-5), (4.0, 10.0, 1e-6)]
)
def test_reciprocal(
    lower: float, upper: float, limit: float, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    session, x = simulate(parties), points(lower, upper)
    y = evaluate(session, ops.reciprocal(session, session.share(x), lower=lower, upper=upper))
    assert np.abs(y - 1 / x).max() < limit


def test_reciprocal_keeps_its_stated_error(simulate: Fixture, evaluate: Fixture) -> None:
    """h^2 / 8 on [1, upper], h = 2^(k - segments) units; 1 % for the next order."""
    session = simulate(3)
    for upper, segments in ((2.0, 10), (2.0, 8), (5.0, 10), (1.5, 6)):
        x = points(1.0, upper, 300)
        k = int(np.ceil(np.log2((upper - 1) * 2**20)))
        k += (upper - 1) * 2**20 + 2 ** (k - segments) >= 2**k
        y = evaluate(session, ops.reciprocal(session, session.share(x), upper=upper, segments=segments))
        h = 2.0 ** (k - segments) * ULP
        assert np.abs(y - 1 / x).max() <= 1.01 * h**2 / 8 + ULP / 2 + ULP * ULP * 2**k


def test_reciprocal_by_newton(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(parties), points(1.0, 20.0)
    y = evaluate(session, ops.reciprocal_newton(session, session.share(x), upper=20.0))
    assert np.abs(y - 1 / x).max() < 2e-5
    twice = evaluate(session, ops.reciprocal_newton(session, session.share(x), upper=20.0, segments=5, iterations=3))
    assert np.abs(twice - 1 / x).max() < 2e-5


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 20.0), (20.0, 255.0), (255.0, 500.0)])
def test_reciprocal_as_published(
    lower: float, upper: float, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    session, x = simulate(parties), points(lower, upper, 200)
    y = evaluate(session, ops.reciprocal_published(session, session.share(x)))
    assert np.abs(y - 1 / x).max() < 2e-5


def test_reciprocal_as_published_ends_at_500(simulate: Fixture, evaluate: Fixture) -> None:
    """The bound is one: at 510 the start lies beyond 2 / x, and Newton diverges."""
    session = simulate(3)
    y = evaluate(session, ops.reciprocal_published(session, session.share([510.0])))
    assert abs(y[0] - 1 / 510) > 1


def test_fewer_iterations_are_worse(simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(3), points(10.0, 20.0, 50)
    errors = [
        np.abs(evaluate(session, ops.reciprocal_published(session, session.share(x), iterations=k)) * x - 1).max()
        for k in (2, 5, 8, 11)
    ]
    assert errors == sorted(errors, reverse=True) and errors[0] > 0.5 and errors[-1] < 1e-4


@pytest.mark.parametrize(("upper", "limit"), [(10.0, 5e-4), (1.0, 2e-4), (0.5, 2e-4), (100.0, 2e-3)])
def test_square_root(upper: float, limit: float, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Down to 0 and to the last unit above it."""
    session = simulate(parties)
    for lower, high in ((ULP, upper), (0.0, upper / 64), (0.0, 64 * ULP)):
        x = points(lower, high, 400)
        y = evaluate(session, ops.square_root(session, session.share(x), upper=upper))
        assert np.abs(y - np.sqrt(x)).max() < limit


def test_square_root_by_newton(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(parties), points(0.5, 10.0)
    y = evaluate(session, ops.square_root_newton(session, session.share(x), lower=0.5, upper=10.0))
    assert np.abs(y - np.sqrt(x)).max() < 3e-5


@pytest.mark.parametrize(("lower", "upper"), [(0.5, 10.0), (2.0**-6, 1.0)])
def test_square_root_of_helba(lower: float, upper: float, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(parties), points(lower, upper, 200)
    y = evaluate(session, ops.square_root_helba(session, session.share(x), upper=upper))
    assert np.abs(y - np.sqrt(x)).max() < 5e-5
    early = evaluate(session, ops.square_root_helba(session, session.share(x), upper=upper, iterations=4))
    stated = np.sqrt(upper) * (1 - x / (4 * upper)) ** 2**4
    assert (np.abs(early - np.sqrt(x)) <= stated + 1e-4).all()


@pytest.mark.parametrize("squarings", [0, 1, 4, 8, 10])
def test_exponential(squarings: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(parties), points(-1.0, 1.0, 200)
    y = evaluate(session, ops.exponential(session, session.share(x), squarings=squarings))
    limit = (1 + x / 2**squarings) ** 2**squarings
    assert np.abs(y - limit).max() < 3 * 2.0**squarings * 2.0 ** -(20 + squarings) + ULP  # rounding alone
    stated = x**2 / 2 ** (squarings + 1) + 2.0 ** (squarings - min(20 + squarings, 28))
    if squarings:
        assert (np.abs(y / np.exp(x) - 1) < 1.5 * stated + 1e-5).all()


def test_more_squarings_than_words_hold_are_refused(simulate: Fixture) -> None:
    session = simulate(2)
    with pytest.raises(RangeError, match="use fewer fraction bits"):
        session.run(ops.exponential(session, session.share(np.zeros(1)), squarings=11))


def test_exponential_over_its_range(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    high, low = points(1.0, 4.0, 100), points(-250.0, -1.0, 100)
    y = evaluate(session, ops.exponential(session, session.share(high)))
    assert (np.abs(y / np.exp(high) - 1) < high**2 / 2**9 + 1e-5).all()
    assert np.abs(evaluate(session, ops.exponential(session, session.share(low))) - np.exp(low)).max() < 2e-3


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 1.0), (-8.0, 0.0), (0.0, 3.0)])
def test_exponential_by_table(lower: float, upper: float, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, x = simulate(parties), points(lower, upper)
    y = evaluate(session, ops.exponential_table(session, session.share(x), lower=lower, upper=upper))
    k = int(np.floor(np.log2((upper - lower) * 2**20))) + 1
    h = 2.0 ** (k - 9) * ULP
    assert np.abs(y - np.exp(x)).max() <= 1.02 * np.exp(upper) * h**2 / 16 + ULP


def definite(side: int, rng: np.random.Generator, *batch: int) -> np.ndarray:
    half = rng.normal(size=(*batch, side, side)) / np.sqrt(side)
    return on_grid(half @ np.swapaxes(half, -1, -2) + np.eye(side))


@pytest.mark.parametrize("shape", [(1,), (8,), (3, 2, 4)])
def test_inverse(shape: tuple[int, ...], parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session: Session = simulate(parties)
    w = definite(shape[-1], np.random.default_rng(19), *shape[:-1])
    result = evaluate(session, ops.inverse(session, session.share(w), least=1.0, bound=8.0))
    assert np.abs(result - np.linalg.inv(w)).max() < 1e-5


@pytest.mark.parametrize(
    ("least", "bound", "scale"), [(1.0, 1.0, 20), (1.0, 300.0, 20), (0.05, 4.0, 20), (30.0, 40.0, 20), (1.0, 50.0, 26)]
)
def test_inverse_at_both_ends(
    least: float, bound: float, scale: int, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Eigenvalues at the ends that are declared, and between.  Error: c / l^2 2^-23, and 2^-f."""
    session, rng = simulate(parties), np.random.default_rng(23)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    w = axes @ np.diag(np.linspace(least, bound, 6)) @ axes.T
    found = evaluate(session, ops.inverse(session, session.share(w, scale=scale), least=least, bound=bound))
    assert np.abs(found - np.linalg.inv(w)).max() < bound / least**2 * 2.0**-23 + 2.0 ** (1 - scale) * (
        1 + 1 / least**2
    )
    assert (found == found.T).all()


def test_an_interval_as_small_as_the_segments_needs_no_truncation(simulate: Fixture, evaluate: Fixture) -> None:
    """Every unit of the argument has a line of its own, so the table's scale is the argument's already."""
    session = simulate(2)
    x = 1.0 + np.arange(400) * 2.0**-20
    y = evaluate(session, ops.reciprocal_newton(session, session.share(x), upper=x[-1], segments=9, iterations=1))
    assert np.abs(y - 1 / x).max() < 4 * 2.0**-20


def test_one_level_of_square_root_is_one_table(simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(2)
    root = evaluate(session, ops.square_root(session, session.share([0.25, 1.0]), upper=1.0, levels=1))
    assert np.abs(root - [0.5, 1.0]).max() < 1e-3


def test_an_inverse_that_words_do_not_hold_is_refused(simulate: Fixture) -> None:
    session = simulate(2)
    for scale, least, bound, words in (
        (20, 1.0, 2.0**26, "20 fraction bits do not hold a matrix with eigenvalues from 1 to"),
        (27, 1.0, 2.0, "27 fraction bits do not hold"),
        (20, 2.0**-14, 2.0, "use fewer of them, or scale the matrix"),
        (20, 0.0, 2.0, "both must be positive"),
        (20, 2.0, 1.0, "lie between 2 and 1"),
    ):
        with pytest.raises(RangeError, match=words):
            session.run(ops.inverse(session, session.share(np.eye(2), scale=scale), least=least, bound=bound))

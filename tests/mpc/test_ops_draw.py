"""The secret draw follows its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import Session, ops
from mpc.ops import Compare
from tests.oracles import stats

Fixture = Callable[..., Any]


def drawn(session: Session, evaluate: Fixture, weights: np.ndarray, scale: int = 0, **rest: Any) -> np.ndarray:
    """The one-hot rows, checked to be one-hot."""
    onehot = evaluate(session, ops.draw(session, session.share(weights, scale=scale), **rest))
    assert onehot.shape == weights.shape
    assert ((onehot == 0) | (onehot == 1)).all() and (onehot.sum(axis=-1) == 1).all()
    return onehot


@pytest.mark.parametrize("how", Compare)
def test_frequencies_follow_the_weights(how: Compare, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """10,000 rows, zero weights at both ends and inside.  Rejects at p < 1e-6, on a fixed seed."""
    weights = np.array([0, 5, 1, 0, 10, 4, 0])
    counts = drawn(simulate(parties), evaluate, np.tile(weights, (10_000, 1)), how=how).sum(axis=0)
    assert (counts[weights == 0] == 0).all()
    assert stats.chisquare(counts[weights > 0], 10_000 * weights[weights > 0] / weights.sum()).pvalue > 1e-6


def test_reals_and_large_weights(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Rejects at p < 1e-6, on a fixed seed."""
    session = simulate(parties)
    for weights, scale in ((np.array([0.25, 0.5, 0.25]), 20), (np.array([2**28, 2**29, 2**28 - 1]), 0)):
        counts = drawn(session, evaluate, np.tile(weights, (8000, 1)), scale).sum(axis=0)
        assert stats.chisquare(counts, [2000, 4000, 2000]).pvalue > 1e-6


def test_one_positive_weight_is_certain(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    weights = np.tile(np.eye(5, dtype=np.int64), (40, 1)).reshape(4, 50, 5)
    assert (drawn(simulate(parties), evaluate, weights) == weights).all()
    assert (drawn(simulate(parties), evaluate, weights * (2**30 - 1)) == weights).all()


def test_all_zero_draws_the_last(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    assert (drawn(simulate(parties), evaluate, np.zeros((20, 4), np.int64)) == [0, 0, 0, 1]).all()


def test_a_single_arm(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    assert drawn(simulate(parties), evaluate, np.array([3])).tolist() == [1]
    assert drawn(simulate(parties), evaluate, np.array([[3], [0]])).tolist() == [[1], [1]]


@pytest.mark.parametrize(("weight_bits", "coin_bits"), [(8, 4), (10, 52), (52, 10)])
def test_other_precisions(weight_bits: int, coin_bits: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Weights 3 : 1 at the top of their range.  Rejects at p < 1e-6, on a fixed seed."""
    unit = (2**weight_bits - 1) // 4
    weights = np.tile([3 * unit, unit], (6000, 1))
    counts = drawn(simulate(parties), evaluate, weights, weight_bits=weight_bits, coin_bits=coin_bits).sum(axis=0)
    assert stats.chisquare(counts, [4500, 1500]).pvalue > 1e-6


def test_a_single_arm_costs_nothing(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    onehot = session.run(ops.draw(session, session.share([[3.0], [0.0]])))
    assert session.meter.total.rounds == 0
    assert reveal(onehot).tolist() == [[1], [1]]

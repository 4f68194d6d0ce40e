"""The plaintext choices: what the secure ones are compared with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits import arm_probabilities, best_arms, categorical, epsilon_greedy
from tests.oracles import stats

ROWS = st.lists(st.integers(-5, 5), min_size=1, max_size=6)


@given(ROWS)
def test_best_arms_are_the_largest(scores: list[int]) -> None:
    best = best_arms(np.array(scores))
    assert best.tolist() == [int(score == max(scores)) for score in scores]


def test_best_arms_row_by_row() -> None:
    assert best_arms(np.array([[1.0, 2.0, 2.0], [3.0, 0.0, -1.0]])).tolist() == [[0, 1, 1], [1, 0, 0]]


@given(ROWS, st.floats(0, 1))
def test_probabilities_add_up(scores: list[int], eps: float) -> None:
    chances = arm_probabilities(np.array(scores), eps)
    best = best_arms(np.array(scores))
    assert chances.sum() == pytest.approx(1.0)
    assert chances[best == 0] == pytest.approx(eps / len(scores))
    assert chances[best == 1] == pytest.approx(eps / len(scores) + (1 - eps) / best.sum())


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.5, 1.0])
def test_epsilon_greedy_has_these_probabilities(eps: float) -> None:
    """20,000 rows, two arms tied for the best.  Rejects at p < 1e-6, on a fixed seed."""
    scores = np.array([0.3, 0.9, 0.9, -1.0])
    onehot = epsilon_greedy(np.tile(scores, (20_000, 1)), eps, np.random.default_rng(1))
    assert (onehot.sum(axis=-1) == 1).all()
    counts, expected = onehot.sum(axis=0), 20_000 * arm_probabilities(scores, eps)
    assert (counts[expected == 0] == 0).all()
    assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-6


def test_epsilon_greedy_in_a_batch() -> None:
    scores = np.random.default_rng(2).normal(size=(2, 3, 5))
    assert (epsilon_greedy(scores, 0.0, np.random.default_rng(3)) == best_arms(scores)).all()


def test_categorical_picks_the_first_running_sum_beyond() -> None:
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    uniform = np.array([0.0, 0.2499, 0.25, 0.9999])
    picked = categorical(np.tile(weights, (4, 1)), uniform).argmax(axis=-1)
    assert picked.tolist() == [1, 1, 3, 3]


def test_categorical_follows_the_weights() -> None:
    """20,000 rows.  Rejects at p < 1e-6, on a fixed seed."""
    weights = np.array([2.0, 0.0, 5.0, 3.0])
    onehot = categorical(np.tile(weights, (20_000, 1)), np.random.default_rng(4).random(20_000))
    counts = onehot.sum(axis=0)
    assert (onehot.sum(axis=-1) == 1).all() and counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], [4000, 10_000, 6000]).pvalue > 1e-6


def test_categorical_of_no_weight_picks_the_last() -> None:
    assert categorical(np.zeros(3), np.array(0.5)).tolist() == [0, 0, 1]

"""The plaintext bandit: recursive least squares is least squares, and its choices are the coins' and the scores'."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bandits.environments import synthetic_linear, unit_rows
from bandits.linear import Choice, LinearBandit
from bandits.play import play


def coins(seed: int, replicas: int, arms: int, eps: float) -> Iterator[Choice]:
    rng = np.random.default_rng(seed)
    while True:
        yield Choice.draw(rng, replicas, arms, eps)


@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
def test_the_recursion_is_ridge_regression(ridge: float) -> None:
    rng, dim, replicas, arms = np.random.default_rng(1), 4, 2, 3
    bandit = LinearBandit(replicas, arms, dim, ridge=ridge)
    seen: dict[tuple[int, int], list[tuple[np.ndarray, float]]] = {}
    for _ in range(60):
        contexts = unit_rows(rng.normal(size=(replicas, dim)))
        pulled, rewards = rng.integers(0, arms, replicas), rng.random(replicas)
        bandit.update(contexts, pulled, rewards)
        for r in range(replicas):
            seen.setdefault((r, int(pulled[r])), []).append((contexts[r], rewards[r]))
    for (r, arm), pairs in seen.items():
        x, y = np.array([c for c, _ in pairs]), np.array([reward for _, reward in pairs])
        inverse = np.linalg.inv(ridge * np.eye(dim) + x.T @ x)
        assert np.allclose(bandit.inverse[r, arm], inverse)
        assert np.allclose(bandit.weights[r, arm], inverse @ x.T @ y)


def test_choices_explore_by_their_order_and_break_ties_by_theirs() -> None:
    scores = np.array([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0]])
    order, ties = np.array([[2, 0, 1]] * 2), np.array([[2, 0, 1]] * 2)
    assert Choice(np.array([True, False]), order, ties).pick(scores).tolist() == [0, 2]


def test_it_learns() -> None:
    """Greedy play of the last half of a run earns more than uniform play by far."""
    environment = synthetic_linear(5, 6, seed=2)
    episodes = [environment.episode(2000, seed) for seed in range(4)]
    records = list(play(LinearBandit(4, 5, 6), episodes, coins(3, 4, 5, 0.1)))
    late = np.mean([record.rewards for record in records[1000:]])
    uniform = np.mean([episode.outcomes.mean() for episode in episodes])
    assert late > uniform + 0.08


def test_an_episode_pays_the_same_whoever_asks() -> None:
    environment = synthetic_linear(3, 4)
    first, second = environment.episode(7000, 5), environment.episode(7000, 5)
    assert (first.outcomes == second.outcomes).all() and (first.contexts == second.contexts).all()
    rows = {tuple(row) for row in first.contexts[:5000]}
    assert len(rows) == 5000, "each row once before any comes again"

"""LinUCB in the clear: its scores are the confidence bounds, which hold, and it tries what it does not know."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.environments import Environment, synthetic_linear, unit_rows
from bandits.linear import Choice, LinearBandit
from bandits.linucb import LinUCB
from bandits.play import play


def no_coins(replicas: int, arms: int, batch: int = 1) -> Choice:
    shape = replicas, batch, arms
    ties = np.broadcast_to(np.arange(arms), shape)
    return Choice(np.zeros(shape[:2], bool), ties, ties, np.zeros(shape))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("batch", [1, 3])
def test_scores_are_upper_confidence_bounds(alpha: float, batch: int) -> None:
    rng = np.random.default_rng(1)
    bandit, x = LinUCB(2, 3, 4, ridge=0.5, alpha=alpha), rng.normal(size=(2, batch, 4))
    seen: list[list[tuple[np.ndarray, int, float]]] = [[], []]
    for _ in range(20):
        contexts = unit_rows(rng.normal(size=(2, 4))).reshape(2, 1, 4)
        arms, rewards = rng.integers(0, 3, (2, 1)), rng.random((2, 1))
        bandit.update(contexts, arms, rewards)
        for r in range(2):
            seen[r].append((contexts[r, 0], int(arms[r, 0]), float(rewards[r, 0])))
    scores = bandit.scores(x, no_coins(2, 3, batch))
    for r, b, a in np.ndindex(2, batch, 3):
        rows = np.array([c for c, arm, _ in seen[r] if arm == a])
        paid = np.array([reward for _, arm, reward in seen[r] if arm == a])
        design = 0.5 * np.eye(4) + rows.T @ rows
        theta = np.linalg.solve(design, rows.T @ paid)
        wanted = theta @ x[r, b] + alpha * np.sqrt(x[r, b] @ np.linalg.solve(design, x[r, b]))
        assert np.isclose(scores[r, b, a], wanted)


def test_without_optimism_it_is_greedy() -> None:
    environment = synthetic_linear(4, 5)
    episodes = [environment.episode(80, 3)]
    ours, greedy = (
        list(play(policy, episodes, iter([no_coins(1, 4)] * 80)))
        for policy in (LinUCB(1, 4, 5, alpha=0.0), LinearBandit(1, 4, 5))
    )
    assert [record.arms[0] for record in ours] == [record.arms[0] for record in greedy]


def test_the_bonus_shrinks_as_an_arm_is_pulled_and_only_for_it() -> None:
    """sqrt(1 / (ridge + n)) after n pulls on the same unit context."""
    bandit, x = LinUCB(1, 2, 3, ridge=2.0, alpha=1.5), np.array([[[0.0, 1.0, 0.0]]])
    for pulls in range(5):
        width = bandit.scores(x, no_coins(1, 2))[0, 0]
        assert np.allclose(width, 1.5 * np.sqrt([1 / (2.0 + pulls), 1 / 2.0]))
        bandit.update(x, np.array([[0]]), np.array([[0.0]]))


def test_it_tries_every_arm_before_it_settles() -> None:
    """One context: greedy play stays with the first arm that pays, LinUCB finds the one that always does."""
    environment = Environment("one", np.array([[1.0, 0.0]]), np.array([[1.0, 0.5, 0.5]]))
    episode = environment.episode(200, 1)
    ours, greedy = (
        [int(record.arms[0]) for record in play(policy, [episode], iter([no_coins(1, 3)] * 200))]
        for policy in (LinUCB(1, 3, 2), LinearBandit(1, 3, 2))
    )
    assert set(greedy) == {2}
    assert set(ours[:10]) == {0, 1, 2} and ours[100:].count(0) > 90


def test_it_learns_without_exploring() -> None:
    environment = synthetic_linear(5, 6, seed=2)
    episodes = [environment.episode(1500, seed) for seed in range(4)]
    records = list(play(LinUCB(4, 5, 6, alpha=0.5), episodes, iter([no_coins(4, 5)] * 1500)))
    uniform = np.mean([episode.outcomes.mean() for episode in episodes])
    assert np.mean([record.rewards for record in records[750:]]) > uniform + 0.08

"""The plaintext bandit: recursive least squares is least squares, and its choices are the coins' and the scores'."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bandits.environments import Episode, synthetic_linear, unit_rows
from bandits.linear import Choice, LinearBandit
from bandits.play import gaps, play
from tests.oracles import stats


def coins(seed: int, replicas: int, arms: int, eps: float, *, batch: int = 1) -> Iterator[Choice]:
    rng = np.random.default_rng(seed)
    while True:
        yield Choice.draw(rng, replicas, arms, eps, batch=batch)


@pytest.mark.parametrize("ridge", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_recursion_is_ridge_regression(ridge: float, batch: int) -> None:
    rng, dim, replicas, arms = np.random.default_rng(1), 4, 2, 3
    bandit = LinearBandit(replicas, arms, dim, ridge=ridge)
    seen: dict[tuple[int, int], list[tuple[np.ndarray, float]]] = {}
    for _ in range(60 // batch):
        contexts = unit_rows(rng.normal(size=(replicas * batch, dim))).reshape(replicas, batch, dim)
        pulled, rewards = rng.integers(0, arms, (replicas, batch)), rng.random((replicas, batch))
        bandit.update(contexts, pulled, rewards)
        for r, b in np.ndindex(replicas, batch):
            seen.setdefault((r, int(pulled[r, b])), []).append((contexts[r, b], rewards[r, b]))
    for (r, arm), pairs in seen.items():
        x, y = np.array([c for c, _ in pairs]), np.array([reward for _, reward in pairs])
        inverse = np.linalg.inv(ridge * np.eye(dim) + x.T @ x)
        assert np.allclose(bandit.inverse[r, arm], inverse)
        assert np.allclose(bandit.weights[r, arm], inverse @ x.T @ y)


def test_a_block_is_learned_from_one_by_one() -> None:
    rng = np.random.default_rng(2)
    x, arms, rewards = rng.normal(size=(3, 8, 4)), rng.integers(0, 2, (3, 8)), rng.random((3, 8))
    whole, parts = LinearBandit(3, 2, 4), LinearBandit(3, 2, 4)
    whole.update(x, arms, rewards)
    for b in range(8):
        parts.update(x[:, b : b + 1], arms[:, b : b + 1], rewards[:, b : b + 1])
    assert np.allclose(whole.inverse, parts.inverse) and np.allclose(whole.weights, parts.weights)


def test_predictions_and_widths_are_the_formulas() -> None:
    rng = np.random.default_rng(3)
    bandit, x = LinearBandit(2, 3, 4, ridge=2.0), rng.normal(size=(2, 5, 4))
    assert np.allclose(bandit.widths(x), np.linalg.norm(x, axis=-1)[..., None] / np.sqrt(2.0))
    bandit.update(x, rng.integers(0, 3, (2, 5)), rng.random((2, 5)))
    for r, b, a in np.ndindex(2, 5, 3):
        assert np.isclose(bandit.predictions(x)[r, b, a], bandit.weights[r, a] @ x[r, b])
        assert np.isclose(bandit.widths(x)[r, b, a] ** 2, x[r, b] @ bandit.inverse[r, a] @ x[r, b])
    assert bandit.scores(x, next(coins(1, 2, 3, 0.1, batch=5))).tolist() == bandit.predictions(x).tolist()


def test_choices_explore_by_their_order_and_break_ties_by_theirs() -> None:
    scores = np.array([[[1.0, 3.0, 3.0], [1.0, 3.0, 3.0]]])
    order, ties = np.array([[[2, 0, 1]] * 2]), np.array([[[2, 0, 1]] * 2])
    choice = Choice(np.array([[True, False]]), order, ties, np.zeros((1, 2, 3)))
    assert choice.pick(scores).tolist() == [[0, 2]]


def test_an_order_may_reach_into_scores() -> None:
    """A place in it is worth 0.25: close scores are told apart by it, 1.0 is out of reach of three places."""
    scores = np.array([[[1.0, 1.0 + 2.0**-30, 1.1, 0.2], [1.0, 1.3, 0.9, 0.2], [1.0, 2.0, 1.0, 1.0]]])
    ties, never = np.array([[[2, 1, 0, 3], [3, 1, 2, 0], [3, 0, 1, 2]]]), np.zeros((1, 3), bool)
    choice = Choice(never, ties, ties, np.zeros(ties.shape), 0.25)
    assert choice.pick(scores).tolist() == [[0, 0, 1]]
    assert Choice(never, ties, ties, np.zeros(ties.shape)).pick(scores).tolist() == [[2, 1, 1]]
    assert choice.ranks(scores)[0, 0].tolist() == pytest.approx([1.5, 1.25, 1.1, 0.95])


@pytest.mark.parametrize("batch", [1, 4])
def test_drawn_choices_explore_uniformly_as_often_as_eps_says(batch: int) -> None:
    """Each at p < 1e-4, on a fixed seed."""
    choice = Choice.draw(np.random.default_rng(4), 2000, 5, 0.3, batch=batch)
    assert choice.explore.shape == (2000, batch)
    assert choice.order.shape == choice.ties.shape == choice.noise.shape == (2000, batch, 5)
    assert stats.binomtest(int(choice.explore.sum()), choice.explore.size, 0.3).pvalue > 1e-4
    scores = np.broadcast_to(np.arange(5.0), (2000, batch, 5))
    arms = choice.pick(scores)
    assert (arms[~choice.explore] == 4).all()
    assert stats.chisquare(np.bincount(arms[choice.explore], minlength=5)).pvalue > 1e-4
    tied = choice.pick(np.zeros((2000, batch, 5)))[~choice.explore]
    assert stats.chisquare(np.bincount(tied, minlength=5)).pvalue > 1e-4
    assert stats.kstest(choice.noise.reshape(-1), "norm").pvalue > 1e-4


def test_eps_may_be_one_for_each_replica() -> None:
    choice = Choice.draw(np.random.default_rng(5), 3, 4, np.array([0.0, 0.5, 1.0]), batch=400)
    often = choice.explore.mean(axis=1)
    assert often[0] == 0.0 and 0.4 < often[1] < 0.6 and often[2] == 1.0


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


class Diary(LinearBandit):
    """Notes how many contexts it had learned from at each decision."""

    def __init__(self) -> None:
        super().__init__(2, 3, 4)
        self.learned, self.known = 0, []  # type: int, list[int]

    def scores(self, contexts: np.ndarray, choice: Choice) -> np.ndarray:
        self.known.append(self.learned)
        return super().scores(contexts, choice)

    def update(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        self.learned += arms.shape[1]
        super().update(contexts, arms, rewards)


@pytest.mark.parametrize(("batch", "delay"), [(1, 0), (1, 3), (4, 0), (4, 2), (5, 10)])
def test_a_loop_decides_by_what_was_paid_before(batch: int, delay: int) -> None:
    """Decision d knows the rewards of d - delay decisions; records are by step, whatever the batch."""
    environment, diary = synthetic_linear(3, 4), Diary()
    episodes = [environment.episode(22, seed) for seed in range(2)]
    records = list(play(diary, episodes, coins(1, 2, 3, 0.2, batch=batch), batch=batch, delay=delay))
    decisions = 22 // batch
    assert diary.known == [batch * max(0, decision - delay) for decision in range(decisions)]
    assert [record.step for record in records] == list(range(decisions * batch))
    for record in records:
        for r, episode in enumerate(episodes):
            assert record.rewards[r] == episode.outcomes[record.step, record.arms[r]]


def test_a_replica_plays_as_it_would_alone() -> None:
    environment = synthetic_linear(3, 4)
    episodes = [environment.episode(60, seed) for seed in range(3)]
    drawn = [Choice.draw(np.random.default_rng(7 + step), 3, 3, 0.2) for step in range(60)]
    together = list(play(LinearBandit(3, 3, 4), episodes, iter(drawn)))
    for r in range(3):
        own = (Choice(c.explore[r : r + 1], c.order[r : r + 1], c.ties[r : r + 1], c.noise[r : r + 1]) for c in drawn)
        alone = list(play(LinearBandit(1, 3, 4), episodes[r : r + 1], own))
        assert [record.arms[0] for record in alone] == [record.arms[r] for record in together]


def test_gaps_are_between_the_two_largest() -> None:
    assert gaps(np.array([[1.0, 5.0, 4.5], [2.0, 2.0, -1.0]])).tolist() == [0.5, 0.0]
    assert np.isinf(gaps(np.ones((2, 1)))).all()
    episode = Episode(np.ones((3, 4)), np.ones((3, 1)))
    assert all(np.isinf(record.gaps).all() for record in play(LinearBandit(1, 1, 4), [episode], coins(1, 1, 1, 0.0)))

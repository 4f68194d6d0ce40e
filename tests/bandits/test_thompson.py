"""Thompson sampling in the clear: its scores have the law of theta . x, and it finds the better arm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bandits.environments import synthetic_linear, unit_rows
from bandits.linear import Choice
from bandits.play import play
from bandits.thompson import ThompsonSampling
from tests.oracles import stats


def coins(seed: int, replicas: int, arms: int, batch: int = 1) -> Iterator[Choice]:
    rng = np.random.default_rng(seed)
    while True:
        yield Choice.draw(rng, replicas, arms, 0.0, batch=batch)


def learned(replicas: int, alpha: float) -> ThompsonSampling:
    """Every replica has learned the same."""
    rng, bandit = np.random.default_rng(1), ThompsonSampling(replicas, 3, 4, ridge=0.5, alpha=alpha)
    for _ in range(15):
        x, arm, reward = unit_rows(rng.normal(size=(1, 4))), int(rng.integers(3)), float(rng.random())
        contexts = np.broadcast_to(x, (replicas, 1, 4))
        bandit.update(contexts, np.full((replicas, 1), arm), np.full((replicas, 1), reward))
    return bandit


@pytest.mark.parametrize("alpha", [0.4, 1.5])
def test_a_score_has_the_law_of_a_sampled_weight_times_the_context(alpha: float) -> None:
    """Against 4,000 draws of theta ~ N(w_a, alpha^2 P_a), arm by arm: Kolmogorov and Smirnov at p < 1e-4."""
    bandit, rng = learned(4000, alpha), np.random.default_rng(2)
    x = unit_rows(rng.normal(size=(1, 4)))
    scores = bandit.scores(np.broadcast_to(x, (4000, 1, 4)), next(coins(3, 4000, 3)))[:, 0]
    for arm in range(3):
        theta = rng.multivariate_normal(bandit.weights[0, arm], alpha**2 * bandit.inverse[0, arm], 4000)
        assert stats.ks_2samp(scores[:, arm], theta @ x[0]).pvalue > 1e-4
    pairs = np.corrcoef(scores.T)[np.triu_indices(3, k=1)]
    assert np.abs(pairs).max() < 4 / np.sqrt(4000), "arms are independent"


def test_scores_are_predictions_widths_and_noise() -> None:
    bandit, x = learned(2, 0.7), np.random.default_rng(4).normal(size=(2, 5, 4))
    choice = next(coins(5, 2, 3, batch=5))
    wanted = bandit.predictions(x) + 0.7 * bandit.widths(x) * choice.noise
    assert np.allclose(bandit.scores(x, choice), wanted)
    still = ThompsonSampling(2, 3, 4, alpha=0.0)
    assert (still.scores(x, choice) == 0.0).all()


def test_an_arm_that_nobody_knows_is_pulled_by_chance() -> None:
    """Before it has learned anything every arm is as likely, at p < 1e-4."""
    bandit, x = ThompsonSampling(3000, 4, 2), np.tile([[[0.6, 0.8]]], (3000, 1, 1))
    choice = next(coins(6, 3000, 4))
    arms = choice.pick(bandit.scores(x, choice))
    assert stats.chisquare(np.bincount(arms[:, 0], minlength=4)).pvalue > 1e-4


def test_it_learns() -> None:
    environment = synthetic_linear(5, 6, seed=2)
    episodes = [environment.episode(1500, seed) for seed in range(4)]
    records = list(play(ThompsonSampling(4, 5, 6, alpha=0.3), episodes, coins(3, 4, 5)))
    uniform = np.mean([episode.outcomes.mean() for episode in episodes])
    assert np.mean([record.rewards for record in records[750:]]) > uniform + 0.08
    first, last = (np.mean([record.rewards for record in part]) for part in (records[:100], records[-100:]))
    assert last > first

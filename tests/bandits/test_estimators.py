"""Estimates and intervals against what is known of them; coverage at large is `scripts/coverage`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandits.estimators import doubly_robust, effective_rows, ips, replay_average, snips, steady
from bandits.intervals import skewed, wilson
from bandits.logs import LogError, RecordedLog
from bandits.off_policy import Problem, candidates, doubts_of_log, judge, logged

RNG = np.random.default_rng(5)


def test_nothing_of_313_is_not_nothing_for_sure() -> None:
    weights, rewards = np.repeat([4.0, 0.0], [313, 939]), np.zeros(1252)
    low, high = wilson(0.0, 313)
    for estimate in (replay_average(rewards, weights > 0), snips(rewards, weights), ips(rewards, weights)):
        assert estimate.value == estimate.error == 0.0 and estimate.low <= 0.0
        assert high <= estimate.high < 1.4 * high and low == 0.0
    robust = doubly_robust(rewards, weights, rewards, rewards)
    assert robust.value == 0.0 and 0.5 * high < robust.high < 1.4 * high


@pytest.mark.parametrize("n", [1, 7, 300, 4321])
def test_wilsons_interval_holds_its_own_share(n: int) -> None:
    """To the last bit: its ends are 0 and 1 where nothing was paid, and all."""
    shares = np.arange(n + 1) / n
    low, high = wilson(shares, n)
    assert (low <= shares).all() and (shares <= high).all() and low[0] == 0.0 and high[-1] == 1.0
    assert 0.0 < high[0] < 1.0 and 0.0 < low[-1] < 1.0


def test_propensities_are_counted_where_the_policy_is_judged() -> None:
    given = problem(rows=400)
    for rare, found in (
        (slice(0, 150), []),
        (slice(150, 203), ["propensities below 0.02 in 3 of the rows"]),
    ):
        chances = np.full(400, 0.25)
        chances[rare] = 0.001
        doubts = doubts_of_log(replace(given, log=replace(given.log, propensities=chances)))
        assert [doubt[: len(words)] for doubt, words in zip(doubts, found, strict=True)] == found


def test_repetitions_are_estimated_at_once() -> None:
    rewards, weights = (RNG.random((3, 50)) < 0.4).astype(float), RNG.random((3, 50)) * 2
    expected, model, h = RNG.random((3, 3, 50))
    for at in range(3):
        pairs = [
            (replay_average(rewards, weights > 1), replay_average(rewards[at][weights[at] > 1])),
            (ips(rewards, weights, h), ips(rewards[at], weights[at], h[at])),
            (snips(rewards, weights, h), snips(rewards[at], weights[at], h[at])),
            (doubly_robust(rewards, weights, expected, model, h),
             doubly_robust(rewards[at], weights[at], expected[at], model[at], h[at])),
        ]  # fmt: skip
        for many, one in pairs:
            assert np.allclose([each[at] for each in many], one)


def test_intervals_of_real_rewards_are_value_and_error() -> None:
    rewards, weights = RNG.normal(size=80), RNG.random(80)
    for estimate in (snips(rewards, weights), doubly_robust(rewards, weights, rewards, rewards)):
        assert estimate.high - estimate.low == pytest.approx(2 * 1.959964 * estimate.error)


def test_an_interval_of_skewed_rows_reaches_further_up() -> None:
    weights = np.repeat([50.0, 1.0], [5, 495])
    found = ips(RNG.random(500), weights)
    assert found.high - found.value > 1.2 * (found.value - found.low) > 0
    low, high = skewed(1.0, 0.1, 0.0)
    assert (low, high) == pytest.approx((1 - 0.1959964, 1 + 0.1959964))
    assert np.allclose(np.subtract(1.0, skewed(1.0, 0.1, 0.2)), np.subtract(skewed(1.0, 0.1, -0.2), 1.0)[::-1])


def test_a_right_model_takes_the_noise_of_weights_out() -> None:
    x = RNG.random(400)
    weights = np.where(RNG.random(400) < 0.1, 10.0, 0.0)
    rewards = x + 0.01 * RNG.normal(size=400)
    assert doubly_robust(rewards, weights, x, x).error == pytest.approx(x.std() / 20, rel=0.1)


def test_rows_of_equal_weight_are_all_effective() -> None:
    assert effective_rows(np.full(40, 3.0)) == pytest.approx(40) and effective_rows(np.zeros(3)) == 0
    assert effective_rows(np.array([1.0, 0.0, 0.0])) == 1


def test_steady_weights_look_back_alone() -> None:
    weights, before = RNG.random(30) * 5, RNG.random(20) * 5
    h = steady(weights, before, window=10)
    assert h[0] == pytest.approx(1 / np.sqrt(max(1, (before[-10:] ** 2).mean())))
    assert h[12] == pytest.approx(1 / np.sqrt(max(1, (weights[2:12] ** 2).mean())))
    other = weights.copy()
    other[12:] = 9.0
    assert (steady(other, before, window=10)[:13] == h[:13]).all()


def problem(propensity: float = 0.25, rows: int = 400) -> Problem:
    arms = RNG.integers(0, 4, rows)
    rewards = (RNG.random(rows) < 0.2 + 0.2 * arms).astype(float)
    return Problem(RecordedLog(np.ones((rows, 1)), arms, rewards, np.full(rows, propensity)), 4, rows // 2, 0.1)


def test_propensities_of_few_digits_are_believed_and_single_heavy_rows_are_not() -> None:
    given = problem(rows=4000)
    rounded = replace(given, log=replace(given.log, propensities=np.full(4000, 0.2499)))
    scores = np.zeros((4000, 4))
    uniform = candidates(rounded, scores, name="it", arms="abcd", seed=1)[1]
    assert not any(finding.doubts for finding in judge(rounded, uniform, scores))
    heavy = np.full(4000, 0.25)
    heavy[3000:3003] = 0.001
    found = judge(replace(given, log=replace(given.log, propensities=heavy)), uniform, scores)
    assert any("lies on" in doubt or "effective" in doubt for doubt in found[1].doubts)


@pytest.mark.parametrize(
    ("chance", "arms", "uniform"),
    [(1.0, 4, False), (0.5, 4, False), (1 / 3, 4, False), (0.25, 4, True), (0.2, 4, True), (0.143, 7, True)],
)
def test_a_logger_that_drew_among_fewer_arms_than_there_are_was_not_uniform(
    chance: float, arms: int, uniform: bool
) -> None:
    """All propensities are alike where each context has its own arms, as where it has one that was always pulled."""
    given = replace(problem(chance, rows=4000), arms=arms)
    scores = np.zeros((4000, arms))
    for candidate in candidates(given, scores, name="it", arms="abcdefg", seed=1):
        replayed = judge(given, candidate, scores)[0]
        assert ("arms were not logged uniformly" in replayed.doubts) is not uniform and replayed.estimator == "replay"


def test_policies_without_contexts_and_what_casts_doubt() -> None:
    given = problem(rows=4000)
    scores = np.tile([0.2, 0.4, 0.6, 0.8], (4000, 1))
    fixed, uniform, greedy = candidates(given, scores, name="it", arms="abcd", seed=1)
    assert fixed.name == "always d" and (fixed.arms == 3).all()
    for candidate, truth in ((fixed, 0.8), (uniform, 0.5), (greedy, 0.9 * 0.8 + 0.1 * 0.5)):
        for finding in judge(given, candidate, scores):
            assert abs(finding.estimate.value - truth) < 4 * finding.estimate.error and not finding.doubts
    assert logged(given).rows == 2000
    wrong = judge(problem(0.5, rows=4000), uniform, scores)[1]
    assert "weights average 0.50, not 1" in wrong.doubts[0]
    few = judge(
        problem(rows=40), candidates(problem(rows=40), scores[:40], name="", arms="abcd", seed=1)[0], scores[:40]
    )
    assert any("effective rows" in doubt for doubt in few[2].doubts)
    with pytest.raises(LogError, match="cannot be learned from"):
        Problem(given.log, 4, 4000, 0.1)

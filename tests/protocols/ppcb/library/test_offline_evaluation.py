"""Offline evaluation: the private bandit counts the rows that its plaintext twin counts, and says what it disclosed."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from bandits.estimators import replay_average
from bandits.logs import RecordedLog, replay
from mpc.errors import ConfigError, RangeError
from mpc.ledger import Entry
from protocols.ppcb import PrivateContextualBandit, evaluate_offline

ENVIRONMENT = synthetic_linear(4, 8, rows=400, seed=1)


def log(rows: int, *, skewed: bool = False, seed: int = 0) -> RecordedLog:
    """What a uniform, or a skewed, policy logged."""
    rng, episode = np.random.default_rng(seed), ENVIRONMENT.episode(rows, seed)
    chances = np.array([0.4, 0.3, 0.2, 0.1] if skewed else [0.25] * 4)
    arms = rng.choice(4, rows, p=chances)
    return RecordedLog(episode.contexts, arms, episode.outcomes[np.arange(rows), arms], chances[arms])


def bandit(**changes: object) -> PrivateContextualBandit:
    return PrivateContextualBandit(4, 8, 0.2, seed=11, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("policy", "batch"), [("epsilon-greedy", 1), ("epsilon-greedy", 8), ("thompson", 7)])
def test_the_twin_counts_the_same_rows(policy: str, batch: int) -> None:
    given, private = log(150), bandit(policy=policy)
    found = evaluate_offline(private, given, batch=batch)
    twin = list(replay(private.twin(), given, private.coins(), batch=batch))
    assert [record.step for record in found.records] == [record.step for record in twin]
    assert [record.arms.tolist() for record in found.records] == [record.arms.tolist() for record in twin]
    assert [record.rewards.tolist() for record in found.records] == [record.rewards.tolist() for record in twin]
    assert found.matches == len(twin) == private.learned and private.unpaid == ()
    rewards = np.concatenate([record.rewards for record in twin])
    assert (found.estimate, found.standard_error) == replay_average(rewards)[:2] and found.estimator == "replay"


def test_who_learned_what_is_in_the_ledger() -> None:
    private = bandit()
    evaluate_offline(private, log(20), batch=8)
    assert tuple(private.ledger) == (
        Entry("puller", "arm", 20, "it is pulled"),
        Entry("everyone", "whether the logged arm was chosen", 20, "only those rows are learned from"),
    )


def test_a_skewed_log_is_weighted() -> None:
    given = log(60, skewed=True)
    found = evaluate_offline(bandit(), given, batch=20)
    assert found.ips is not None and found.snips is not None and found.estimator == "snips"
    assert (found.estimate, found.standard_error) == found.snips[:2]
    weights = (found.chosen == given.arms) / given.propensities
    assert found.ips.value == pytest.approx((weights * given.rewards).mean())


def test_a_log_of_arms_that_followed_from_the_context_is_weighted() -> None:
    given = log(40)
    found = evaluate_offline(bandit(), RecordedLog(given.contexts, given.arms, given.rewards, np.ones(40)), batch=20)
    assert found.estimator == "snips"


def test_no_row_that_counts_gives_no_estimate() -> None:
    private = PrivateContextualBandit(4, 8, 0.0, seed=2)
    for _ in range(3):
        private.learn(np.eye(8)[0], 0, 1.0)
    found = evaluate_offline(private, RecordedLog(np.eye(8)[[0, 0, 0]], np.full(3, 3), np.ones(3)))
    assert found.matches == 0 and np.isnan(found.estimate) and np.isnan(found.standard_error) and found.ips is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arms": np.array([0, 4])}, "no arm 4"),
        ({"rewards": np.array([0.0, 2.0])}, r"\[0, 1\]"),
        ({"contexts": np.zeros((2, 3))}, "shape"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_before_anything_is_shared(
    change: dict[str, np.ndarray], words: str
) -> None:
    columns = {"contexts": np.zeros((2, 8)), "arms": np.zeros(2, np.int64), "rewards": np.zeros(2), **change}
    private = bandit()
    with pytest.raises((ConfigError, RangeError), match=words):
        evaluate_offline(private, RecordedLog(**columns))
    assert private.cost.rounds == 0
    with pytest.raises(ConfigError, match="at least 1"):
        evaluate_offline(private, log(2), batch=0)

"""Rewards come late, for another arm than was predicted, from a log, or never."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.ledger import Entry

from .runs import CLOSE, OUTCOMES, X, made, pay, regressions, taught


def test_rewards_come_late_and_in_any_order(parties: int) -> None:
    bandit = made(parties=parties, policy="linucb")
    told = [bandit.predict(X[row]) for row in range(8)]
    order = np.random.default_rng(0).permutation(8)
    for row in order[:4]:
        pay(bandit, told[row], row)
    bandit.predict(X[20])
    late = order[4:]
    ids = np.array([told[row].decision_id for row in late])
    bandit.learn(reward=[OUTCOMES[row, told[row].arm] for row in late], decision_id=ids)
    arms = np.array([one.arm for one in told])
    assert np.abs(regressions(bandit) - taught(X[:8], arms, OUTCOMES[np.arange(8), arms])).max() < CLOSE
    assert bandit.unpaid == (8,)


def test_another_arm_than_the_predicted_one_may_be_pulled(parties: int) -> None:
    """Two of three decisions are overridden, and no party's share of the one-hot says by which arm."""
    bandit = made(parties=parties)
    told = bandit.predict(X[:3])
    actions = (told.arm + np.array([1, 0, 2])) % 4
    bandit.learn(None, actions, [1.0, 0.25, 1.0], decision_id=told.decision_id)
    assert np.abs(regressions(bandit) - taught(X[:3], actions, np.array([1.0, 0.25, 1.0]))).max() < CLOSE
    assert list(bandit.ledger)[1:] == [
        Entry("everyone", "that a decision was overridden", 2, "another arm was pulled than predicted")
    ]


def test_logged_rows_are_learned_from_in_batches(parties: int) -> None:
    arms = np.arange(70) % 4
    rewards = OUTCOMES[np.arange(70), arms]
    bandit, single = made(parties=parties), made(parties=parties)
    bandit.partial_fit(arms, rewards, X[:70])
    single.learn(X[0], 3, 0.5)
    assert np.abs(regressions(bandit) - taught(X[:70], arms, rewards)).max() < 1e-3
    assert np.abs(regressions(single) - taught(X[:1], np.array([3]), np.array([0.5]))).max() < CLOSE
    assert bandit.cost.rounds < 70 * single.cost.rounds / 3
    assert len(bandit.ledger) == 0, "what is learned from is an input: nobody learns anything"


def test_of_what_is_never_paid_the_latest_are_kept() -> None:
    bandit = made(most_unpaid=5)
    for row in range(8):
        bandit.predict(X[row])
    bandit.predict(X[8:10])
    assert bandit.unpaid == (5, 6, 7, 8, 9)
    with pytest.raises(ValueError, match=r"decision 4 .* older than the 5 that are kept for a reward \(most_unpaid\)"):
        bandit.learn(decision_id=4, reward=1.0)
    with pytest.raises(ValueError, match=r"6 contexts, and 5 decisions are kept .* several calls"):
        bandit.predict(X[:6])
    bandit.learn(decision_id=9, reward=1.0)
    assert bandit.learned == 1
    left = bandit._service.held.open[8]
    assert left.x.base is None and left.o.base is None, "one that is left does not keep the shares of a whole call"

"""Arms come and go, and keep their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.errors import ConfigError

from .runs import CLOSE, OUTCOMES, X, made, regressions, taught


def test_arms_come_and_go_and_keep_their_numbers() -> None:
    bandit = made()
    early = bandit.predict(X[:6], eligible=[1, 2])
    assert bandit.add_arm() == 4
    bandit.remove_arm(1)
    assert bandit.arms == (0, 2, 3, 4)
    assert np.abs(regressions(bandit)[3, :8] - np.eye(8)).max() < 2**-19
    rewards = OUTCOMES[np.arange(6), early.arm]
    bandit.learn(decision_id=early.decision_id, reward=rewards)
    assert {1, 2} <= set(early.arm)
    expected = taught(X[:6], early.arm, rewards, 5)[[0, 2, 3, 4]]
    assert np.abs(regressions(bandit) - expected).max() < CLOSE, "rewards of arm 1 change nothing, those of 2 count"
    assert bandit.predict(X[0], eligible=[4]).arm == 4
    bandit.learn(X[7], 4, 1.0)
    assert regressions(bandit)[3, 8] @ X[7] == pytest.approx(0.5, abs=CLOSE)
    with pytest.raises(ConfigError, match=r"no arm 1: the arms are 0, 2, 3, 4"):
        bandit.predict(X[0], eligible=[1])
    assert bandit.add_arm() == 5


def test_two_arms_stay() -> None:
    bandit = made(n_arms=2)
    with pytest.raises(ConfigError, match="at least 2 arms: add another"):
        bandit.remove_arm(0)

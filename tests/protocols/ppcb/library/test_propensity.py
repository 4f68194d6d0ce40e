"""Honest propensities: an interval that everybody knows, or the number, which the ledger says was revealed."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import arm_probabilities
from mpc.errors import ConfigError

from .runs import OUTCOMES, X, made, regressions


def test_a_propensity_is_the_interval_that_everybody_knows() -> None:
    bandit = made()
    told = bandit.predict(X[:3])
    assert told.propensity.low.tolist() == [0.05] * 3
    assert told.propensity.high == pytest.approx([0.85] * 3)
    assert bandit.predict(X[0], [0, 1, 2]).propensity == pytest.approx((0.2 / 3, 0.8 + 0.2 / 3))
    assert [entry.what for entry in bandit.ledger] == ["arm"]


def test_a_revealed_propensity_is_exact_and_in_the_ledger(parties: int) -> None:
    """Ties at the start, then what `arm_probabilities` says; in front of a subset of arms too."""
    bandit = made(parties=parties, eps=0.5)
    start = bandit.predict(X[:5], reveal_propensity=True)
    assert start.propensity.low == pytest.approx([0.25] * 5), "four arms tie"
    bandit.partial_fit(np.arange(30) % 4, OUTCOMES[np.arange(30), np.arange(30) % 4], X[:30])
    told = bandit.predict(X[:30], reveal_propensity=True)
    scores = X[:30] @ regressions(bandit)[:, 8].T
    exact = arm_probabilities(scores, 0.5)[np.arange(30), told.arm]
    assert told.propensity.low == pytest.approx(exact) and (told.propensity.low == told.propensity.high).all()
    assert len(np.unique(exact)) == 2, "both a best and an explored arm were pulled"
    few = bandit.predict(X[:30], [0, 3], reveal_propensity=True)
    exact = arm_probabilities(scores[:, [0, 3]], 0.5)[np.arange(30), few.arm // 3]
    assert few.propensity.low == pytest.approx(exact)
    what = "whether the arm was the best, and with how many tied"
    assert [(entry.what, entry.role, entry.count) for entry in bandit.ledger][1] == (what, "puller", 65)


@pytest.mark.parametrize("policy", ["linucb", "thompson"])
def test_propensities_of_other_policies_stay_bounds(policy: str) -> None:
    bandit = made(policy=policy)
    assert bandit.predict(X[0]).propensity == pytest.approx((0.05, 0.85))
    with pytest.raises(ConfigError, match="leave out reveal_propensity"):
        bandit.predict(X[0], reveal_propensity=True)

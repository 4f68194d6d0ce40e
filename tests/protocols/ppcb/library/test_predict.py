"""Predicting: the twin's arms, many contexts in the rounds of one, eligible arms alone, coins known with a seed."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.ppcb import PrivateContextualBandit

from .runs import OUTCOMES, X, made, regressions


@pytest.mark.parametrize("policy", ["epsilon-greedy", "thompson"])
@pytest.mark.parametrize("batch", [1, 5])
def test_it_pulls_the_arms_of_its_twin(policy: str, batch: int) -> None:
    bandit = made(policy=policy, parties=3)
    pulled = []
    for start in range(0, len(X), batch):
        rows = np.arange(start, start + batch)
        told = bandit.predict(X[rows] if batch > 1 else X[start])
        arms = np.atleast_1d(told.arm)
        bandit.learn(decision_id=told.decision_id, reward=OUTCOMES[rows, arms])
        pulled.append(arms)
    twin = bandit.twin()
    for number, choice in enumerate(bandit.coins()):
        rows = np.arange(number * batch, (number + 1) * batch)
        arms = choice.pick(twin.scores(X[None, rows], choice))
        assert (arms[0] == pulled[number]).all(), number
        twin.update(X[None, rows], arms, OUTCOMES[rows, arms[0]][None])
    assert np.abs(regressions(bandit)[:, 8] - twin.weights[0]).max() < 1e-3
    assert bandit.learned == len(X) and bandit.unpaid == ()


def test_contexts_may_be_tensors() -> None:
    torch = pytest.importorskip("torch")
    bandit = PrivateContextualBandit(3, 2, parties=2, seed=1)
    told = bandit.predict(torch.tensor([[0.5, -0.5], [1.0, 0.0]]))
    bandit.learn(decision_id=told.decision_id, reward=torch.tensor([1.0, 0.0]))
    assert bandit.learned == 2


def test_many_are_decided_on_in_the_rounds_of_one_and_learned_from_in_batches() -> None:
    """More than could be learned from together; and no more than fit in memory."""
    bandit = made(dim=9, parties=3)
    alone = bandit.predict(np.zeros(9)) and bandit.cost.rounds
    told = bandit.predict(np.full((200, 9), 0.2))
    assert bandit.cost.rounds == 2 * alone and bandit.learn_batch < 200
    bandit.learn(decision_id=told.decision_id[:40], reward=np.ones(40))
    most = 300_000 // (6 * 3)
    with pytest.raises(ValueError, match=f"than fit in memory: at most {most:,} in a call"):
        bandit.predict(np.zeros((most + 1, 9)))


def test_only_eligible_arms_are_pulled() -> None:
    bandit = made(eps=1.0)
    assert set(bandit.predict(X[:40], eligible=[3, 1]).arm) == {1, 3}
    one = bandit.predict(X[0], [2])
    assert (one.arm, one.propensity) == (2, (1.0, 1.0))
    assert bandit.predict(X[0], eligible=[0, 2]).propensity == (0.5, 0.5)


def test_coins_are_known_with_a_seed_alone() -> None:
    bandit = made(seed=None)
    bandit.predict(X[0])
    with pytest.raises(ConfigError, match="seed"):
        bandit.coins()
    first, second = (made().predict(X[:20]).arm.tolist() for _ in range(2))
    assert first == second

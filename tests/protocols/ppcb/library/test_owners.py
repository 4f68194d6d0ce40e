"""The library with blocks of any width, a party without features among them, and with real rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import RangeError, Session
from protocols.ppcb import Hear, PrivateContextualBandit, payer_client, puller_client
from protocols.ppcb.library.arguments import ArgumentError
from protocols.ppcb.player import split
from tests.parties.threads import over_tcp, values

from .runs import CLOSE, X, made, regressions, taught

REWARDS = np.linspace(-2.0, 3.0, 24)
ARMS = np.arange(24) % 4


@pytest.mark.parametrize("owners", [[8, 0], [3, 5], [0, 1, 7], [2, 2, 0, 4, 0]], ids=str)
def test_real_rewards_of_contexts_of_any_owners_are_learned(owners: list[int], tmp_path: Path) -> None:
    bandit = made(parties=len(owners), owners=owners, reward_range=(-2, 3))
    bandit.partial_fit(ARMS, REWARDS, X[:24])
    assert np.abs(regressions(bandit) - taught(X[:24], ARMS, REWARDS)).max() < CLOSE
    told = bandit.predict(X[30])
    assert told.arm in range(4)
    bandit.save(tmp_path)
    again = PrivateContextualBandit.load(tmp_path, seed=1)
    assert again.settings == bandit.settings and again.settings.widths == tuple(owners)
    again.learn(decision_id=told.decision_id, reward=-1.5)


def test_a_partys_end_without_features(tmp_path: Path) -> None:
    blocks = split(X, 2, (8, 0))

    def party(session: Session) -> PrivateContextualBandit:
        own = blocks[session.hosted[0]]
        bandit = PrivateContextualBandit.over(
            session, n_arms=4, dim=8, eps=0.0, owners=(8, 0), reward_range=(-1.0, 0.0)
        )
        bandit.predict(own[:2])
        bandit.learn(decision_id=[0, 1])
        return bandit

    arms: list[Any] = []
    clients = {
        "puller": lambda: puller_client([Hear(2)], lambda pulled, _: arms.append(pulled)),
        "payer": lambda: payer_client([[-1.0, -0.25]], reward_range=(-1.0, 0.0)),
    }
    bandits = values(over_tcp(2, party, clients=clients))[:2]
    assert np.abs(regressions(*bandits) - taught(X[:2], arms[0], np.array([-1.0, -0.25]))).max() < CLOSE


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"owners": [8]}, ArgumentError, "parties is 2 and owners has a number for 1"),
        ({"owners": [4.0, 4.0]}, ArgumentError, "owners are whole numbers"),
        ({"owners": [4, 5]}, RangeError, "which add up to 8"),
        ({"reward_range": 1.0}, ArgumentError, "reward_range is a pair of numbers, not 1.0"),
        ({"reward_range": ("a", 1.0)}, ArgumentError, "an end of reward_range is a number, not 'a'"),
        ({"reward_range": (1.0, 0.0)}, RangeError, "the lower first"),
    ],
    ids=str,
)
def test_what_cannot_be(changes: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        made(**changes)


def test_a_reward_beyond_the_range_is_refused() -> None:
    bandit = made(reward_range=(-1.0, 0.5))
    bandit.partial_fit([0], [-1.0], X[:1])
    with pytest.raises(RangeError, match=r"rewards lie in \[-1, 0.5\]: .* another reward_range"):
        bandit.partial_fit([0], [0.6], X[:1])

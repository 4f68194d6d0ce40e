"""What the tests of the library lean on: small bandits, their regressions in the clear, and a plaintext learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bandits.environments import synthetic_linear
from protocols.ppcb import PrivateContextualBandit

ENVIRONMENT = synthetic_linear(4, 8, rows=400, seed=1)
EPISODE = ENVIRONMENT.episode(120, 3)
X, OUTCOMES = EPISODE.contexts, EPISODE.outcomes
CLOSE = 1e-4


def made(**changes: Any) -> PrivateContextualBandit:
    return PrivateContextualBandit(**{"n_arms": 4, "dim": 8, "eps": 0.2, "parties": 2, "seed": 5, **changes})


def regressions(*bandits: PrivateContextualBandit) -> np.ndarray:
    """[P_a; w_a'] in the clear, from the shares of all parties."""
    words = np.concatenate([bandit._service.held.words["table"] for bandit in bandits])
    return words.sum(axis=0, dtype=np.uint64).view(np.int64)[0] * 2.0 ** -bandits[0].settings.state_bits


def taught(rows: np.ndarray, arms: np.ndarray, rewards: np.ndarray, n_arms: int = 4) -> np.ndarray:
    """The same in plaintext, by normal equations."""
    tables = []
    for arm in range(n_arms):
        x, r = rows[arms == arm], rewards[arms == arm]
        inverse = np.linalg.inv(np.eye(8) + x.T @ x)
        tables.append(np.concatenate([inverse, (inverse @ x.T @ r)[None]]))
    return np.stack(tables)


def pay(bandit: PrivateContextualBandit, told: Any, row: int) -> None:
    bandit.learn(decision_id=told.decision_id, reward=OUTCOMES[row, told.arm])


def saved(folder: Path) -> PrivateContextualBandit:
    """A bandit with a removed arm, a late arm and unpaid decisions, as it was saved."""
    bandit = made(n_arms=np.int64(4), dim=np.int64(8))
    bandit.partial_fit(np.arange(20) % 4, OUTCOMES[np.arange(20), np.arange(20) % 4], X[:20])
    bandit.predict(X[:3])
    bandit.add_arm()
    bandit.remove_arm(0)
    bandit.predict(X[3:5])
    bandit.save(folder)
    return bandit

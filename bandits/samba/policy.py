"""What the six policies have in common: one player who sees every pull and every reward.

    n_i  pulls of arm i          m_i = s_i / n_i
    s_i  the sum of its rewards, each 0 or 1

The first K steps pull each arm once, in order; after that a policy chooses.  Steps are counted from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from .coins import Coins
from .errors import SambaError


class Policy(ABC):
    """pulls: (K,) n.  sums: (K,) s.  iterations: how often scores are looked at for one choice."""

    iterations = 1

    def __init__(self, arms: int) -> None:
        if arms < 1:
            raise SambaError(f"a game has at least 1 arm, not {arms}")
        self.pulls = np.zeros(arms, np.int64)
        self.sums = np.zeros(arms, np.int64)

    @property
    def arms(self) -> int:
        """K."""
        return len(self.pulls)

    @property
    def means(self) -> np.ndarray:
        """m, once every arm was pulled."""
        return self.sums / self.pulls

    def pull(self, t: int, coins: Coins) -> int:
        """The arm of step t."""
        return t - 1 if t <= self.arms else self._choose(t, coins)

    def update(self, arm: int, reward: int) -> None:
        """Learn what the arm paid, 0 or 1."""
        self.pulls[arm] += 1
        self.sums[arm] += reward

    @abstractmethod
    def _choose(self, t: int, coins: Coins) -> int:
        """The arm of step t > K."""


def probability(value: float, name: str) -> float:
    """A parameter in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise SambaError(f"{name} is a probability, {value:g} is not: choose one in [0, 1]")
    return value

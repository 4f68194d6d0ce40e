"""Pursuit (Thathachar and Sastry 1985): probabilities that run after the arm of the largest mean.

p_i = 1 / K at first; then each step, where b is the arm of the largest mean
p_b += beta (1 - p_b),  p_i += beta (0 - p_i) for the others
and an arm is drawn with probability p_i
"""

from __future__ import annotations

import numpy as np

from .coins import Coins
from .policy import Policy, probability
from .words import SCORE_BITS, best, drawn, words


class Pursuit(Policy):
    """Looks twice: at means, then at probabilities, of which `bits` fraction bits count."""

    iterations = 2

    def __init__(self, arms: int, beta: float = 0.1, *, bits: int = SCORE_BITS) -> None:
        super().__init__(arms)
        self._beta, self._bits = probability(beta, "beta"), bits
        self.chances = np.full(arms, 1.0 / arms)

    def _choose(self, t: int, coins: Coins) -> int:
        target = np.zeros(self.arms)
        target[best(words(self.means), coins.order(t, 1))] = 1.0
        self.chances = self.chances + self._beta * (target - self.chances)
        return drawn(words(self.chances, self._bits).tolist(), coins.order(t, 2), *coins.point(t))

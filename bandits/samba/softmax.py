"""Softmax, also called Boltzmann exploration: an arm with probability proportional to e^(m_i / tau).

    drawn    weights e^((m_i - 1) / tau), as integers
    raced    argmax of m_i / tau + G_i, where G_i is a Gumbel draw of the arm's owner

Both draw from the same distribution (Gumbel 1954), not with the same coins.  Integers of the first kind have 1.44 / tau
bits and more, which words of 64 bits cannot hold; those of a race have 52 for every tau.
"""

from __future__ import annotations

import numpy as np

from .coins import Coins
from .policy import Policy
from .words import best, check_tau, drawn, softmax_word, words


class Softmax(Policy):
    """race: which of the two forms."""

    def __init__(self, arms: int, tau: float = 0.06, *, race: bool = False) -> None:
        super().__init__(arms)
        self._tau, self._race = check_tau(tau), race
        self._weights = [0] * arms

    def update(self, arm: int, reward: int) -> None:
        """Learn what the arm paid, 0 or 1: its weight alone changes."""
        super().update(arm, reward)
        self._weights[arm] = softmax_word(int(self.sums[arm]) / int(self.pulls[arm]), self._tau)

    def _choose(self, t: int, coins: Coins) -> int:
        order = coins.order(t, 1)
        if not self._race:
            return drawn(self._weights, order, *coins.point(t))
        noise = np.array([coins.noise(arm).gumbel() for arm in range(self.arms)])
        return best(words(self.means / self._tau + noise), order)

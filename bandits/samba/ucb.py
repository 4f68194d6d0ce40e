"""The arm of the largest upper confidence bound (Auer, Cesa-Bianchi and Fischer 2002)."""

from __future__ import annotations

import math

import numpy as np

from .coins import Coins
from .policy import Policy
from .words import best, words


class UCB(Policy):
    """argmax of  m_i + sqrt(2 ln t / n_i)."""

    def _choose(self, t: int, coins: Coins) -> int:
        return best(words(self.means + np.sqrt(2.0 * math.log(t) / self.pulls)), coins.order(t, 1))

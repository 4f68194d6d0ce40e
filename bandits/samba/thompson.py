"""Thompson sampling for rewards of 0 and 1 (Thompson 1933), from the uniform prior."""

from __future__ import annotations

import numpy as np

from .coins import Coins
from .policy import Policy
from .words import best, words


class Thompson(Policy):
    """argmax of draws from Beta(s_i + 1, n_i - s_i + 1), each from the noise of its arm's owner."""

    def _choose(self, t: int, coins: Coins) -> int:
        draws = [
            coins.noise(arm).beta(successes + 1, pulls - successes + 1)
            for arm, (successes, pulls) in enumerate(zip(self.sums.tolist(), self.pulls.tolist()))
        ]
        return best(words(np.array(draws)), coins.order(t, 1))

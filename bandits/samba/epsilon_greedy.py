"""The arm of the largest mean; with probability eps a uniform one."""

from __future__ import annotations

from .coins import Coins
from .policy import Policy, probability
from .words import best, words


class EpsilonGreedy(Policy):
    """A fixed eps."""

    def __init__(self, arms: int, eps: float = 0.1) -> None:
        super().__init__(arms)
        self._eps = probability(eps, "eps")

    def eps(self, t: int) -> float:
        """How likely step t explores."""
        return self._eps

    def _choose(self, t: int, coins: Coins) -> int:
        order = coins.order(t, 1)
        return int(order[0]) if coins.explore(t, self.eps(t)) else best(words(self.means), order)

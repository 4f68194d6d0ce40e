"""The arm of the largest mean; at step t with probability 1 / ln t a uniform one."""

from __future__ import annotations

import math

from .epsilon_greedy import EpsilonGreedy


class EpsilonDecreasing(EpsilonGreedy):
    """eps_t = min(1, 1 / ln t)."""

    def eps(self, t: int) -> float:
        """How likely step t explores."""
        return 1.0 if t < 3 else 1.0 / math.log(t)

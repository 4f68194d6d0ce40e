"""Linear Thompson sampling (Agrawal and Goyal 2013): s_a ~ N(w_a . x, alpha^2 x' P_a x), independent over arms.

It is the law of theta . x for theta ~ N(w_a, alpha^2 P_a): one normal draw for each arm is enough.
"""

from __future__ import annotations

import numpy as np

from .linear import Choice, LinearBandit


class ThompsonSampling(LinearBandit):
    """R replicas of linear Thompson sampling with disjoint arms."""

    def __init__(self, replicas: int, arms: int, dim: int, *, ridge: float = 1.0, alpha: float = 1.0) -> None:
        super().__init__(replicas, arms, dim, ridge=ridge)
        self.alpha = alpha

    def scores(self, contexts: np.ndarray, choice: Choice) -> np.ndarray:
        """Predictions at sampled weights."""
        return self.predictions(contexts) + self.alpha * self.widths(contexts) * choice.noise

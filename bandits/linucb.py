"""LinUCB (Li, Chu, Langford and Schapire 2010): s_a = w_a . x + alpha sqrt(x' P_a x)."""

from __future__ import annotations

import numpy as np

from .linear import Choice, LinearBandit


class LinUCB(LinearBandit):
    """R replicas of LinUCB with disjoint arms."""

    def __init__(self, replicas: int, arms: int, dim: int, *, ridge: float = 1.0, alpha: float = 1.0) -> None:
        super().__init__(replicas, arms, dim, ridge=ridge)
        self.alpha = alpha

    def scores(self, contexts: np.ndarray, choice: Choice) -> np.ndarray:
        """Optimistic predictions."""
        return self.predictions(contexts) + self.alpha * self.widths(contexts)

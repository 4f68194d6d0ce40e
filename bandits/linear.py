"""Epsilon-greedy on per-arm ridge regressions, in the clear: the twin of the private contextual bandit.

    P_a = (ridge I + sum x x')^-1,  w_a = P_a sum r x           over the contexts that pulled a
    s_a = w_a . x;   pull the largest, or with probability eps a uniform arm
    u = P_a x,  g = 1 / (1 + x'u);   P_a -= g u u',  w_a += g u (r - s_a)        Sherman and Morrison

Arrays have a leading axis of R independent replicas, then one of the B contexts that are decided on together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Choice:
    """The coins of one decision: whether to explore, the orders that then, or on a tie, decide, and normal draws.

    explore: (replicas, batch).  order, ties and noise: (replicas, batch, arms).
    unit: what a place in `ties` adds to a score, so that scores closer than that are a tie.
    """

    explore: np.ndarray
    order: np.ndarray
    ties: np.ndarray
    noise: np.ndarray
    unit: float = 0.0

    @classmethod
    def draw(
        cls, rng: np.random.Generator, replicas: int, arms: int, eps: float | np.ndarray, *, batch: int = 1
    ) -> Choice:
        """Coins from numpy's generator: for plaintext policies, never for masks.  eps may be one for each replica."""
        shape = (replicas, batch, arms)
        orders = rng.random((2, *shape)).argsort(axis=-1)
        return cls(rng.random(shape[:2]) < np.reshape(eps, (-1, 1)), orders[0], orders[1], rng.normal(size=shape))

    def pick(self, scores: np.ndarray) -> np.ndarray:
        """The arm for each context: the largest of (exploring order if exploring, rank, tie order)."""
        scores = self.ranks(scores)
        best = scores == scores.max(axis=-1, keepdims=True)
        greedy = np.where(best, self.ties, -1).argmax(axis=-1)
        return np.where(self.explore, self.order.argmax(axis=-1), greedy)

    def ranks(self, scores: np.ndarray) -> np.ndarray:
        """What arms are compared by where none is explored."""
        return scores + self.unit * self.ties if self.unit else scores


class LinearBandit:
    """R replicas of an epsilon-greedy linear bandit."""

    def __init__(self, replicas: int, arms: int, dim: int, *, ridge: float = 1.0) -> None:
        self.inverse = np.broadcast_to(np.eye(dim) / ridge, (replicas, arms, dim, dim)).copy()
        self.weights = np.zeros((replicas, arms, dim))
        self._replica = np.arange(replicas)

    def predictions(self, contexts: np.ndarray) -> np.ndarray:
        """w_a . x for (replicas, batch, dim) contexts."""
        return np.einsum("rad,rbd->rba", self.weights, contexts)

    def widths(self, contexts: np.ndarray) -> np.ndarray:
        """sqrt(x' P_a x), how little each arm knows of a context."""
        return np.sqrt(np.einsum("rbd,rade,rbe->rba", contexts, self.inverse, contexts, optimize=True))

    def scores(self, contexts: np.ndarray, choice: Choice) -> np.ndarray:
        """What the arms are ranked by."""
        return self.predictions(contexts)

    def update(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn from what the pulled arms paid; (replicas, batch) arms and rewards."""
        for x, arm, reward in zip(contexts.swapaxes(0, 1), arms.T, rewards.T, strict=True):
            at = (self._replica, arm)
            u = np.einsum("rde,re->rd", self.inverse[at], x)
            gain = u / (1.0 + np.einsum("rd,rd->r", x, u))[:, None]
            surprise = reward - np.einsum("rd,rd->r", self.weights[at], x)
            self.inverse[at] -= gain[:, :, None] * u[:, None, :]
            self.weights[at] += gain * surprise[:, None]

"""Epsilon-greedy on per-arm ridge regressions, in the clear: the twin of the private contextual bandit.

    P_a = (ridge I + sum x x')^-1,  w_a = P_a sum r x           over the steps that pulled a
    s_a = w_a . x;   pull the largest, or with probability eps a uniform arm
    u = P_a x,  g = 1 / (1 + x'u);   P_a -= g u u',  w_a += g u (r - s_a)        Sherman and Morrison

All arrays have a leading axis of independent replicas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Choice:
    """The coins of one step: whether to explore, and the orders that then, or on a tie, decide; (replicas[, arms])."""

    explore: np.ndarray
    order: np.ndarray
    ties: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, replicas: int, arms: int, eps: float) -> Choice:
        """Coins from numpy's generator: for plaintext policies, never for masks."""
        orders = rng.random((2, replicas, arms)).argsort(axis=-1)
        return cls(rng.random(replicas) < eps, orders[0], orders[1])

    def pick(self, scores: np.ndarray) -> np.ndarray:
        """The arm of each replica: the largest of (exploring order if exploring, score, tie order)."""
        best = scores == scores.max(axis=-1, keepdims=True)
        greedy = np.where(best, self.ties, -1).argmax(axis=-1)
        return np.where(self.explore, self.order.argmax(axis=-1), greedy)


class LinearBandit:
    """R replicas of an epsilon-greedy linear bandit."""

    def __init__(self, replicas: int, arms: int, dim: int, *, ridge: float = 1.0) -> None:
        self.inverse = np.broadcast_to(np.eye(dim) / ridge, (replicas, arms, dim, dim)).copy()
        self.weights = np.zeros((replicas, arms, dim))
        self._replica = np.arange(replicas)

    def scores(self, contexts: np.ndarray) -> np.ndarray:
        """s_a for (replicas, dim) contexts."""
        return np.einsum("rad,rd->ra", self.weights, contexts)

    def update(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn from what the pulled arms paid."""
        at = (self._replica, arms)
        u = np.einsum("rde,re->rd", self.inverse[at], contexts)
        gain = u / (1.0 + np.einsum("rd,rd->r", contexts, u))[:, None]
        surprise = rewards - np.einsum("rd,rd->r", self.weights[at], contexts)
        self.inverse[at] -= gain[:, :, None] * u[:, None, :]
        self.weights[at] += gain * surprise[:, None]

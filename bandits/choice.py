"""Choosing an arm from scores, in the clear: what the secure choices must agree with."""

from __future__ import annotations

import numpy as np


def best_arms(scores: np.ndarray) -> np.ndarray:
    """1 for each arm that has the largest score of its row, else 0; several ones are a tie."""
    return (scores == scores.max(axis=-1, keepdims=True)).astype(np.int64)


def epsilon_greedy(scores: np.ndarray, eps: float, rng: np.random.Generator) -> np.ndarray:
    """One-hot: with probability eps a uniform arm, else a uniform one of the best."""
    best = best_arms(scores)
    explore = rng.random(scores.shape[:-1]) < eps
    allowed = np.where(explore[..., None], 1, best)
    keys = np.where(allowed == 1, rng.random(scores.shape), -1.0)
    return (keys == keys.max(axis=-1, keepdims=True)).astype(np.int64)


def arm_probabilities(scores: np.ndarray, eps: float) -> np.ndarray:
    """How likely `epsilon_greedy` chooses each arm."""
    best = best_arms(scores)
    return eps / scores.shape[-1] + (1.0 - eps) * best / best.sum(axis=-1, keepdims=True)


def categorical(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """One-hot of the first arm whose running sum exceeds uniform * total, the last if none; uniform in [0, 1)."""
    running = weights.cumsum(axis=-1)
    drawn = (running[..., :-1] <= uniform[..., None] * running[..., -1:]).sum(axis=-1)
    return (np.arange(weights.shape[-1]) == drawn[..., None]).astype(np.int64)

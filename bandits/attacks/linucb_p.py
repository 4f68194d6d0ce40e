"""P of LinUCB-DS, who sees no reward, estimates theta from the arms that it pulls.  Knows public data; numpy only.

P drew the noise and knows c and e of B_i = <c_i, theta> + e_i, and each pull tells it that B of the pulled arm was the
largest: K - 1 linear inequalities for theta.  The estimate is the mode of

    prod_t softmax_i(B_i(t) / tau) at the pulled arm, times a normal prior of size S

by Newton's method, for a temperature tau that falls until a pull is nearly a hard inequality.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fixed_point import PublicMap
from ..linear_problem import Exploration

_TEMPERATURES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
_NEWTON = 30
_DONE = 1e-9


def estimate(arms: np.ndarray, pulled: Sequence[int], noise: np.ndarray, exploration: Exploration) -> np.ndarray:
    """theta, (d,), from N pulled arms and the noise of their rewards; 0 where a single pull says nothing."""
    dim = arms.shape[1]
    public = PublicMap(arms, exploration, len(pulled))
    coefficients, offsets = np.zeros((0, *arms.shape)), np.zeros((0, len(arms)))
    steps = []
    for arm, eta in zip(pulled, noise.tolist()):
        if public.pulls:
            steps.append((public.coefficients(), public.offsets()))
        public.update(int(arm), eta)
    if not steps:
        return np.zeros(dim)
    coefficients, offsets = (np.stack(part) for part in zip(*steps))
    chosen = np.array(pulled[1:])
    theta = np.zeros(dim)
    for temperature in _TEMPERATURES:
        theta = _mode(theta, coefficients, offsets, chosen, temperature, exploration.theta_norm)
    return theta


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    """Of the angle between two vectors; 0 where one is 0."""
    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / size if size else 0.0


def _mode(
    theta: np.ndarray, coefficients: np.ndarray, offsets: np.ndarray, chosen: np.ndarray, temperature: float,
    size: float,
) -> np.ndarray:  # fmt: skip
    """Damped Newton on a concave function."""
    value, gradient, curvature = _likelihood(theta, coefficients, offsets, chosen, temperature, size)
    for _ in range(_NEWTON):
        move = np.linalg.solve(curvature, gradient)
        step = 1.0
        while step > _DONE:
            tried = _likelihood(theta + step * move, coefficients, offsets, chosen, temperature, size)
            if tried[0] > value:
                break
            step /= 2.0
        else:
            break
        gained = tried[0] - value
        theta, (value, gradient, curvature) = theta + step * move, tried
        if gained < _DONE:
            break
    return theta


def _likelihood(
    theta: np.ndarray, coefficients: np.ndarray, offsets: np.ndarray, chosen: np.ndarray, temperature: float,
    size: float,
) -> tuple[float, np.ndarray, np.ndarray]:  # fmt: skip
    """Log-likelihood and prior, its gradient, and its curvature with the sign turned."""
    scores = (coefficients @ theta + offsets) / temperature
    scores -= scores.max(axis=1, keepdims=True)
    weights = np.exp(scores)
    totals = weights.sum(axis=1)
    weights /= totals[:, None]
    step = np.arange(len(chosen))
    mean = np.einsum("tk,tkd->td", weights, coefficients)
    spread = np.einsum("tk,tkd,tke->de", weights, coefficients, coefficients, optimize=True) - mean.T @ mean
    value = (scores[step, chosen] - np.log(totals)).sum() - theta @ theta / (2.0 * size**2)
    gradient = (coefficients[step, chosen] - mean).sum(axis=0) / temperature - theta / size**2
    return float(value), gradient, spread / temperature**2 + np.eye(len(theta)) / size**2

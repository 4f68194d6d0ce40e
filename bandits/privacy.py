"""Differential privacy of epsilon-greedy: what one pulled arm tells of the context.  Knows formulas only.

An arm is pulled with probability at least eps / A and at most 1 - eps + eps / A, whatever the context, so the ratio of
any two chances is at most A (1 - eps) / eps + 1 = A / eps - A + 1.  Its logarithm is the step's eta.  The coins are the
dealer's: the statement holds against everyone but the dealer.
"""

from __future__ import annotations

import math


def eta_per_step(arms: int, eps: float) -> float:
    """log(A / eps - A + 1); infinite without exploration, 0 with one arm or eps = 1."""
    _check(arms, eps)
    if arms == 1:
        return 0.0
    return math.log1p(arms * (1 - eps) / eps) if eps > 0 else math.inf


def eta_bound(arms: int, eps: float) -> float:
    """The simpler bound log(A / eps)."""
    _check(arms, eps)
    return math.log(arms / eps) if eps > 0 else math.inf


def eps_for(arms: int, eta: float) -> float:
    """The eps whose step has this eta: A / (e^eta + A - 1)."""
    if arms < 1 or not eta >= 0:
        raise ValueError(f"at least 1 arm and eta >= 0 are needed, not {arms} and {eta:g}")
    small = math.exp(-eta)  # e^eta overflows
    return arms * small / (1 + (arms - 1) * small)


def basic(eta: float, steps: int) -> float:
    """Steps add up: T eta."""
    return steps * eta


def advanced(eta: float, steps: int, delta: float) -> float:
    """Dwork, Rothblum and Vadhan 2010: sqrt(2 T log(1 / delta)) eta + T eta (e^eta - 1), with probability 1 - delta."""
    if not 0 < delta < 1:
        raise ValueError(f"delta is a probability in (0, 1), not {delta:g}")
    if eta > 700:
        return math.inf
    return math.sqrt(2 * steps * math.log(1 / delta)) * eta + steps * eta * math.expm1(eta)


def _check(arms: int, eps: float) -> None:
    if arms < 1 or not 0 <= eps <= 1:
        raise ValueError(f"at least 1 arm and eps in [0, 1] are needed, not {arms} and {eps:g}")

"""Epsilon-greedy over many steps, by privacy loss distributions.  The door to dp_accounting and to scipy.

Epsilon-greedy over A arms is randomized response over A buckets around the greedy arm.  So one step's loss
log(P[arm | one] / P[arm | other]) has three values, and the sum over T steps is a whole number of etas:

    +eta  with chance 1 - eps + eps / A        -eta  with chance eps / A        0  with chance (A - 2) eps / A

Here the grid's spacing is eta itself.  Every loss lies on it, nothing is rounded, and T steps take at most 2 T + 1
places; a grid of spacing 1e-4 takes T eta / 1e-4, and rounding would add up to T times the spacing.  (The accountant of
dp_accounting 0.6.0 counts a RandomizedResponseDpEvent once however often it is composed; its distributions are right.)

What T steps mean.  The secret is everything put in: contexts and rewards.  A context of step t also enters the
learned state, and through it every later choice.  But given the arms so far, the next arm is again randomized response
around a greedy arm that the secret decides.  Its loss is at most one step's, and the adaptive composition is dominated
by that of T independent steps (Zhu, Dong and Wang, AISTATS 2022).  So T steps bound what T arms tell of any change of
the secret: of all contexts, or of one that is there from the first step; T - t + 1 bound it for a context of step t.
Steps are never parallel, unless nothing is learned from a context: then its own step, eta, is all it meets.
Ties broken at random, and arms that nobody sees, only mix such distributions, and a mixture tells no more.
"""

from __future__ import annotations

import math

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from scipy import special

from .privacy import eta_per_step

MAX_STEPS = 10_000_000
_HALVINGS = 48


def pld(arms: int, eps: float, steps: int, delta: float) -> float:
    """An epsilon for which `steps` steps together are (epsilon, delta)-private; infinite without exploration.

    An upper bound, tight for randomized response: the search ends above the root, by 2^-48 of T eta, and part of delta
    is kept back for what floating point loses in the Fourier transform, 40 times what was measured up to 10^6 steps.
    """
    if not 1 <= steps <= MAX_STEPS:
        raise ValueError(f"composition takes 1 to {MAX_STEPS:,} steps, not {steps:,}")
    if not 0 < delta < 1:
        raise ValueError(f"delta is a probability in (0, 1), not {delta:g}: choose one such as 1e-6")
    lost = 1e-14 + 1e-15 * steps
    if delta < 10 * lost:
        raise ValueError(
            f"floating point composes {steps:,} steps for a delta from {10 * lost:.1g}, not {delta:g}: choose a "
            "larger delta or fewer steps"
        )
    eta = eta_per_step(arms, eps)
    if not 0 < eta < math.inf:
        return eta
    all_steps = loss_distribution(arms, eps).self_compose(steps)
    if all_steps.get_delta_for_epsilon(0.0) <= delta - lost:
        return 0.0
    low, high = 0.0, steps * eta
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if all_steps.get_delta_for_epsilon(middle) > delta - lost:
            low = middle
        else:
            high = middle
    return high


def loss_distribution(arms: int, eps: float) -> PrivacyLossDistribution:
    """One step's loss on the grid of spacing eta; for at least 2 arms and eps in (0, 1)."""
    other = eps / arms
    chances = {1: 1.0 - eps + other, 0: (arms - 2) * other, -1: other}
    return PrivacyLossDistribution.create_from_rounded_probability(chances, 0.0, eta_per_step(arms, eps))


def clopper_pearson(successes: np.ndarray, trials: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Exact bounds of a chance, each wrong with probability at most alpha (Clopper and Pearson 1934)."""
    failures = trials - successes
    lower = special.betaincinv(np.maximum(successes, 1), failures + 1, alpha)
    upper = special.betaincinv(successes + 1, np.maximum(failures, 1), 1.0 - alpha)
    return np.where(successes == 0, 0.0, lower), np.where(failures == 0, 1.0, upper)

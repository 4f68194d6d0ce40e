"""Scores as integers, and choosing among them: the rounding that plaintext, classic and mpc have in common.

    word(v)  = round(v 2^40), half to even
    best     = the first arm in `order` with the largest word: equal words are ties
    drawn    = the first arm in `order` whose running sum C satisfies  C 2^c > u total,  u uniform in [0, 2^c)

All in exact integers, so whatever computes the same words chooses the same arm.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate

import numpy as np

from .errors import SambaError

SCORE_BITS = 40  # two different UCB scores can be 6e-10 apart
LEAST_TAU, LARGEST_TAU = 1e-3, 1e6
_SIGNIFICANT = 52
_LOG2_E = math.log2(math.e)


def word(value: float, bits: int = SCORE_BITS) -> int:
    """round(value 2^bits), half to even."""
    return round(math.ldexp(value, bits))


def words(values: np.ndarray, bits: int = SCORE_BITS) -> np.ndarray:
    """The same of several, int64: |values| 2^bits < 2^63."""
    return np.rint(np.ldexp(values, bits)).astype(np.int64)


def best(scores: np.ndarray, order: np.ndarray) -> int:
    """The largest; of equal ones the first in `order`."""
    return int(order[scores[order].argmax()])


def drawn(weights: list[int], order: np.ndarray, u: int, c: int) -> int:
    """An arm with probability weight / total, to within 2^-c."""
    ahead = order.tolist()
    running = list(accumulate([weights[arm] for arm in ahead]))
    if running[-1] <= 0:
        raise SambaError("all weights are 0: nothing can be drawn")
    return int(ahead[bisect_right(running, u * running[-1] >> c)])


def weight_bits(tau: float) -> int:
    """Fraction bits of a softmax weight: 40 significant ones where the mean is 0."""
    return math.ceil(_LOG2_E / check_tau(tau)) + SCORE_BITS


def softmax_word(mean: float, tau: float) -> int:
    """e^((mean - 1) / tau) 2^weight_bits, for a mean in [0, 1] at most 2^weight_bits.

    2^x is 2^floor(x) 2^(x - floor(x)), so nothing overflows.
    Error: relative, below 2^-38.
    """
    exponent = (mean - 1.0) / tau * _LOG2_E
    whole = math.floor(exponent)
    significand = int(math.ldexp(2.0 ** (exponent - whole), _SIGNIFICANT))
    shift = weight_bits(tau) + whole - _SIGNIFICANT
    return significand << shift if shift >= 0 else significand >> -shift


def check_tau(tau: float) -> float:
    """A softmax's temperature: below 0.001 its weights outgrow what is worth sending."""
    if not LEAST_TAU <= tau <= LARGEST_TAU:
        cure = "for a smaller one play the best arm" if 0 < tau < LEAST_TAU else "choose one in between"
        raise SambaError(f"tau lies between {LEAST_TAU:g} and {LARGEST_TAU:g}, {tau:g} does not: {cure}")
    return tau

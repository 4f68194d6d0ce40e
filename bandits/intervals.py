"""Nominal 95 % intervals, for one estimate or for arrays of them.  Knows counts and weights; not what they are of."""

from __future__ import annotations

from typing import Any

import numpy as np

CONFIDENCE = 0.95
Z = 1.959964  # its normal quantile, two-sided
_MOST_SKEWED = 0.4  # the transformation is an expansion, and bends too far beyond


def wilson(share: Any, trials: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of a share of so many trials, Wilson's score interval (1927); it is never empty, not even for 0 of n.

    It holds the share itself, also where that is 0 or 1 and sums are rounded.
    """
    middle = (share + Z**2 / (2.0 * trials)) / (1.0 + Z**2 / trials)
    spread = Z * np.sqrt(share * (1.0 - share) / trials + Z**2 / (4.0 * trials**2)) / (1.0 + Z**2 / trials)
    return np.minimum(share, np.maximum(0.0, middle - spread)), np.maximum(share, np.minimum(1.0, middle + spread))


def normal(value: Any, error: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of an estimate whose error is nearly normal."""
    return value - Z * error, value + Z * error


def skewed(value: Any, error: Any, skewness: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of a mean of skewed rows, by Hall's transformation (Journal of the Royal Statistical Society B, 1992).

        g(t) = t + k t^2 / 3 + k^2 t^3 / 27 + k / 6,   from value - error g^-1(z) to value - error g^-1(-z)

    skewness: k, of the sum: the rows' third moments added up, over their second ones to the power of 3/2.  Rows that
    are rare and large make an estimate too small and its error too small together; g makes up for that.
    """
    k = np.clip(np.nan_to_num(skewness), -_MOST_SKEWED, _MOST_SKEWED)
    flat = np.abs(k) < 1e-6
    safe = np.where(flat, 1.0, k)
    below, above = (
        np.where(flat, z, 3.0 / safe * (np.cbrt(1.0 + safe * (z - safe / 6.0)) - 1.0)) for z in (Z, -Z)
    )  # fmt: skip
    return value - error * below, value - error * above

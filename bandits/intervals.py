"""Nominal 95 % intervals, for one estimate or for arrays of them.  Knows counts and weights; not what they are of."""

from __future__ import annotations

from typing import Any

import numpy as np

CONFIDENCE = 0.95
Z = 1.959964  # its normal quantile, two-sided


def wilson(share: Any, trials: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of a share of so many trials, Wilson's score interval (1927); it is never empty, not even for 0 of n."""
    middle = (share + Z**2 / (2.0 * trials)) / (1.0 + Z**2 / trials)
    spread = Z * np.sqrt(share * (1.0 - share) / trials + Z**2 / (4.0 * trials**2)) / (1.0 + Z**2 / trials)
    return np.maximum(0.0, middle - spread), np.minimum(1.0, middle + spread)


def normal(value: Any, error: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of an estimate whose error is nearly normal."""
    return value - Z * error, value + Z * error

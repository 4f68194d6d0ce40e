"""What a user of HELBA reads from its answers, as published: gaps of near ties, and numbers that are masked.

The answer to a user is b_a = (F(s_a - M) + 1) / 2 for every arm a: s_a its index brought to [0, 1], M the largest, F
an odd polynomial of n steps x -> x (3 - x^2) / 2 that drives its argument to its sign.  F grows on [-1, 1], so it can
be undone, and s_a - M is read wherever b_a is not yet 0 or 1 to the digits that there are.  numpy only.
"""

from __future__ import annotations

import numpy as np

from ..helba.approximate import towards_sign
from .helba_ring import SLOTS, encode, signed

_HALVINGS = 60


def differences(b: np.ndarray, iterations: int, digits: float) -> np.ndarray:
    """s_a - M of every arm, NaN where b_a is within `digits` of 0 or 1."""
    wanted = 2.0 * b - 1.0
    low, high = np.full_like(b, -1.0), np.full_like(b, 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above = towards_sign(middle, iterations) > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    known = np.minimum(b, 1.0 - b) > digits
    return np.where(known, (low + high) / 2.0, np.nan)


def gap(b: np.ndarray, iterations: int, digits: float) -> float:
    """How far the two largest indices are apart, in the unit of s; NaN where that cannot be read."""
    best = np.argsort(-b)[:2]
    first, second = differences(b[best], iterations, digits)
    return float(first - second)


def behind_mask(coefficients: np.ndarray) -> np.ndarray:
    """The value in the first slot, the others empty, of (..., n) coefficients of which a mask hides only the first."""
    alone = signed(encode(np.eye(SLOTS)[0]))[1:]
    return np.asarray(signed(coefficients)[..., 1:] @ alone / (alone @ alone))

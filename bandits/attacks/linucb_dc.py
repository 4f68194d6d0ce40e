"""DC of LinUCB-DS, who is told the sum of N rewards, looks for theta.  Knows public data; no protocol.

With noise of R times a sign, arm i pulled n_i times and p signs that are +, the sum is

    s = <sum_i n_i x_i, theta> + (2 p - N) R

Told with all its digits, s is an integer equation for each of the few (n, p), and theta is an integer point: for d = 2
those on a line can be listed.  Told to the nearest unit, s leaves a strip for each (n, p); how much of all that theta
can be lies in one of them is found by throwing darts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

_AT_ONCE = 2000  # darts


def fitting_exactly(arms: np.ndarray, noise: int, norm: int, budget: int, total: int) -> set[tuple[int, int]]:
    """All theta, |theta| <= norm, that some pulls and signs make `total` of; (K, 2) arms and all else in words.

    Pulls whose arms add up to a vector along an axis leave a whole line; they are left out.
    """
    found = set()
    for counts in _pull_counts(budget, len(arms)).tolist():
        a, b = (sum(n * int(x) for n, x in zip(counts, column)) for column in arms.T)
        common = math.gcd(a, b)
        if not a or not b:
            continue
        step, inverse = abs(b) // common, pow(a // common, -1, abs(b) // common)
        for signs in range(-budget, budget + 1, 2):
            rest = total - signs * noise
            if rest % common:
                continue
            first = rest // common * inverse % step
            for x in range(first - (first + norm) // step * step, norm + 1, step):
                y = (rest - a * x) // b
                if x * x + y * y <= norm * norm:
                    found.add((x, y))
    return found


def share_that_fits(
    arms: np.ndarray, noise: float, norm: float, budget: int, told: Sequence[tuple[int, float]],
    rng: np.random.Generator, *, darts: int = 4000,
) -> float:  # fmt: skip
    """Of all theta in the plane with |theta| <= norm, the share that fits every sum that was told.

    told: of orders of `budget` pulls each, sums as (whole number, unit).
    """
    ways, hits = _pull_counts(budget, len(arms)) @ arms, 0
    for start in range(0, darts, _AT_ONCE):
        count = min(_AT_ONCE, darts - start)
        radius, angle = norm * np.sqrt(rng.random(count)), 2.0 * np.pi * rng.random(count)
        means = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) @ ways.T
        fits = np.ones(count, bool)
        for word, unit in told:
            up = np.clip(np.rint(((word * unit - means) / noise + budget) / 2.0), 0, budget)  # the nearest p
            off = word * unit - means - (2.0 * up - budget) * noise
            fits &= (np.abs(off) <= unit / 2.0).any(axis=1)
        hits += int(fits.sum())
    return hits / darts


def _pull_counts(budget: int, arms: int) -> np.ndarray:
    """All (n_1, ..., n_K) that add up to N."""
    bars = np.array(list(combinations(range(budget + arms - 1), arms - 1)), np.int64)
    ends = np.full((len(bars), 1), budget + arms - 1)
    return np.diff(np.concatenate([np.full((len(bars), 1), -1), bars, ends], axis=1)) - 1

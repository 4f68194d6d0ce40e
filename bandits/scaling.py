"""Features in any units, brought within a bound by each owner on its own columns.  Knows one owner's numbers.

    z = (x - mean) / deviation,   z <- z room / q,   q the norm that 99 of 100 rows keep to;  the rest is cut to room

Nobody else needs the means, deviations and q.  One owner adds a constant feature, without which a regression through
0 could not say how much an arm pays on average; the square of the bound is then halved between it and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_KEPT = 0.99
_REST = 0.01  # of a column's variance, below which hardly any is left to other rows
_FEW = 100  # rows, of which one is few; 10 are at most


@dataclass(frozen=True, repr=False)
class Scaling:
    """One owner's.  constant: the value of its constant feature, 0 for none."""

    mean: np.ndarray
    deviation: np.ndarray
    usual: float
    room: float
    constant: float

    @classmethod
    def fit(cls, values: np.ndarray, *, bound: float, constant: bool = False) -> Scaling:
        """From (rows, features) of its own; a column that never changes becomes 0."""
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        deviation = np.where(deviation > 1e-12 * np.maximum(1.0, np.abs(mean)), deviation, np.inf)
        norms = np.linalg.norm((values - mean) / deviation, axis=1)
        usual = float(np.quantile(norms, _KEPT)) if norms.any() else 1.0
        share = bound * math.sqrt(0.5) if constant else bound
        return cls(mean, deviation, usual or float(norms.max()) or 1.0, share, share if constant else 0.0)

    def apply(self, values: np.ndarray) -> np.ndarray:
        """(rows, features), with the constant in front, within the bound."""
        z = (values - self.mean) / self.deviation * (self.room / self.usual)
        norms = np.linalg.norm(z, axis=1, keepdims=True)
        z *= self.room / np.maximum(self.room, norms)
        return np.concatenate([np.full((len(z), 1), self.constant), z], axis=1) if self.constant else z


def crowded(values: np.ndarray) -> int:
    """How many rows hold nearly all that a column varies, if they are few; 0 where it is spread, or others are alike.

    Scaled by its deviation, such a column is nearly the same in all other rows.
    """
    inwards = values[np.argsort(-np.abs(values - np.median(values)))]
    whole = float(values.var())
    for count in range(1, 1 + min(10, max(1, len(values) // _FEW), len(values) - 1)):
        if 0.0 < inwards[count:].var() < _REST * whole:
            return count
    return 0


def scale(
    contexts: np.ndarray, widths: Sequence[int], *, fitted: slice, bound: float = 1.0
) -> tuple[np.ndarray, tuple[int, ...]]:
    """All owners' scaled features, and how many each has now.  fitted: the rows that scalings are found from.

    The first owner with features has the constant.
    """
    blocks, constant = [], True
    for block in np.split(contexts, np.cumsum(widths)[:-1], axis=1):
        if block.shape[1]:
            block = Scaling.fit(block[fitted], bound=bound, constant=constant).apply(block)  # noqa: PLW2901
            constant = False
        blocks.append(block)
    return np.concatenate(blocks, axis=1), tuple(block.shape[1] for block in blocks)

"""SelectArm: what Comp does with a list of masked scores.  Knows numbers in an order; not whose they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ..score import Select
from .masks import Field


class AllZero(Exception):
    """A draw among weights that are all 0."""


def unfit(values: np.ndarray | Sequence[int]) -> int | None:
    """The first place that holds no finite number of at least 0; integers are always fit."""
    if not isinstance(values, np.ndarray) or (values.min() >= 0.0 and values.max() < np.inf):
        return None
    return int(np.nonzero(~((values >= 0.0) & (values < np.inf)))[0][0])


def selected(field: Field, values: np.ndarray | list[int], u: int, c: int) -> int:
    """A place in the list.

    largest    the first of the largest values
    draw       the first j with  (v_0 + ... + v_j) 2^c > u (v_0 + ... + v_last),   u uniform in [0, 2^c)
    """
    if field.select is Select.LARGEST:
        return int(values.argmax()) if isinstance(values, np.ndarray) else values.index(max(values))
    running = list(accumulate(values))
    if not running[-1]:
        raise AllZero
    return bisect_right(running, u * running[-1] >> c)  # of integers: v 2^c > x just where v > floor(x / 2^c)


def uniform(count: int, u: int, c: int) -> int:
    """A place of an exploring step."""
    return u * count >> c

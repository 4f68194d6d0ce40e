"""Public functions that a dealer tabulates.  Knows real functions and their fixed-point scales; no share.

A curve is evaluated by the dealer alone, on public points, in float64.  A plan stores a curve by name and arguments.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import RangeError


@dataclass(frozen=True)
class Curve(ABC):
    """A real function of a fixed-point argument that starts at `lower`; the look-up counts from there."""

    lower: float = 0.0

    @abstractmethod
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values at public points."""


@dataclass(frozen=True)
class Reciprocal(Curve):
    """1 / x on [lower, ...), lower > 0."""

    lower: float = 1.0

    def __post_init__(self) -> None:
        if self.lower <= 0:
            raise RangeError(f"1 / x is tabulated from a positive lower end, not {self.lower:g}")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / np.maximum(x, self.lower / 2)


@dataclass(frozen=True)
class SquareRoot(Curve):
    """sqrt(x); 0 below 0."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(x, 0.0))


@dataclass(frozen=True)
class InverseSquareRoot(Curve):
    """1 / sqrt(x) on [lower, ...), lower > 0."""

    lower: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / np.sqrt(np.maximum(x, self.lower / 2))


@dataclass(frozen=True)
class Exponential(Curve):
    """e^x."""

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)


CURVES: dict[str, type[Curve]] = {c.__name__: c for c in (Reciprocal, SquareRoot, InverseSquareRoot, Exponential)}


@dataclass(frozen=True, eq=False)
class Table:
    """A public function on k-bit numbers as its 2^k words; equal tables have equal digests."""

    values: np.ndarray = field(repr=False)
    digest: str = ""

    def __post_init__(self) -> None:
        values = np.ascontiguousarray(self.values, dtype=np.uint64)
        if values.ndim != 1 or values.size < 2 or values.size & (values.size - 1):
            raise RangeError(f"a table has 2^k entries with k >= 1, this one has shape {values.shape}: pad it")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "digest", hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest())

    @property
    def bits(self) -> int:
        """k, the width of the argument."""
        return int(self.values.size).bit_length() - 1

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Table) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=256)
def indicator(value: int, bits: int) -> Table:
    """[x = value] on `bits`-bit x."""
    if not 0 <= value < 1 << bits:
        raise RangeError(f"{value} is no {bits}-bit number")
    return Table((np.arange(1 << bits) == value).astype(np.uint64))

"""The coins of a run with fixed arms: first arm, noise of the rewards, and who wins a tie.  Knows a seed.

The order that decides ties also permutes the list of indices that the protocol's P sends to Comp, so it is a secret of
P's.  Coins are therefore expanded by SHAKE-256, which does not give away its seed, and a run that protects something
takes a fresh seed.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .linear_problem import ProblemError

_MOST_RANKS = 1 << 27  # a gigabyte


class Noise(Enum):
    """How a reward's noise of size R is drawn: a fair sign or a normal one; both are ours, the papers say less."""

    SIGN = "sign"
    NORMAL = "normal"

    @property
    def largest(self) -> float:
        """No draw of size 1 is larger: a normal one comes from 53 random bits."""
        return 1.0 if self is Noise.SIGN else 8.6


@dataclass(frozen=True)
class Coins:
    """first: the arm to begin with.  noise: (N,).  ties: (N, K), in each row ranks 0..K-1; the largest wins."""

    first: int
    noise: np.ndarray
    ties: np.ndarray

    @property
    def budget(self) -> int:
        """N."""
        return len(self.noise)

    @classmethod
    def draw(cls, seed: int, *, budget: int, arms: int, size: float = 1.0, noise: Noise = Noise.SIGN) -> Coins:
        """Everything from one seed, at least 0 and below 2^128."""
        check_budget(budget, arms)
        if not 0 <= seed < 1 << 128:
            raise ProblemError("a seed lies between 0 and 2^128 - 1")
        first = int.from_bytes(_stream(seed, "first", 32), "little") % arms
        words = np.frombuffer(_stream(seed, "noise", 16 * budget), np.uint64).reshape(budget, 2)
        orders = np.frombuffer(_stream(seed, "ties", 8 * budget * arms), np.uint64).reshape(budget, arms)
        ties = orders.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return cls(first, size * _UNIT[noise](words), ties)


def check_budget(budget: int, arms: int) -> None:
    """N >= 1, K >= 1, and coins that fit into memory."""
    if budget < 1:
        raise ProblemError(f"a budget is at least 1 pull, not {budget}")
    if arms < 1:
        raise ProblemError(f"at least 1 arm is needed, not {arms}")
    if budget * arms > _MOST_RANKS:
        raise ProblemError(f"{budget:,} pulls of {arms:,} arms: at most {_MOST_RANKS:,} pulls times arms, play fewer")


def _stream(seed: int, label: str, count: int) -> bytes:
    return hashlib.shake_256(b"fixed arms, " + label.encode() + b": " + seed.to_bytes(16, "big")).digest(count)


def _signs(words: np.ndarray) -> np.ndarray:
    return np.where(words[:, 0] & np.uint64(1), 1.0, -1.0)


def _normal(words: np.ndarray) -> np.ndarray:
    """Box and Muller."""
    uniform = ((words >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # in (0, 1]
    radius = np.sqrt(-2.0 * np.log(uniform[:, 0]))
    return np.asarray(radius * np.cos(2.0 * math.pi * uniform[:, 1]))


_UNIT = {Noise.SIGN: _signs, Noise.NORMAL: _normal}

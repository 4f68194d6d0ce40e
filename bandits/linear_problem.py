"""A linear bandit with fixed arms, <x_i, theta> + noise: what is public, what its owner knows, what is refused.

Knows arms, theta and files; no policy.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from .arrays import unhurried

_WIDEST = 1e15  # |x|^2 / regulariser; beyond it float64 cannot invert A


class ProblemError(ValueError):
    """Arms, theta or constants are not what a linear bandit can use."""


class Exploration(Protocol):
    """The public constants of a policy."""

    @property
    def noise(self) -> float:
        """R: rewards are R-sub-Gaussian."""

    @property
    def theta_norm(self) -> float:
        """S >= |theta|."""

    def regulariser(self, dim: int) -> np.ndarray:
        """The diagonal that A starts from, (dim,)."""

    def omega(self, pulls: int, dim: int) -> float:
        """How many widths |x|_(A^-1) an index adds after so many pulls."""

    def prediction_bound(self, arms: np.ndarray) -> float:
        """What no |x_i' A^-1 sum x x' theta| exceeds."""

    def check(self, arms: np.ndarray, theta: np.ndarray | None = None) -> None:
        """Raise ProblemError where these arms or this theta break the bounds that are promised."""


@dataclass(frozen=True)
class LinearProblem:
    """arms: (K, d), public.  theta: (d,), the owner's secret.  exploration: constants, public."""

    arms: np.ndarray
    theta: np.ndarray = field(repr=False)
    exploration: Exploration

    def __post_init__(self) -> None:
        check_arms(self.arms, self.exploration)
        if self.theta.shape != (self.dim,):
            raise ProblemError(
                f"arms have {self.dim} dimensions and theta has shape {self.theta.shape}: both need the same dimension"
            )
        if not np.isfinite(self.theta).all():
            raise ProblemError("theta holds NaN or infinite values: clean it")
        self.exploration.check(self.arms, self.theta)

    @property
    def dim(self) -> int:
        """d."""
        return self.arms.shape[1]

    @property
    def best(self) -> float:
        """The largest expected reward of an arm."""
        return float((self.arms @ self.theta).max())


def check_arms(arms: np.ndarray, exploration: Exploration) -> None:
    """What whoever receives the public half of a problem checks."""
    if arms.ndim != 2 or not arms.size:
        raise ProblemError(f"arms are rows of a matrix (K, d) with K and d at least 1, not of shape {arms.shape}")
    if not np.isfinite(arms).all():
        row = int(np.nonzero(~np.isfinite(arms).all(axis=1))[0][0])
        raise ProblemError(f"arm {row} holds NaN or infinite values: clean it or drop it")
    if (pair := first_duplicates(arms)) is not None:
        raise ProblemError(f"arms {pair[0]} and {pair[1]} are the same: drop one, no policy can tell them apart")
    longest = float(np.abs(arms).max())
    least = float(exploration.regulariser(arms.shape[1]).min())
    if not longest * longest * arms.shape[1] <= _WIDEST * least:
        raise ProblemError(
            f"arms have coordinates up to {longest:g} where gamma is {least:g}: float64 cannot tell gamma beside their "
            "squares; divide the arms by a constant (and multiply theta by it), or raise gamma"
        )
    exploration.check(arms)


def first_duplicates(arms: np.ndarray) -> tuple[int, int] | None:
    """The first two rows that are equal, if any."""
    seen: dict[bytes, int] = {}
    for row, arm in enumerate(arms + 0.0 if arms.dtype.kind == "f" else arms):  # -0.0 becomes 0.0
        first = seen.setdefault(arm.tobytes() if arm.dtype.kind != "O" else repr(arm.tolist()).encode(), row)
        if first != row:
            return first, row
    return None


def longest_norm(rows: np.ndarray) -> float:
    """The largest Euclidean norm of a row; of coordinates whose squares overflow as well."""
    return max(math.hypot(*row) for row in np.atleast_2d(rows).tolist())


def load_matrix(path: Path) -> np.ndarray:
    """Numbers from .npy, .csv (commas) or .txt (spaces), as float64."""
    if not path.is_file():
        raise ProblemError(f"there is no file {path}: name a .npy, .csv or .txt file")
    try:
        if path.suffix == ".npy":
            values = unhurried(lambda: np.load(path, allow_pickle=False))
        elif path.suffix in (".csv", ".txt"):
            with warnings.catch_warnings():  # of an empty file, which is refused below
                warnings.simplefilter("ignore")
                values = np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
        else:
            raise ProblemError(f"{path} ends neither in .npy, .csv nor .txt: save it as one of these")
    except (ValueError, EOFError, OSError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(
            f"{path} is no table of numbers: write a row for each arm, all of one length, or save an array with np.save"
        ) from error
    if not values.size:
        raise ProblemError(f"{path} holds no numbers: write a row for each arm")
    if values.dtype.kind not in "fiu":
        raise ProblemError(f"{path} holds values of type {values.dtype}: real numbers are wanted")
    return values.astype(np.float64)


def load_arms(path: Path) -> np.ndarray:
    """(K, d) arms, one in each row; a vector saved by numpy is read as K arms of one dimension."""
    values = load_matrix(path)
    return values[:, None] if values.ndim == 1 else values


def load_theta(path: Path) -> np.ndarray:
    """(d,) theta, from a row, a column or a vector."""
    values = load_matrix(path)
    if values.ndim > 1 and max(values.shape) != values.size:
        raise ProblemError(f"{path} holds an array of shape {values.shape}: theta is one vector")
    return values.reshape(-1)

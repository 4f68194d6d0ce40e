"""Where features and rewards come from.  All of a run is drawn beforehand: who chooses alike is paid alike.

theta is a direction of norm 1 / L, so every mean <x, theta> lies in [-1, 1].  Features and rewards are whole multiples
of 2^-20, and rewards are cut at R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandits.linear_problem import longest_norm

from .constants import Constants, HelbaError

FEATURE_BITS = 20
_GRID = 2.0**FEATURE_BITS


@dataclass(frozen=True)
class Problem:
    """features: (T, K, d).  means and rewards: (T, K), what each arm pays on average, and what it would pay."""

    features: np.ndarray
    means: np.ndarray
    rewards: np.ndarray

    def __post_init__(self) -> None:
        if self.features.ndim != 3 or not self.means.shape == self.features.shape[:2] == self.rewards.shape:
            raise HelbaError("features are of shape (steps, arms, dim), means and rewards of shape (steps, arms)")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def arms(self) -> int:
        """K."""
        return self.features.shape[1]

    def lost(self, pulled: np.ndarray) -> np.ndarray:
        """What each pulled arm pays less than the best, on average."""
        return np.asarray(self.means.max(axis=1) - self.means[np.arange(len(pulled)), pulled])


def toy(constants: Constants, steps: int, seed: int, *, arms: int = 2, contexts: int = 4) -> Problem:
    """The paper's problem: a few contexts, drawn uniformly, one at each step."""
    rng = np.random.default_rng(seed)
    few, theta = _box(rng, (contexts, arms), constants), _direction(rng, constants)
    return _paid(few[rng.integers(contexts, size=steps)], theta, constants, rng)


def fresh(constants: Constants, steps: int, seed: int, *, arms: int = 2) -> Problem:
    """New features at every step."""
    rng = np.random.default_rng(seed)
    theta = _direction(rng, constants)
    return _paid(_box(rng, (steps, arms), constants), theta, constants, rng)


def rows_of(
    rows: np.ndarray, theta: np.ndarray, constants: Constants, steps: int, seed: int, *, arms: int = 2
) -> Problem:
    """Some rows of a table at each step, such as movies for a user; scaled to L, and theta to means in [-1, 1]."""
    if not 1 <= arms <= len(rows) or rows.shape[1:] != theta.shape or len(theta) != constants.dim:
        raise HelbaError(f"{arms} arms of {len(rows)} rows: rows and theta have {constants.dim} dimensions each")
    longest = longest_norm(rows)
    if not 0 < longest < math.inf:
        raise HelbaError("rows hold no finite number but 0: clean them")
    rng = np.random.default_rng(seed)
    scaled = np.trunc(rows * (constants.norm / longest) * _GRID) / _GRID
    most = max(np.abs(scaled @ theta).max(), longest_norm(theta) / (constants.theta_norm or math.inf)) or 1.0
    picked = np.array([rng.choice(len(rows), arms, replace=False) for _ in range(steps)])
    return _paid(scaled[picked], theta / most, constants, rng)


def _box(rng: np.random.Generator, shape: tuple[int, int], constants: Constants) -> np.ndarray:
    """Uniform in the box of half-width L / sqrt(d), rounded towards 0, so that no norm passes L."""
    half = constants.norm / math.sqrt(constants.dim)
    drawn = rng.uniform(-half, half, (*shape, constants.dim))
    return np.trunc(drawn * _GRID) / _GRID


def _direction(rng: np.random.Generator, constants: Constants) -> np.ndarray:
    drawn = rng.normal(size=constants.dim)
    return np.asarray(drawn / (np.linalg.norm(drawn) * constants.norm))


def _paid(features: np.ndarray, theta: np.ndarray, constants: Constants, rng: np.random.Generator) -> Problem:
    means = features @ theta
    noisy = means + constants.noise * rng.normal(size=means.shape)
    top = math.floor(constants.reward * _GRID) / _GRID
    return Problem(features, means, np.clip(np.rint(noisy * _GRID) / _GRID, -top, top))

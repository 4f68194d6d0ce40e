"""LinUCB with fixed arms, also called OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011), in float64.

    first a random arm; then, after t pulls,  A = gamma I + sum x x',  b = sum r x
    theta^ = A^-1 b,  omega = R sqrt(d log((1 + t L^2 / gamma) / delta)) + sqrt(gamma) S
    pull the largest  B_i = <x_i, theta^> + omega |x_i|_(A^-1)

The contextual LinUCB, with a regression for each arm, is `bandits.linucb`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .coins import Coins
from .linear_problem import Exploration, LinearProblem, ProblemError, check_arms, longest_norm

LARGEST_NORM = 1e100  # its square is a float64
_SLACK = 1.0 + 2.0**-10  # rounding to fixed point may carry a norm so far over its bound


@dataclass(frozen=True)
class Confidence:
    """gamma: regulariser.  delta: confidence.  noise: R.  theta_norm: S >= |theta|.  arm_norm: L >= |x_i|.

    growing: omega has log t in place of S, as in the experiments of Ciucanu et al.  S still bounds theta.
    """

    gamma: float = 1.0
    delta: float = 0.01
    noise: float = 1.0
    theta_norm: float = 1.0
    arm_norm: float = 1.0
    growing: bool = False

    def __post_init__(self) -> None:
        check_constants(self.gamma, self.delta, self.noise)
        if not (0 < self.theta_norm < LARGEST_NORM and 0 < self.arm_norm < LARGEST_NORM):
            raise ProblemError(
                f"norms have positive bounds up to {LARGEST_NORM:g}, not {self.theta_norm:g} and {self.arm_norm:g}"
            )

    def regulariser(self, dim: int) -> np.ndarray:
        """gamma I."""
        return np.full(dim, float(self.gamma))

    def omega(self, pulls: int, dim: int) -> float:
        """R sqrt(d log((1 + t L^2 / gamma) / delta)) + sqrt(gamma) S."""
        grown = 1.0 + pulls * self.arm_norm**2 / self.gamma
        norm = math.log(max(1, pulls)) if self.growing else self.theta_norm
        return self.noise * math.sqrt(dim * math.log(grown / self.delta)) + math.sqrt(self.gamma) * norm

    def prediction_bound(self, arms: np.ndarray) -> float:
        """L S, since A^-1 sum x x' <= I."""
        return longest_norm(arms) * self.theta_norm

    def check(self, arms: np.ndarray, theta: np.ndarray | None = None) -> None:
        """L and S hold."""
        if (longest := longest_norm(arms)) > self.arm_norm * _SLACK:
            raise ProblemError(f"an arm has norm {longest:g} and L is {self.arm_norm:g}: state a larger arm_norm")
        if theta is not None and longest_norm(theta) > self.theta_norm * _SLACK:
            raise ProblemError(f"theta is longer than S = {self.theta_norm:g}: state a larger theta_norm")

    @classmethod
    def of(
        cls, arms: np.ndarray, theta: np.ndarray, *, gamma: float = 1.0, delta: float = 0.01, noise: float = 1.0
    ) -> Confidence:
        """With the arms' own L, and for S, which becomes public, the next power of two above |theta|."""
        bound = power_above(longest_norm(theta)) if theta.size and np.isfinite(theta).all() else 1.0
        longest = longest_norm(arms) if arms.ndim == 2 and arms.size and np.isfinite(arms).all() else 1.0
        return cls(gamma, delta, noise, bound, longest or 1.0)


def check_constants(gamma: float, delta: float, noise: float) -> None:
    """What every policy asks of gamma, delta and R."""
    if not (0 < gamma < math.inf and 0 <= noise < math.inf):
        raise ProblemError(f"gamma {gamma:g} must be positive and the noise {noise:g} at least 0")
    if not 0 < delta < 1:
        raise ProblemError(f"delta is a probability between 0 and 1, not {delta:g}")


def power_above(value: float) -> float:
    """The least power of two that is at least `value`; 1 for 0."""
    return 2.0 ** math.ceil(math.log2(value)) if value > 0 else 1.0


class OFUL:
    """The policy in float64."""

    def __init__(self, arms: np.ndarray, exploration: Exploration) -> None:
        check_arms(arms, exploration)
        self.arms, self.exploration = arms, exploration
        self.gram = np.diag(exploration.regulariser(arms.shape[1]))
        self.sums = np.zeros(arms.shape[1])
        self.pulls = 0

    def indices(self) -> np.ndarray:
        """B_i of every arm, after at least one pull."""
        solved = np.linalg.solve(self.gram, np.column_stack([self.sums, self.arms.T]))
        estimate, inverse_arms = solved[:, 0], solved[:, 1:]
        squares = np.einsum("kd,dk->k", self.arms, inverse_arms)
        omega = self.exploration.omega(self.pulls, len(self.sums))
        return np.asarray(self.arms @ estimate + omega * np.sqrt(np.maximum(squares, 0.0)))

    def pull(self, ties: np.ndarray) -> int:
        """The arm with the largest index; of equal ones that with the largest rank in `ties`."""
        return pick(self.indices().tolist(), ties)

    def update(self, arm: int, reward: float) -> None:
        """Learn what the arm paid."""
        x = self.arms[arm]
        self.gram += np.outer(x, x)
        self.sums += reward * x
        self.pulls += 1


class Pull(NamedTuple):
    """One step.  gap: between the two largest indices; infinite for the first pull and for a single arm."""

    arm: int
    reward: float
    gap: float


def pick(indices: list[float] | list[int], ties: np.ndarray) -> int:
    """Position of the largest; of equal ones that with the largest rank."""
    best = max(indices)
    return max((rank, arm) for arm, (index, rank) in enumerate(zip(indices, ties.tolist())) if index == best)[1]


def gap(indices: list[float] | list[int]) -> float | int:
    """How far apart the two largest are."""
    if len(indices) == 1:
        return math.inf
    *_, second, first = sorted(indices)
    return first - second


def play(policy: OFUL, problem: LinearProblem, coins: Coins) -> Iterator[Pull]:
    """As many pulls as there are coins."""
    for step, (noise, ties) in enumerate(zip(coins.noise.tolist(), coins.ties)):
        indices = policy.indices().tolist() if step else []
        arm = pick(indices, ties) if step else coins.first
        reward = float(problem.arms[arm] @ problem.theta) + noise
        policy.update(arm, reward)
        yield Pull(arm, reward, gap(indices) if step else math.inf)

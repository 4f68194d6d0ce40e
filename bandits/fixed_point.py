"""LinUCB and SpectralUCB in integers: the exact reference of the protocols.  Knows public data, words and scales.

P knows the pulled arms and the noise of their rewards, so b = (sum x x') theta + sum eta x, and an index is

    B_i = <c_i, theta> + e_i      with  c_i = x_i' A^-1 sum x x',   e_i = x_i' A^-1 sum eta x + omega |x_i|_(A^-1)

where c and e are public: computed in float64, then rounded.  With f fraction bits for each of arms, theta and c

    X = round(x 2^f_x),  T = round(theta 2^f_t),  C_i = round(c_i 2^f_c),  E_i = round(e_i 2^(f_c + f_t))
    R_t = <X, T> + round(eta_t 2^(f_x + f_t)),     B_i = <C_i, T> + E_i

From there on all is integer: whatever computes the same sums modulo a ring that is wide enough has the same result bit
for bit.  Arms are rounded first, so c and e belong to the rounded arms; |B_i - float64's| is below `precision`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .coins import Coins
from .linear_problem import Exploration, LinearProblem, ProblemError, check_arms, first_duplicates, longest_norm
from .oful import gap, pick

_WIDEST_WORD = 2.0**53  # of arms: their words are exact in float64
_WIDEST_GROWTH = 2.0**32  # N L^2 / gamma; widths keep about 20 correct bits beyond it


@dataclass(frozen=True)
class Scales:
    """Fraction bits of arms, of theta and of c."""

    arm: int = 30
    theta: int = 30
    map: int = 30

    def __post_init__(self) -> None:
        if not all(1 <= bits <= 60 for bits in (self.arm, self.theta, self.map)):
            raise ProblemError(f"{self.arm}, {self.theta} and {self.map} fraction bits: from 1 to 60 of each")

    @property
    def reward(self) -> int:
        """Fraction bits of a reward and of their sum."""
        return self.arm + self.theta

    @property
    def index(self) -> int:
        """Fraction bits of an index."""
        return self.map + self.theta


def words(values: np.ndarray | float, bits: int) -> np.ndarray:
    """round(values 2^bits), half to even, as Python's integers: nothing wraps."""
    with np.errstate(over="ignore"):
        scaled = np.rint(np.ldexp(np.asarray(values, np.float64), bits))
    if not np.isfinite(scaled).all():
        raise ProblemError(f"a value does not fit {bits} fraction bits in float64: use fewer")
    return np.asarray(np.frompyfunc(int, 1, 1)(scaled))


def reals(integers: np.ndarray, bits: int) -> np.ndarray:
    """The values behind words, as the nearest float64."""
    return np.array([math.ldexp(int(word), -bits) for word in np.ravel(integers)]).reshape(np.shape(integers))


def int64(integers: np.ndarray) -> np.ndarray:
    """Words of 64 bits, or an error: for rings that hold no more."""
    flat = np.ravel(integers).tolist()
    if flat and not (min(flat) >= -(1 << 63) and max(flat) < 1 << 63):
        raise ProblemError("a word does not fit 64 bits: use fewer fraction bits")
    return np.array(flat, np.int64).reshape(np.shape(integers))


def arm_words(arms: np.ndarray, scales: Scales) -> np.ndarray:
    """X, refused where rounding makes an arm vanish or two arms equal."""
    if not np.abs(arms).max() * 2.0**scales.arm < _WIDEST_WORD:
        raise ProblemError(
            f"arms have coordinates up to {np.abs(arms).max():g}: with {scales.arm} fraction bits they must stay below "
            f"{_WIDEST_WORD / 2.0**scales.arm:g}; divide them by a constant, or use fewer fraction bits"
        )
    integers = words(arms, scales.arm)
    for row, (arm, word) in enumerate(zip(arms, integers)):
        if arm.any() and not any(word):
            raise ProblemError(
                f"arm {row} vanishes at {scales.arm} fraction bits: multiply the arms by a constant (and divide theta "
                "by it), or use more fraction bits"
            )
    if (pair := first_duplicates(integers)) is not None:
        raise ProblemError(
            f"arms {pair[0]} and {pair[1]} are the same at {scales.arm} fraction bits: use more, or drop one"
        )
    return integers


def rounded(problem: LinearProblem, scales: Scales) -> LinearProblem:
    """The problem that the integers solve, for policies in float64."""
    theta = words(problem.theta, scales.theta)
    if problem.theta.any() and not any(theta):
        raise ProblemError(
            f"theta vanishes at {scales.theta} fraction bits: multiply it by a constant (and divide the arms by it), "
            "or use more fraction bits"
        )
    arms = arm_words(problem.arms, scales)
    return replace(problem, arms=reals(arms, scales.arm), theta=reals(theta, scales.theta))


class PublicMap:
    """c and e of all arms, from pulled arms and their noise, by Sherman and Morrison in O(K d) for each pull.

        Y = X A^-1;   u = A^-1 x,  v = X u,  g = 1 / (1 + x'u);   Y -= g v u'
        c = X - Y diag(regulariser),   |x_i|^2_(A^-1) = <Y_i, x_i>

    All sums run from the first to the last term, so every machine, whatever its threads, gets the same bits; only
    omega takes a logarithm.
    """

    def __init__(self, arms: np.ndarray, exploration: Exploration, budget: int) -> None:
        check_arms(arms, exploration)
        self.arms, self.exploration = arms, exploration
        self.regulariser = exploration.regulariser(arms.shape[1])
        growth = budget * longest_norm(arms) ** 2 / float(self.regulariser.min())
        if not growth <= _WIDEST_GROWTH:
            raise ProblemError(
                f"{budget} pulls of arms of norm {longest_norm(arms):g} outweigh gamma {self.regulariser.min():g} by "
                f"{growth:.2g}: above {_WIDEST_GROWTH:.2g} widths lose their digits; scale the arms down or raise gamma"
            )
        self.pulls = 0
        self._inverse_arms = arms / self.regulariser
        self._noise = np.zeros(arms.shape[1])  # sum eta x

    def update(self, arm: int, noise: float) -> None:
        """Arm `arm` was pulled, and paid `noise` beside <x, theta>."""
        x, u = self.arms[arm], self._inverse_arms[arm].copy()
        v = _dots(self.arms, u)
        gain = v / (1.0 + float(_dots(x[None], u)[0]))
        self._inverse_arms -= gain[:, None] * u
        self._noise += noise * x
        self.pulls += 1

    def coefficients(self) -> np.ndarray:
        """c, (K, d)."""
        return np.asarray(self.arms - self._inverse_arms * self.regulariser)

    def offsets(self) -> np.ndarray:
        """e, (K,)."""
        omega = self.exploration.omega(self.pulls, self.arms.shape[1])
        return np.asarray(_dots(self._inverse_arms, self._noise) + omega * self.widths())

    def widths(self) -> np.ndarray:
        """|x_i|_(A^-1), (K,)."""
        return np.sqrt(np.maximum(_dots(self._inverse_arms, self.arms), 0.0))

    def coefficient_bound(self) -> float:
        """At least every |c_ij|: |A^-1 sum x x'| <= sqrt(cond D), D the diagonal that A starts from."""
        condition = float(self.regulariser.max() / self.regulariser.min())
        return math.sqrt(condition) * longest_norm(self.arms) * (1.0 + 2.0**-9)

    def words(self, scales: Scales) -> tuple[np.ndarray, np.ndarray]:
        """C, (K, d), and E, (K,), as Python's integers."""
        return words(self.coefficients(), scales.map), words(self.offsets(), scales.index)


class FixedPointUCB:
    """The policy in integers: a `PublicMap`, theta's words, and nothing else.

    It needs LinUCB's or SpectralUCB's constants only through the map; `problem` may be rounded already or not.
    """

    def __init__(self, problem: LinearProblem, scales: Scales, budget: int) -> None:
        exact = rounded(problem, scales)
        self.scales = scales
        self.arms = words(exact.arms, scales.arm)
        self.theta = words(exact.theta, scales.theta)
        self.map = PublicMap(exact.arms, exact.exploration, budget)

    def indices(self) -> list[int]:
        """B_i of every arm, after at least one pull."""
        c, e = self.map.words(self.scales)
        return [int(index) for index in c @ self.theta + e]

    def pull(self, ties: np.ndarray) -> int:
        """The arm with the largest index; of equal ones that with the largest rank in `ties`."""
        return pick(self.indices(), ties)

    def update(self, arm: int, noise: float) -> int:
        """Pull it: the reward R_t."""
        self.map.update(arm, noise)
        return int(self.arms[arm] @ self.theta) + int(words(noise, self.scales.reward))


class FixedPull(NamedTuple):
    """One step.  reward: a word of `scales.reward` bits.  indices: words, none for the first pull.  gap: as in Pull."""

    arm: int
    reward: int
    indices: tuple[int, ...]
    gap: float


@dataclass(frozen=True)
class FixedRun:
    """What the reference pulled and was paid."""

    scales: Scales
    pulls: tuple[FixedPull, ...]

    @property
    def arms(self) -> list[int]:
        """By step."""
        return [pull.arm for pull in self.pulls]

    @property
    def total(self) -> int:
        """The cumulative reward, a word of `scales.reward` bits."""
        return sum(pull.reward for pull in self.pulls)

    @property
    def cumulative_reward(self) -> float:
        """As a number."""
        return math.ldexp(self.total, -self.scales.reward)


def play_fixed(problem: LinearProblem, coins: Coins, scales: Scales) -> FixedRun:
    """The reference run."""
    return FixedRun(scales, tuple(_pulls(FixedPointUCB(problem, scales, coins.budget), coins)))


def _pulls(policy: FixedPointUCB, coins: Coins) -> Iterator[FixedPull]:
    for step, (noise, ties) in enumerate(zip(coins.noise.tolist(), coins.ties)):
        indices = policy.indices() if step else []
        arm = pick(indices, ties) if step else coins.first
        apart = math.ldexp(gap(indices), -policy.scales.index) if len(indices) > 1 else math.inf
        yield FixedPull(arm, policy.update(arm, noise), tuple(indices), apart)


@dataclass(frozen=True)
class Bounds:
    """Public bounds of a run.  index: |B_i|.  total: |R_1| + ... + |R_N|, rounded values included."""

    index: float
    total: float

    def index_bits(self, scales: Scales) -> int:
        """Bits of an index as a word, sign included."""
        return _signed_bits(self.index, scales.index)

    def total_bits(self, scales: Scales) -> int:
        """Bits of a cumulative reward as a word, sign included."""
        return _signed_bits(self.total, scales.reward)


def bounds(arms: np.ndarray, exploration: Exploration, budget: int, *, largest_noise: float) -> Bounds:
    """What indices and rewards cannot exceed, from public data alone, where every |eta| <= largest_noise.

    |x_i' A^-1 sum eta x| <= |x_i|_(A^-1) |sum eta x|_(A^-1), of which the second is at most sqrt(N) max |eta|, since
    X A^-1 X' <= I, and the first never grows.
    """
    width = float(np.sqrt((arms**2 / exploration.regulariser(arms.shape[1])).sum(axis=1)).max())
    noisy = width * (math.sqrt(budget) * largest_noise + exploration.omega(budget, arms.shape[1]))
    reward = longest_norm(arms) * exploration.theta_norm + largest_noise
    slack = 1.0 + 2.0**-9  # norms may exceed their bounds by 2^-10
    return Bounds(slack * (exploration.prediction_bound(arms) + noisy), slack * budget * reward)


def precision(problem: LinearProblem, scales: Scales) -> float:
    """How far an index may be from float64's on the rounded problem: C's and E's rounding, and float64's own."""
    rough = np.abs(problem.theta).sum() * 2.0 ** -(scales.map + 1) + 2.0 ** -(scales.index + 1)
    return float(rough) + 1e-9


def _dots(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Row by row, sum_j rows_j others_j from the first term to the last."""
    return np.asarray(np.add.accumulate(rows * others, axis=-1)[..., -1])


def _signed_bits(bound: float, scale: int) -> int:
    return math.ceil(bound * 2.0**scale + 1.0).bit_length() + 1

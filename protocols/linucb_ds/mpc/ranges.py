"""Scales and ranges of a run that hides the arms: everything follows from public constants.  Knows no message.

Whitened by D, the A that a run starts from, an arm is z_i = D^(-1/2) x_i with norm s_i; s is the largest, and beta the
least power of two that is at least s.  A run keeps, for the unit vectors z_i / s_i, quantities that lie in [-1, 1]:

    C_ij = z_i' (I + sum z z')^-1 z_j / (s_i s_j),     so that  |x_i|_(A^-1) = s_i sqrt(C_ii)

After t pulls C_ii is at least 1 / (1 + t s^2), since the eigenvalues of sum z z' are at most t s^2; and one pull
divides it by 1 + s^2 at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bandits.fixed_point import Scales
from mpc.curves import InverseSquareRoot
from mpc.errors import RangeError
from mpc.ops import Lines
from mpc.ring import VALUE_BITS

STATE_BITS = 30  # of C and of what a step takes from it: entries are at most 1, and products have room
COEFFICIENT_BITS = 30  # of public factors that are at most 1
_ROOT_SEGMENTS, _STEP_SEGMENTS = (9, 12), 12
_SLACK = 2.0**-3  # how far roundings may carry the argument of `root` beyond its exact range
_ABOVE = 2.0**-6  # and that of `step`
_DEVIATIONS = 8.0  # of a sum of unbiased roundings; beyond them with probability below 1e-13
_ROUNDING = 0.5  # the largest deviation of one, in units of the last place
_TABLE_ERROR = 2.0**-20
_MOST_ITERATIONS = 3  # of Newton, behind a table of roots
_LEAST_BITS = 16
_CURE = "use a smaller budget, a larger gamma, less noise, or shorter arms (and a longer theta)"


@dataclass(frozen=True)
class HiddenRanges:
    """arms, start: (K, d) arms and the (d,) diagonal D.  budget: N.  omega: the largest.

    prior: at least |D^(1/2) theta|.  deviation: R, of noise that is a sign or normal.
    """

    arms: np.ndarray
    start: np.ndarray
    budget: int
    omega: float
    prior: float
    deviation: float
    signs: bool
    scales: Scales

    def check(self) -> None:
        """RangeError, with a cure, where a word could wrap or an index lose its digits."""
        if not self.longest > 0:
            raise RangeError("all arms are 0: there is nothing to choose between")
        if not 2.0**-14 <= self.longest <= 2.0**14:
            raise RangeError(
                f"the longest arm has norm {self.longest:.3g} beside the A that a run starts from, where 2^-14 to 2^14 "
                "fit: multiply the arms by a constant (and divide theta by it), or change gamma"
            )
        bits = {"roots": self.root_bits, "estimates": self.value_bits, "indices": self.score_scale - self.score_margin}
        name = min(bits, key=lambda key: bits[key])
        if bits[name] < _LEAST_BITS:
            raise RangeError(f"{self.budget:,} pulls leave {bits[name]} fraction bits for {name}: {_CURE}")
        if (wanted := self.scales.reward + bits_before(2.0 * self.beta * self.error)) > VALUE_BITS:
            raise RangeError(
                f"what a reward adds to an estimate needs {wanted} bits of {VALUE_BITS}: use fewer fraction bits for "
                "arms or theta"
            )
        drift = 2.0 * self.longest * self.noise * self.steepest  # of the ratio that `root` takes
        unit = 4.0 * (2.0 + self.longest) * 2.0**-STATE_BITS * self.steepest**2
        if drift + unit > _SLACK / 2 or self.noise * self.steepest**2 > 0.5:
            raise RangeError(f"over {self.budget:,} pulls |x|_(A^-1) loses its digits to rounding: {_CURE}")
        if not (_suffices(self.root, _MOST_ITERATIONS) and _suffices(self.step, _MOST_ITERATIONS)):
            raise RangeError(
                "one pull may shorten |x|_(A^-1) so much that no table of roots follows it: raise gamma, or divide the "
                "arms by a constant (and multiply theta by it)"
            )

    @cached_property
    def lengths(self) -> np.ndarray:
        """s_i, (K,)."""
        return np.asarray(np.sqrt((self.arms**2 / self.start).sum(axis=1)))

    @cached_property
    def longest(self) -> float:
        """s."""
        return float(self.lengths.max())

    @cached_property
    def shift(self) -> int:
        """log2 beta."""
        return _shift(self.longest)

    @cached_property
    def beta(self) -> float:
        """A unit of length: dividing by it is reading the same word with more fraction bits."""
        return 2.0**self.shift

    @cached_property
    def ratios(self) -> np.ndarray:
        """c_i = s_i / beta in [0, 1], (K,)."""
        return self.lengths / self.beta

    @cached_property
    def gram(self) -> np.ndarray:
        """C before the first pull, (K, K); an arm of length 0 is orthogonal to all others, and stays so."""
        units = self.arms / np.sqrt(self.start) / np.where(self.lengths > 0, self.lengths, 1.0)[:, None]
        gram = np.clip(np.einsum("id,jd->ij", units, units), -1.0, 1.0)
        np.fill_diagonal(gram, 1.0)
        return gram

    @cached_property
    def steepest(self) -> float:
        """1 / sqrt(C_ii) never exceeds it."""
        return math.sqrt(1.0 + self.budget * self.longest**2)

    @cached_property
    def surprise(self) -> float:
        """|noise| never exceeds it."""
        return largest_noise(self.deviation, signs=self.signs)

    @cached_property
    def estimate(self) -> float:
        """|<x_i, theta^>| / s_i never exceeds it.

        theta^ is theta shrunk plus a ridge estimate of the noise; singular values of (I + Z'Z)^-1 Z' are at most 1/2.
        """
        return _estimate(self.prior, self.surprise, self.budget)

    @cached_property
    def error(self) -> float:
        """|r - <x, theta^>| / beta never exceeds it."""
        return widest_surprise(self.longest, self.prior, self.surprise, self.budget) / self.beta

    @cached_property
    def root_bits(self) -> int:
        """Fraction bits of sqrt(C_ii), and of its reciprocal, whose square must fit a word."""
        return min(28, (VALUE_BITS - 1 - bits_before(self.steepest**2)) // 2)

    @cached_property
    def value_bits(self) -> int:
        """Fraction bits of estimates: products with the step, which has 30 more, must fit a word."""
        return min(28, VALUE_BITS - STATE_BITS - bits_before(2.0 * self.error * max(1.0, self.beta)))

    @cached_property
    def score_bits(self) -> int:
        """Bits of an index that is compared, sign included: all that the keys leave."""
        return 62 - max(1, (len(self.arms) - 1).bit_length())

    @cached_property
    def score_margin(self) -> int:
        """Bits in front of the point of B_i / beta."""
        return bits_before(2.0 * (self.estimate + self.omega))

    @cached_property
    def score_scale(self) -> int:
        """Fraction bits of B_i / beta."""
        return min(self.score_bits - 1 - self.score_margin, min(self.root_bits, self.value_bits) + 28)

    @cached_property
    def root(self) -> Lines:
        """1 / sqrt(z) for z = C_ii (new) / C_ii (old)."""
        curve = InverseSquareRoot((1.0 - _SLACK) / (1.0 + self.longest**2))
        for segments in range(*_ROOT_SEGMENTS):
            lines = Lines.over(curve, 1.0 + _SLACK, self.root_bits, segments)
            if _error(lines, 2) <= _TABLE_ERROR:
                return lines
        return Lines.over(curve, 1.0 + _SLACK, self.root_bits, _ROOT_SEGMENTS[1])

    @cached_property
    def step_scale(self) -> int:
        """Fraction bits of 1 + s_k^2 C_kk: the words of c_k^2 C_kk, in which beta^2 is 1."""
        return STATE_BITS - 2 * self.shift

    @cached_property
    def step(self) -> Lines:
        """1 / sqrt(x) for x = 1 + s_k^2 C_kk."""
        return Lines.over(
            InverseSquareRoot(1.0), 1.0 + (1.0 + _ABOVE) * self.longest**2, self.step_scale, _STEP_SEGMENTS
        )

    @cached_property
    def root_iterations(self) -> int:
        """Newton iterations behind the table `root`."""
        return _iterations(self.root)

    @cached_property
    def step_iterations(self) -> int:
        """Newton iterations behind the table `step`."""
        return _iterations(self.step)

    @cached_property
    def noise(self) -> float:
        """How far roundings carry an entry of C: each pull adds a few units in the last place, of mean 0."""
        return _DEVIATIONS * _ROUNDING * math.sqrt(self.budget) * (3.0 + 2.0 * self.longest) * 2.0**-STATE_BITS

    @cached_property
    def precision(self) -> float:
        """How far an index may be from what exact arithmetic makes of the same pulls and rewards.

        Roundings are unbiased, each with a coin of its own: of their sums 8 deviations are counted.
        """
        table, step = _error(self.root, self.root_iterations), _error(self.step, self.step_iterations)
        omega, unit = self.omega, 2.0**-self.value_bits
        width = 0.5 * self.noise * self.steepest + 6.0 * 2.0**-self.root_bits + table + step
        rough = (2.0 + self.longest) * 2.0**-STATE_BITS * self.longest * self.error + 3.0 * unit
        estimate = _DEVIATIONS * _ROUNDING * math.sqrt(self.budget) * rough + 4.0 * step * self.error * self.longest
        coded = 2.0 ** (min(self.root_bits, self.value_bits) - self.score_scale) * (self.estimate + omega)
        return self.longest * (estimate + omega * width) + self.beta * coded


def largest_noise(deviation: float, *, signs: bool) -> float:
    """|noise| never exceeds it; the dealer cuts normal draws off at 8 deviations."""
    return deviation if signs else 8.0 * deviation


def widest_surprise(longest: float, prior: float, largest: float, budget: int) -> float:
    """|r - <x, theta^>| never exceeds it."""
    beta = 2.0 ** _shift(longest)
    return beta * (prior + _estimate(prior, largest, budget)) + largest


def _estimate(prior: float, largest: float, budget: int) -> float:
    return prior + 0.5 * math.sqrt(budget) * largest


def _shift(longest: float) -> int:
    return math.ceil(math.log2(longest))


def bits_before(bound: float) -> int:
    """Bits in front of the point of what stays below `bound`."""
    return max(0, math.ceil(math.log2(bound)))


def _error(lines: Lines, iterations: int) -> float:
    """Largest relative error of a table of 1 / sqrt(x), |f''| h^2 / 16 at its lower end; an iteration: 3/2 e^2."""
    piece = 2.0 ** (lines.bits - lines.segments - lines.scale)
    error = 3.0 / 64.0 * (piece / lines.curve.lower) ** 2
    for _ in range(iterations):
        error = 1.5 * error**2
    return error


def _suffices(lines: Lines, iterations: int) -> bool:
    return _error(lines, 0) < 0.2 and _error(lines, iterations) <= _TABLE_ERROR


def _iterations(lines: Lines) -> int:
    """The fewest that suffice, of ranges that were checked."""
    return next(count for count in range(_MOST_ITERATIONS + 1) if _suffices(lines, count))

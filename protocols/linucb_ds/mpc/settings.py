"""What all parties of a run on shares agree on beforehand, and how many fraction bits fit.  Knows no theta."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bandits.coins import Noise
from bandits.fixed_point import Bounds, PublicMap, Scales, bounds, rounded
from bandits.linear_problem import Exploration, LinearProblem, ProblemError, longest_norm
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc import ops
from mpc.correlations import Correlation
from mpc.errors import ConfigError, RangeError
from mpc.ring import VALUE_BITS

from ...run.program import digest
from .. import constants
from .ranges import HiddenRanges, bits_before, largest_noise, widest_surprise

WORD = 64
LEAST_BITS = 12
_MOST_DOUBLINGS = 24
LEAST_PULLS = 2  # that bounds are for, so that a run of one draws what a rehearsal of two finds
SUM_BITS = 10  # a thousandth of the largest sum there can be, and no digit that would tell which theta it is of


@dataclass(frozen=True, eq=False)
class Settings:
    """arms: (K, d), rounded to `scales.arm` fraction bits.  budget: N.  hide: reveal nothing but the sum of rewards.

    sum_bits: of that sum, counted from the power of two above the largest one that there can be.
    """

    arms: np.ndarray
    exploration: Exploration
    budget: int
    noise: Noise = Noise.SIGN
    hide: bool = False
    scales: Scales = field(default_factory=Scales)
    sum_bits: int = SUM_BITS

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise ConfigError(f"a budget is at least 1 pull, not {self.budget}")
        if self.hide:
            self.ranges.check()
        else:
            ops.Keys(len(self.arms), self.index_bits)
        if (wanted := self.bounds.total_bits(self.scales)) > VALUE_BITS:
            raise RangeError(
                f"a sum of {self.budget:,} rewards needs {wanted} bits of {VALUE_BITS}: use a smaller budget, fewer "
                "fraction bits, or a smaller theta_norm"
            )
        if not 0 < self.sum_bits < wanted - 1:
            raise ConfigError(f"a sum is told with 1 to {wanted - 2} bits: choose --sum-bits so, not {self.sum_bits}")

    @classmethod
    def of(
        cls, problem: LinearProblem, budget: int, *, noise: Noise = Noise.SIGN, hide: bool = False,
        scales: Scales | None = None, sum_bits: int = SUM_BITS,
    ) -> Settings:  # fmt: skip
        """The public half of a problem, with as many fraction bits as fit.

        Where arms are hidden and words have no room, the error names the least gamma that leaves some, if doubling
        finds one.
        """
        if budget < 1:
            raise ConfigError(f"a budget is at least 1 pull, not {budget}")

        def made(exploration: Exploration) -> Settings:
            fitting = scales or fitting_scales(problem.arms, exploration, max(LEAST_PULLS, budget), noise)
            given = cls(rounded(problem, fitting).arms, exploration, budget, noise, hide, fitting, sum_bits)
            PublicMap(given.arms, exploration, budget)
            return given

        try:
            return made(problem.exploration)
        except ProblemError as error:
            raise ConfigError(str(error)) from error
        except RangeError as error:
            gamma = _gamma_with_room(problem.exploration, made) if hide else None
            raise (error if gamma is None else RangeError(f"{error}; gamma {gamma:g} has room")) from error

    @property
    def count(self) -> int:
        """K."""
        return len(self.arms)

    @property
    def dim(self) -> int:
        """d."""
        return self.arms.shape[1]

    @cached_property
    def bounds(self) -> Bounds:
        """Of indices and of the sum of rewards."""
        largest = self.exploration.noise * self.noise.largest
        pulls = max(LEAST_PULLS, self.budget)
        return bounds(self.arms, self.exploration, pulls, largest_noise=largest)

    @property
    def index_bits(self) -> int:
        """Bits of a public map of [theta], sign included."""
        return self.bounds.index_bits(self.scales)

    @property
    def dropped(self) -> int:
        """Bits of the sum's word that nobody learns."""
        return self.bounds.total_bits(self.scales) - 1 - self.sum_bits

    @property
    def unit(self) -> float:
        """What the sum is told as a multiple of."""
        return 2.0 ** (self.dropped - self.scales.reward)

    @property
    def ending(self) -> tuple[Correlation, ...]:
        """What rounding the sum draws."""
        return ops.rounding_items((), self.dropped)

    @cached_property
    def ranges(self) -> HiddenRanges:
        """Of a run that hides the arms."""
        return HiddenRanges(
            arms=self.arms,
            start=self.exploration.regulariser(self.dim),
            budget=self.budget,
            omega=self.exploration.omega(self.budget, self.dim),  # it grows with the pulls
            prior=prior_norm(self.exploration, self.dim),
            deviation=self.exploration.noise,
            signs=self.noise is Noise.SIGN,
            scales=self.scales,
        )

    @cached_property
    def digest(self) -> str:
        """Of all that parties must agree on."""
        return digest(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """By name, as JSON takes it."""
        return {
            "arms": self.arms.tolist(), **constants.as_json(self.exploration), "budget": self.budget,
            "noise": self.noise.value, "hide": self.hide, "scales": asdict(self.scales), "sum_bits": self.sum_bits,
        }  # fmt: skip

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Settings:
        """Settings from `as_json`."""
        return cls(
            np.array(given["arms"]), constants.from_json(given), given["budget"], Noise(given["noise"]),
            given["hide"], Scales(**given["scales"]), given["sum_bits"],
        )  # fmt: skip


def _gamma_with_room(exploration: Exploration, made: Callable[[Exploration], object]) -> float | None:
    """The first of 2, 4, 8, ... times its gamma for which settings can be made."""
    if not isinstance(exploration, Confidence | SpectralConfidence):
        return None
    for doubled in range(1, _MOST_DOUBLINGS):
        gamma = exploration.gamma * 2.0**doubled
        with suppress(RangeError, ProblemError):
            made(replace(exploration, gamma=gamma))
            return gamma
    return None


def prior_norm(exploration: Exploration, dim: int) -> float:
    """At least |D^(1/2) theta|, D the diagonal that A starts from."""
    slack = 1.0 + 2.0**-9
    if isinstance(exploration, SpectralConfidence):  # |theta|^2 in the norm of Lambda, and gamma |theta|^2
        return slack * math.hypot(exploration.smoothness, math.sqrt(exploration.gamma) * exploration.theta_norm)
    return slack * math.sqrt(float(exploration.regulariser(dim).max())) * exploration.theta_norm


def fitting_scales(arms: np.ndarray, exploration: Exploration, budget: int, noise: Noise) -> Scales:
    """As many fraction bits as leave indices room for the keys of ties, and the sum of rewards room in a word.

    An index has those of theta and of the map c together.  They are dealt out so that both roundings weigh alike: c is
    about as long as an arm, so an index is off by about |theta| 2^-map and by |x| 2^-theta.
    """
    limits = bounds(arms, exploration, budget, largest_noise=exploration.noise * noise.largest)
    tie = max(1, (len(arms) - 1).bit_length())
    none = Scales(1, 1, 1)
    room = WORD - 2 - tie - (limits.index_bits(none) - none.index)
    longest = longest_norm(arms) or 1.0
    uneven = round(math.log2(exploration.theta_norm / longest))
    theta = (room - uneven) // 2
    spare = min(
        VALUE_BITS - (limits.total_bits(none) - none.reward),
        VALUE_BITS - _surprise_bits(arms, exploration, budget, noise),
    )
    arm = min(room - theta + 4, spare - theta)
    if min(room // 2, arm - uneven // 2) < LEAST_BITS or not all(
        1 <= bits <= 60 for bits in (arm, theta, room - theta)
    ):
        raise RangeError(
            f"indices up to {limits.index:.3g} and a sum of rewards up to {limits.total:.3g} leave too few fraction "
            "bits of a word: use a smaller budget, noise or theta_norm, a larger gamma, or scale the arms"
        )
    return Scales(arm=arm, theta=theta, map=room - theta)


def _surprise_bits(arms: np.ndarray, exploration: Exploration, budget: int, noise: Noise) -> int:
    """Bits in front of the point of what a reward adds to an estimate where arms are hidden."""
    longest = float(np.sqrt((arms**2 / exploration.regulariser(arms.shape[1])).sum(axis=1).max()))
    if not longest > 0:
        return 0
    largest = largest_noise(exploration.noise, signs=noise is Noise.SIGN)
    return bits_before(2.0 * widest_surprise(longest, prior_norm(exploration, arms.shape[1]), largest, budget))

"""What is public of a run on ciphertexts: its constants, what its numbers are divided by, and how often it iterates.

Ciphertexts hold numbers of [-1, 1]:

    lambda A,  x x' / L^2,  x / L,  r x / (R L),  w / W with W = R sqrt(T / lambda)
    z = x'A x + c in units of c2 = c + L^2 / lambda;   an index (rho + 1) / range;   a test (tau - C) / D

    range = 2 + 2 beta (2 / t + L / sqrt(lambda) + sqrt(c))      Proposition 10, with A <= V^-1
    D     = C + L^2 / lambda + 1                                 a batch whose tau had passed C would have ended

An iteration runs as often as its worst input needs; the text's formulas are in `bandits.helba.approximate`.  Each time
its numbers are first brought to where it gains most, by a public factor, which a ciphertext's declared scale gives for
nothing:

    x of [l, 1]    f(s x) lies in [f(s l), 1]              s^2 = 3 / (1 + l + l^2), where f(s l) = f(s)
    sqrt(1 + v)    the same: the root's iteration is f of it
    V X of [l, 1]  s V X (2 - s V X) in [4 l / (1 + l)^2, 1]         s = 2 / (1 + l)

Far from the goal f multiplies by 2.6 and not by 1.5, the inverse's step by 4 and not by 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from bandits.helba import Batches
from mpc.errors import ConfigError, RangeError

from ...published.ckks import LEAST, Scheme
from ..game import Game
from .layout import Layout
from .refresh import AROUND, BITS

ENDED = 0.5  # of a test's result; the paper's 0.45 also ends a batch whose tau is just below C
_CLEAR = 0.1  # how far from 0 a test's number has come at 1 / (4 t) from C: 0.45 or 0.55, as the paper asks
HELD = 1e-6  # how precisely a refreshed inverse is held at lambda = 1
_SPREAD = 1.4  # bits by which a scale that iterations keep is above a prime, at most
_ROOT = 100.0  # times finer than the paper's 1 / t, so that indices are as exact as their gaps


@dataclass(frozen=True)
class Settings(Game):
    """Of a run on ciphertexts."""

    scheme: Scheme = field(default_factory=Scheme)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batches is not Batches.PUBLIC:
            raise ConfigError(f"--batches {self.batches.value} is of --mode mpc: here the server is told of each end")
        given = self.constants
        self._check_masks()
        held = HELD / given.ridge
        if given.eps(self.steps) < held:
            raise RangeError(
                f"L = {given.norm:g} over {self.steps:,} steps needs an inverse to {given.eps(self.steps):.1e}, and "
                f"ciphertexts hold it to {held:.1e}: play fewer steps, or use --mode mpc"
            )

    def _check_masks(self) -> None:
        """A masked number's polynomial must not wrap: each of its coefficients is at most 2 / N of all slots' sum."""
        scheme, kept = self.scheme, len(self.layout.kept)
        mask = 2.0 / scheme.degree * (kept * 2.0**BITS + scheme.slots * 2.0**AROUND) + 2.0
        if scheme.prime + _SPREAD + math.log2(2.0 * mask) > LEAST * scheme.low:
            raise ConfigError(
                f"masks of {kept} numbers in {scheme.slots} slots do not fit {LEAST} primes of {scheme.low} bits: use "
                "--mode mpc, or a larger degree"
            )

    @cached_property
    def layout(self) -> Layout:
        """Which slot holds what."""
        return Layout(self.constants.dim, self.arms, self.scheme.slots)

    @property
    def largest(self) -> float:
        """L^2 / lambda, the largest x'A x."""
        return self.constants.norm**2 / self.constants.ridge

    @property
    def estimate(self) -> float:
        """W."""
        return self.constants.reward * math.sqrt(self.steps / self.constants.ridge)

    @property
    def trace(self) -> float:
        """D."""
        return self.constants.trace + self.largest + 1.0

    def root_range(self, start: int) -> tuple[float, float]:
        """c and c2 of the batch that began at `start`."""
        slack = self.constants.slack(start)
        return slack, slack + self.largest

    def index_range(self, t: int, start: int) -> float:
        """How far apart indices can be, outside of an event of probability delta."""
        given = self.constants
        widest = 2.0 / t + math.sqrt(self.largest) + math.sqrt(given.slack(start))
        return 2.0 + 2.0 * given.beta(t) * widest

    def precision(self, t: int) -> float:
        """eps', of bits: an arm with b at least that is within 2 eps' of the best."""
        return 1.0 / (4.1 * t)

    def root_factors(self, t: int, start: int) -> list[float]:
        """Until sqrt(z) is known to 1 / (100 t): it is off by at most sqrt(c2) (1 - l)."""
        low, high = self.root_range(start)
        return factors(math.sqrt(low / high), 1.0 - 1.0 / (_ROOT * t * math.sqrt(high)))

    def maximum_factors(self, t: int) -> list[float]:
        """Until the largest index is known to eps', through all levels of a tournament.

        Of a gap x it misses x (1 - F) / 2: below l, where F >= F(l) x / l, at most l / (8 F(l)); above, (1 - F(l)) / 2.
        """
        eps = self.precision(t) / max(1, self.layout.around.bit_length() - 1)
        return factors(4.0 * eps, 1.0 - 2.0 * eps)

    def comparison_factors(self, t: int, *, tested: bool) -> list[float]:
        """Until a bit is known to eps', and a trace further than 1 / (4 t) from C is on its side of 0.45 and 0.55.

        F rises up to eps' and stays above F(eps') from there on, so of arms that near the larger has the larger bit.
        """
        eps = self.precision(t)
        return factors(eps, 1.0 - 2.0 * eps, *((1.0 / (4.0 * t * self.trace), _CLEAR) if tested else ()))

    def inverse_factors(self, start: int) -> list[float]:
        """Until A of all steps before `start` is known to half of eps(t_j)."""
        given, found = self.constants, []
        low = given.ridge / self.inverse_bound(start)
        while 1.0 - low > given.ridge * given.eps(start) / 2.0:
            found.append(2.0 / (1.0 + low))
            low = 4.0 * low / (1.0 + low) ** 2
        return found

    def inverse_bound(self, start: int) -> float:
        """c of X_0 = I / c: at least V's largest eigenvalue."""
        return self.constants.ridge + self.constants.norm**2 * (start - 1)

    def as_json(self) -> dict[str, Any]:
        """By name, as JSON takes it."""
        return {**super().as_json(), "scheme": asdict(self.scheme)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Settings:
        """What `as_json` gave."""
        rest = dict(given)
        scheme = Scheme(**rest.pop("scheme"))
        return replace(super().from_json(rest), scheme=scheme)


def factors(low: float, goal: float, other: float = 1.0, least: float = 0.0) -> list[float]:
    """s of each f(s x), until it has brought [low, 1] above `goal`, and [other, 1] above `least`."""
    found = []
    while low < goal or other < least:
        s = math.sqrt(3.0 / (1.0 + low + low * low))
        found.append(s)
        low, other = _f(s * low), min(_f(s * other), _f(s))
    return found


def _f(x: float) -> float:
    return x * (3.0 - x * x) / 2.0

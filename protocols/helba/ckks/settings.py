"""What is public of a run on ciphertexts: its constants, what its numbers are divided by, and how often it iterates.

Ciphertexts hold numbers of [-1, 1]:

    lambda A,  x x' / L^2,  x / L,  r x / (R L),  w / W with W = R sqrt(T / lambda)
    z = x'A x + c in units of c2 = c + L^2 / lambda;   an index (rho + 1) / range;   a test (tau - C) / D

    range = 2 + 2 beta (2 / t + L / sqrt(lambda) + sqrt(c))      Proposition 10, with A <= V^-1
    D     = C + L^2 / lambda + 1                                 a batch whose tau had passed C would have ended

An iteration runs as often as its worst input needs, which is tried out in the clear; the text's formulas are in
`bandits.helba.approximate`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from bandits.helba import Batches, Constants
from bandits.helba.approximate import root
from mpc.errors import ConfigError, RangeError

from .layout import Layout
from .scheme import Scheme

ENDED = 0.5  # of a test's result; the paper's 0.45 also ends a batch whose tau is just below C
_CLEAR = 0.1  # how far from 0 a test's number has come at 1 / (4 t) from C: 0.45 or 0.55, as the paper asks
HELD, COARSE = 1e-6, 1e-5  # how precisely a refreshed inverse is held at lambda = 1, by primes
_ROOT = 100.0  # times finer than the paper's 1 / t, so that indices are as exact as their gaps


@dataclass(frozen=True)
class Settings:
    """arms: K.  steps: T."""

    constants: Constants = field(default_factory=Constants)
    arms: int = 2
    steps: int = 130
    scheme: Scheme = field(default_factory=Scheme)
    batches: Batches = Batches.PUBLIC

    def __post_init__(self) -> None:
        if self.arms < 1 or self.steps < 1:
            raise ConfigError(f"{self.arms} arms and {self.steps} steps: at least 1 of each")
        if self.batches is not Batches.PUBLIC:
            raise ConfigError(f"--batches {self.batches.value} is of --mode mpc: here the server is told of each end")
        given, _ = self.constants, self.layout
        held = (HELD if self.scheme.precise else COARSE) / given.ridge
        if given.eps(self.steps) < held:
            raise RangeError(
                f"L = {given.norm:g} over {self.steps:,} steps needs an inverse to {given.eps(self.steps):.1e}, and "
                f"ciphertexts hold it to {held:.1e}: play fewer steps, or use --mode mpc"
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

    def root_count(self, t: int, start: int) -> int:
        """Until sqrt(z) is known to 1 / (100 t)."""
        return _root_count(*self.root_range(start), 1.0 / (_ROOT * t))

    def maximum_count(self, t: int) -> int:
        """Until the largest index is known to eps', through all levels of a tournament."""
        levels = self.layout.around.bit_length() - 1
        return max(0, math.ceil(math.log(0.136 * max(levels, 1) / self.precision(t)) / math.log(1.5)))

    def comparison_count(self, t: int, *, tested: bool) -> int:
        """Until a bit is known to eps', and a trace further than 1 / (4 t) from C is on its side of 0.45 and 0.55."""
        eps = self.precision(t)
        bits = _sign_count(eps, 1.0 - 2.0 * eps)
        return max(bits, _sign_count(1.0 / (4.0 * t * self.trace), _CLEAR)) if tested else bits

    def inverse_count(self, start: int) -> int:
        """Until A of all steps before `start` is known to half of eps(t_j)."""
        given, count = self.constants, 0
        smallest = given.ridge / self.inverse_bound(start)
        while math.exp(2**count * math.log1p(-smallest)) > given.ridge * given.eps(start) / 2.0:
            count += 1
        return count

    def inverse_bound(self, start: int) -> float:
        """c of X_0 = I / c: at least V's largest eigenvalue."""
        return self.constants.ridge + self.constants.norm**2 * (start - 1)

    @cached_property
    def digest(self) -> bytes:
        """Of all that participants must agree on."""
        return hashlib.blake2b(json.dumps(self.as_json(), sort_keys=True).encode(), digest_size=8).digest()

    def as_json(self) -> dict[str, Any]:
        """By name, as JSON takes it."""
        own = {"steps": self.steps, "arms": self.arms, "constants": asdict(self.constants)}
        return {**own, "scheme": asdict(self.scheme)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Settings:
        """Settings from `as_json`."""
        constants, scheme = Constants(**given["constants"]), Scheme(**given["scheme"])
        return cls(constants, given["arms"], given["steps"], scheme)


@cache
def _root_count(low: float, high: float, eps: float) -> int:
    z = np.geomspace(low, high, 100)
    return next(count for count in range(100) if np.abs(root(z, low, high, count) - np.sqrt(z)).max() <= eps)


def _sign_count(x: float, goal: float) -> int:
    count = 0
    while x < goal:
        x, count = x * (3.0 - x * x) / 2.0, count + 1
    return count

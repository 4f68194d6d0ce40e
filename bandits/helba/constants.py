"""What is public of a run: the constants, and the numbers that follow from them and the step alone.

    L      at least |x|                         S      at least |theta|
    lambda the regulariser                      sigma  of the noise of a reward
    C      trace at which a batch ends          eta    growth of t at which a batch ends
    delta  how often confidence may fail        R      at least |r|

    beta(t)  = t^(-1/2) + S sqrt(lambda) + sigma sqrt(d (log(1 + L^2 t / (lambda d)) + log(u(t) / delta)))
    eps(t)   = 1 / (L t^(3/2) sqrt(lambda + L^2 t))        how precise an inverse must be
    c(t)     = L^2 eps(t)                                  what a quadratic form with such an inverse may miss

u(t) = pi^2 t^2 / 6 is the paper's union bound over the steps; its bound holds for all steps at once without it, u = 1.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

_LARGEST = 1e60  # beyond it, and below its inverse, the bounds that follow are no doubles
WIDTH_BITS = 8  # of beta, rounded up: optimism stays, and a program on shares has the very same width


class HelbaError(ValueError):
    """Constants or features that these policies cannot use."""


class Batches(Enum):
    """public: all know when a batch ends.  hidden: nobody does.  none: a batch is one step."""

    PUBLIC = "public"
    HIDDEN = "hidden"
    NONE = "none"


@dataclass(frozen=True)
class Constants:
    """norm: L.  ridge: lambda.  trace: C.  growth: eta; None where time ends no batch.  reward: R."""

    dim: int = 2
    norm: float = 5.5
    ridge: float = 1.0
    trace: float = 1.0
    growth: float | None = 0.1
    noise: float = 0.5
    theta_norm: float = 1.0
    delta: float = 0.1
    reward: float = 3.0
    union: bool = True

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "dim", operator.index(self.dim))
        except TypeError:
            raise HelbaError(f"features have a whole number of dimensions, not {self.dim!r}") from None
        for name in ("norm", "ridge", "trace", "growth", "noise", "theta_norm", "delta", "reward"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(given))  # numpy's too
        positive = {"norm": self.norm, "ridge": self.ridge, "trace": self.trace, "reward": self.reward}
        for name, value in positive.items():
            if not 1.0 / _LARGEST < value < _LARGEST:
                raise HelbaError(f"{name} must be positive, between {1.0 / _LARGEST:g} and {_LARGEST:g}, not {value:g}")
        if self.dim < 1:
            raise HelbaError(f"features have at least 1 dimension, not {self.dim}")
        if not (0 <= self.noise < _LARGEST and 0 <= self.theta_norm < _LARGEST):
            raise HelbaError(
                f"noise {self.noise:g} and theta_norm {self.theta_norm:g} must be at least 0, and below {_LARGEST:g}"
            )
        if not 0 < self.delta < 1:
            raise HelbaError(f"delta is a probability between 0 and 1, not {self.delta:g}")
        if self.growth is not None and not 1e-3 <= self.growth <= 1e3:
            raise HelbaError(f"growth lies between 0.001 and 1000, or there is none, not {self.growth:g}")

    @property
    def ratio(self) -> tuple[int, int]:
        """1 + eta as a quotient of whole numbers: a batch that began at t_j has ended when q (t + 1) >= p t_j."""
        assert self.growth is not None
        exact = 1 + Fraction(self.growth).limit_denominator(1000)
        return exact.numerator, exact.denominator

    def grown(self, t: int, start: int) -> bool:
        """Whether time ends the batch that began at `start`, behind step t."""
        if self.growth is None:
            return False
        p, q = self.ratio
        return q * (t + 1) >= p * start

    def earliest(self, t: int) -> int:
        """The first step at which the batch of step t can have begun."""
        if self.growth is None:
            return 1
        p, q = self.ratio
        return max(1, q * t // p + 1) if t > 1 else 1

    def beta(self, t: int) -> float:
        """How many widths an index adds at step t, up to the next 2^-8."""
        union = math.log(math.pi**2 * t * t / 6.0) if self.union else 0.0
        logs = math.log1p(self.norm**2 * t / (self.ridge * self.dim)) + union - math.log(self.delta)
        exact = t**-0.5 + self.theta_norm * math.sqrt(self.ridge) + self.noise * math.sqrt(self.dim * max(logs, 0.0))
        return math.ceil(exact * 2**WIDTH_BITS) / 2**WIDTH_BITS

    def eps(self, t: int) -> float:
        """What an inverse over t steps may be off."""
        return 1.0 / (self.norm * t**1.5 * math.sqrt(self.ridge + self.norm**2 * t))

    def slack(self, t: int) -> float:
        """c(t) = L^2 eps(t)."""
        return self.norm**2 * self.eps(t)

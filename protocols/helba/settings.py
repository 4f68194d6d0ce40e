"""What all parties of a run agree on beforehand, and how many fraction bits fit.  Knows no feature.

With R >= |r|, T steps and V >= lambda I, whatever the users share:

    |A x| <= L / lambda,  x'A x <= L^2 / lambda,  |<x, w>| <= L R sqrt(T / lambda),
    |A x| |<x, w>| <= (L^2 / lambda) R sqrt(T / lambda)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from bandits.helba import Batches
from bandits.helba.constants import WIDTH_BITS
from bandits.helba.problem import FEATURE_BITS
from mpc import ops
from mpc.curves import Reciprocal
from mpc.errors import RangeError
from mpc.ops import Levels, Lines
from mpc.ring import VALUE_BITS

from .game import Game

ESTIMATE_BITS = 28  # of w
QUOTIENT_BITS = 36  # of 1 + x'A x
START_BITS = 16  # of the first quotient
ERROR_BITS, ROUGH_BITS = 34, 26  # of how far it is off, and of what that corrects
_ROOM = 61.9  # bits of a word that a truncation takes
_SLACK = 1.0 + 2.0**-10
_UNITS = 64.0  # of the last place, in what is learned from
_ROUNDINGS = 16  # of the last place of the inverse, for each dimension: what a long run gathers at most


@dataclass(frozen=True)
class Widths:
    """Fraction bits: inverse of A; form of A x, with x of its square; root's levels; score of an index;
    update of A x and of its squares in an update; surprise of r - <x, w> and of its products."""

    inverse: int
    form: int
    levels: Levels
    score: int
    score_bits: int
    update: int
    squares: int
    surprise: int
    gains: int

    @property
    def square(self) -> int:
        """Of x'A x and of tau."""
        return self.form + FEATURE_BITS


@dataclass(frozen=True)
class Settings(Game):
    """Of a run on shares."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, largest in (("features", self.constants.norm), ("rewards", self.constants.reward)):
            if largest < (finest := _UNITS * 2.0**-FEATURE_BITS):
                raise RangeError(
                    f"{what} up to {largest:g} are rounded to {2.0**-FEATURE_BITS:.2g}: scale them to {finest:.2g} "
                    "and more, such as to 1"
                )
        given, bits, _ = self.constants, self.widths.inverse, self.quotients
        wanted, held = given.eps(self.steps), _ROUNDINGS * given.dim * 2.0**-bits
        if wanted < held:
            raise RangeError(
                f"L = {given.norm:g} over {self.steps:,} steps needs an inverse to {wanted:.1e}, and words of 64 bits "
                f"hold it to {held:.1e} in {given.dim} dimensions: play fewer steps, or scale the features"
            )

    @property
    def copies(self) -> int:
        """Of the regression: one that learns, and where there are batches a frozen one before it."""
        return 1 if self.batches is Batches.NONE else 2

    @cached_property
    def quotients(self) -> Lines:
        """1 / q on [1, 1 + L^2 / lambda], to about 1e-4."""
        most = self.constants.norm**2 / self.constants.ridge * _SLACK
        segments = max(8, math.ceil(math.log2(most)) + 5)
        if segments > 14:
            raise RangeError(f"L^2 / lambda = {most:g} is too large for words of 64 bits: scale the features")
        return Lines.over(Reciprocal(1.0 - 2.0**-10), 1.0 + most, QUOTIENT_BITS, segments)

    @cached_property
    def widths(self) -> Widths:
        """As many fraction bits as fit the bounds above."""
        given = self.constants
        vector, ridge = given.norm / given.ridge, given.ridge
        most = given.norm**2 / ridge * _SLACK + given.slack(1)
        if math.log2(given.trace + most) + 30 + FEATURE_BITS > _ROOM:
            raise RangeError(
                f"a trace of {given.trace:g} and features up to {given.norm:g} do not fit a word: lower C, or scale "
                "the features"
            )
        predicted = given.norm * given.reward * math.sqrt(self.steps / ridge)
        beta = max(given.beta(1), given.beta(self.steps))
        inverse = min(40, _fitting(vector) - FEATURE_BITS)
        form, levels, score, score_bits = self._index(most, predicted + beta * (math.sqrt(most) + 1.0), inverse)
        update = min(30, _fitting(vector**2) // 2)
        pulled = vector * given.norm * given.reward * math.sqrt(self.steps / ridge) + vector * given.reward
        surprise = min(30, _fitting(pulled) - update)
        most_scaled = VALUE_BITS - START_BITS  # words are read with no more fraction bits, however small they are
        squares = min(2 * update - 1, _fitting(vector**2) - START_BITS, most_scaled)
        gains = min(update + surprise - 1, _fitting(pulled) - START_BITS, most_scaled)
        estimates = _fitting(predicted) >= ESTIMATE_BITS + FEATURE_BITS
        if min(inverse - 6, update, surprise + 8, squares, gains) < 28 or not estimates:
            raise RangeError(
                f"L = {given.norm:g}, lambda = {ridge:g} and rewards up to {given.reward:g} over {self.steps:,} steps "
                "leave too few bits of a word: scale the features, or play fewer steps"
            )
        return Widths(inverse, form, levels, score, score_bits, update, squares, surprise, gains)

    def _index(self, most: float, largest: float, inverse: int) -> tuple[int, Levels, int, int]:
        """Scales of A x and of the score, and the root's levels between them."""
        given = self.constants
        whole = math.ceil(math.log2(largest)) + 1
        room = 62 - max(1, (self.arms - 1).bit_length()) - whole
        limit = _ROOM - math.log2(given.trace + most) - FEATURE_BITS
        for bits in (25, 24, 23, 22):
            for form in range(min(inverse, int(limit)), 29, -1):
                try:
                    levels = Levels.over(given.slack(self.steps) / 2.0, most, form + FEATURE_BITS, bits=bits)
                except RangeError:
                    continue
                if levels.root_scale + WIDTH_BITS <= room:
                    score = min(room, max(ESTIMATE_BITS + FEATURE_BITS, levels.root_scale + WIDTH_BITS))
                    ops.Keys(self.arms, score + whole)
                    return form, levels, score, score + whole
        raise RangeError(
            f"indices up to {largest:.3g} of {self.arms} arms over {self.steps:,} steps leave too few bits of a word: "
            "play fewer steps, or scale the features"
        )


def _fitting(bound: float) -> int:
    """The most fraction bits with which values up to `bound` fit a word."""
    return math.floor(_ROOM - math.log2(bound))

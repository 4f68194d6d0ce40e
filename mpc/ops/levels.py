"""A square root of one relative error over any range: to one interval by powers of 4, and back by powers of 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..curves import SquareRoot
from ..errors import RangeError
from ..ring import VALUE_BITS
from ..rounds import Rounds
from ..session import Session
from ..share import Share
from .lookup import Lines, curve
from .products import product
from .sign import is_negative
from .truncate import truncate_to

_SEGMENTS = 11
_ARGUMENT_BITS = 30  # of what the lines are given


@dataclass(frozen=True)
class Levels:
    """[lower, upper] cut at top / 4, top / 16, ... with top >= upper, and lines for the root on [top / 4, top].

    top: as a word of `scale` fraction bits.  even: how many the same word is read with where lines stand for the root,
    so that top lies in [1, 4); an even number more or fewer.  root_bits: of such a root.
    """

    scale: int
    even: int
    top: int
    count: int
    root_bits: int
    lines: Lines

    @classmethod
    @lru_cache(maxsize=256)
    def over(cls, lower: float, upper: float, scale: int, *, bits: int = 25) -> Levels:
        """As few levels as reach `lower`.  bits: that a root has at least, on each level.

        top is as large as the lines can be wide: then they are as fine as they can be.
        """
        if not 0 < lower < upper:
            raise RangeError(f"levels lie between two positive ends, not {lower:g} and {upper:g}")
        wanted = math.ceil(upper * 2.0**scale)
        width = max(_SEGMENTS + 2, (3 * wanted // 4).bit_length())
        if (top := _widest(width)) < wanted:
            top = _widest(width := width + 1)
        if top >= 1 << VALUE_BITS:
            raise RangeError(f"{upper:g} with {scale} fraction bits leaves no room for levels: use fewer of them")
        even = top.bit_length() - 1
        even -= (even - scale) % 2
        end = math.ldexp(top, -even)
        lines = Lines.over(SquareRoot(end / 4.0), end, even - width + _ARGUMENT_BITS, _SEGMENTS)
        count = max(2, math.ceil(math.log(math.ldexp(top, -scale) / lower, 4.0)))
        made = cls(scale, even, top, count, bits + 1, lines)
        if not 0 <= made.root_scale <= VALUE_BITS or not 1 <= bits < VALUE_BITS - count:
            raise RangeError(f"roots on [{lower:g}, {upper:g}] do not fit a word with {bits} bits: use fewer")
        return made

    @property
    def root_scale(self) -> int:
        """Of the result."""
        return self.root_bits + self.count - 1 + (self.scale - self.even) // 2

    @property
    def width(self) -> int:
        """Bits of a comparison with a threshold."""
        return self.top.bit_length() + 1

    @property
    def thresholds(self) -> np.ndarray:
        """top / 4^j, rounded up, for j from 1."""
        return np.array([-(-self.top >> 2 * level) for level in range(1, self.count)], np.int64)

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """What [x < top / 4^j] adds to 4^e, which begins with 1, and takes from 2^(count - 1 - e)."""
        levels = np.arange(1, self.count, dtype=np.int64)
        return 3 * 4 ** (levels - 1), 2 ** (self.count - 1 - levels)


def square_root_levelled(session: Session, x: Share, levels: Levels) -> Rounds[Share]:
    """[sqrt(x)], as precise for small x as for large ones; the result has `levels.root_scale` fraction bits.

        e = sum_j [x < top / 4^j]          how often x can be multiplied by 4
        y = sqrt(4^e x)                    by lines on [top / 4, top]
        sqrt(x) = 2^-e y                   read with `count` - 1 more fraction bits: 2^(count - 1 - e) y

    From:  docs/protocol-book.md, Square root by levels.
    Needs: lower <= x <= upper as `levels` has them; below, the lines wrap.
    Error: relative 1e-7 with 25 bits of a root; 2^-bits and 4e-8 with fewer.
    Cost:  8 rounds, 7 for arguments of at most 30 bits; count - 1 comparisons, 2 products, 2 truncations (1) and 1 line
           mask of 11 segment bits.
    Opens: as `is_negative`, `product`, `truncate`, `curve`.
    """
    if x.scale != levels.scale:
        raise RangeError(f"levels for {levels.scale} fraction bits do not fit an argument with {x.scale}")
    gaps = x.integers().reshape(*x.shape, 1) - levels.thresholds
    below = yield from is_negative(session, gaps, width=levels.width)
    up, down = levels.steps
    near = yield from product(session, x, (below * up).sum(axis=-1) + 1)
    near = yield from truncate_to(session, near.at_scale(levels.even), levels.lines.scale)
    y = yield from truncate_to(session, (yield from curve(session, near, levels.lines)), levels.root_bits)
    root = yield from product(session, y, (1 << (levels.count - 1)) - (below * down).sum(axis=-1))
    return root.at_scale(levels.root_scale)


def _widest(width: int) -> int:
    """The largest top that lines over `width` bits cover from a quarter of it on, in units of what they are given."""
    unit = 4 << max(0, width - _ARGUMENT_BITS)
    piece = 1 << (width - _SEGMENTS)
    return ((1 << width) - 2 * piece) * 4 // 3 // unit * unit

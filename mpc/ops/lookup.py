"""Public functions of secret small numbers, by a table that the dealer has turned by a secret offset."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..correlations import LineMask, LookupMask
from ..curves import Curve, Table
from ..errors import RangeError
from ..ring import VALUE_BITS, mask
from ..rounds import Open, Rounds
from ..session import Session
from ..share import Share

_BOTH = np.arange(2)  # height and slope of a line


def lookup(session: Session, x: Share, table: Table, *, scale: int = 0) -> Rounds[Share]:
    """[T(x)] for a public table T of 2^k words.

        z = open(x + r mod 2^k),  y = turned[z]   where the dealt turned[j] = T[j - r]

    From:  docs/protocol-book.md, Look-ups.
    Needs: 0 <= x < 2^k as a word; outside, x is taken mod 2^k.  x may be shared mod 2^8 or 2^16, where k is no more.
    Cost:  1 round; |x| elements of Z_2^k per peer; 1 look-up mask, 8 |x| 2^k bytes for party 0.
    Opens: z, uniform in Z_2^k: every party reduces its share mod 2^k before it sends.
    """
    if x.ring < table.bits:
        raise TypeError(f"a share mod 2^{x.ring} is no argument of a table on {table.bits} bits: lift it with ops.lift")
    r, turned = session.draw(LookupMask(x.shape, table))
    z = yield Open(x.words.astype(r.dtype) + r, bits=table.bits)
    return Share(session, gather(turned, z.astype(np.intp)), scale)


@dataclass(frozen=True)
class Lines:
    """A curve on [lower, upper] cut into lines: k bits of the argument, the top `segments` of them choose a line."""

    curve: Curve
    scale: int  # of the argument
    bits: int  # k
    segments: int
    out_scale: int
    last: int  # where the curve stops to matter, in units from `lower`: one piece behind the upper end
    step: int = 0  # bits of the argument's place within a piece that are rounded off before a slope meets it

    @classmethod
    @lru_cache(maxsize=256)
    def over(cls, curve: Curve, upper: float, scale: int, segments: int) -> Lines:
        """k covers the interval and one piece more; the result has as many more fraction bits as a piece is wide.

        Fewer where the curve's values would not leave room for them; the lower end is rounded to the argument's scale.
        """
        curve = replace(curve, lower=round(curve.lower * 2.0**scale) * 2.0**-scale)
        span = (upper - curve.lower) * 2.0**scale
        if span <= 0:
            raise RangeError(f"the upper end {upper:g} must lie above the lower end {curve.lower:g}")
        if not 1 <= segments <= 20:
            raise RangeError(f"a curve is cut by 1 to 20 bits into lines, not {segments}")
        bits = max(segments, math.ceil(math.log2(span)))
        if span + 2 ** (bits - segments) >= 2**bits:
            bits += 1
        if bits > VALUE_BITS:
            raise RangeError(f"an interval of 2^{bits} units: use fewer fraction bits or a smaller upper end")
        last = math.ceil(span) + (1 << (bits - segments))
        ends = curve.lower + np.linspace(0.0, last, 1025) * 2.0**-scale
        largest = float(np.abs(curve(ends)).max())
        room = VALUE_BITS - 2 - max(0, math.ceil(math.log2(largest))) if math.isfinite(largest) else -1
        if room < scale:
            raise RangeError(
                f"the curve reaches {largest:.3g} on the interval, too large for {scale} fraction bits: "
                "use fewer of them or a smaller upper end"
            )
        return cls(curve, scale, bits, segments, min(scale + bits - segments, room), last)

    def coarser(self, out_scale: int) -> Lines:
        """Results of fewer fraction bits, for products that leave no room for more.

        A slope of so few bits, times the whole width of a piece, would be off by much.  So it is dealt for 2^step
        units, and meets the place within a piece rounded to these: with spare bits less, both errors are about
        2^(spare / 2) units of x.
        """
        spare = self.out_scale - out_scale
        return replace(self, out_scale=out_scale, step=min(spare // 2, self.bits - self.segments))


def curve(session: Session, x: Share, lines: Lines) -> Rounds[Share]:
    """[f(x)], f cut into 2^s pieces, each replaced by a line.

        z = open(x - lower + r mod 2^k),  z = 2^(k-s) z_hi + z_lo
        y = height[z_hi] + slope[z_hi] round(z_lo / 2^step)
                                                  dealt: the line through f at 2^(k-s) z_hi - r and one piece further

    Given z_hi, x lies in one interval as wide as a piece, whose start only the dealer knows; so the pieces are
    shifted by a secret offset, and one opening is enough.  One piece of the 2^s is spare, so that the piece that
    straddles the end of Z_2^k belongs to the lower end alone.

    From:  docs/protocol-book.md, Look-ups.
    Needs: lower <= x <= upper; outside, x is taken mod 2^k from `lower`.
    Error: |f''| h^2 / 16 with h = 2^(k-s) units of x, plus half a unit in the last place of x (more where the slope has
           fewer fraction bits than a piece is wide: 2^(k - s - 1 - out_scale - step)); with a step |f'| 2^(step - 1)
           units of x more.
    Cost:  1 round; |x| elements of Z_2^k per peer; 1 line mask, 16 |x| 2^s bytes for party 0.
    Opens: z, uniform in Z_2^k.
    """
    if x.scale != lines.scale:
        raise RangeError(f"lines for {lines.scale} fraction bits do not fit an argument with {x.scale}")
    item = LineMask(
        x.shape, lines.curve, lines.scale, lines.out_scale, lines.bits, lines.segments, lines.last, lines.step
    )
    r, table = session.draw(item)
    offset = x - lines.curve.lower if lines.curve.lower else x
    z = yield Open(offset.wide().astype(r.dtype) + r, bits=lines.bits)
    z = z.astype(np.uint64)
    inside = np.uint64(lines.bits - lines.segments)
    at = (z >> inside).astype(np.intp)
    line = gather(table.reshape(*table.shape[:-2], -1), 2 * at[..., None] + _BOTH)
    within = z & mask(int(inside))
    if lines.step:
        within = (within + np.uint64(1 << lines.step - 1)) >> np.uint64(lines.step)
    return Share(session, line[..., 0] + line[..., 1] * within, lines.out_scale)


def gather(tables: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Entries of each element's table, for each hosted party: tables (hosted, *shape, entries), index (*shape, ...).

    As numpy's take_along_axis, in a third of its time on small arrays.
    """
    hosted, *shape, entries = tables.shape
    starts = np.arange(0, math.prod(shape) * entries, entries)
    starts = starts.reshape((*shape, *[1] * (index.ndim - len(shape))))
    return tables.reshape(hosted, -1).take(index + starts, axis=1)

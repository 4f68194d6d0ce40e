"""Reciprocal, exponential and square root: by a table, by a table and Newton, and as published."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from ..curves import Exponential, InverseSquareRoot, Reciprocal, SquareRoot
from ..errors import RangeError
from ..ring import FRACTION_BITS, VALUE_BITS
from ..rounds import Rounds, together
from ..session import Session
from ..share import Share
from .arrange import stack
from .lookup import Lines, curve
from .products import product, square
from .sign import is_negative
from .truncate import truncate, truncate_to


def reciprocal(session: Session, x: Share, *, upper: float, lower: float = 1.0, segments: int = 10) -> Rounds[Share]:
    """[1 / x] on [lower, upper] by one table of lines; the result keeps the table's finer scale.

    From:  docs/protocol-book.md, Look-ups.
    Needs: 0 < lower <= x <= upper, or the table wraps silently: enforce the range where x's parts are shared.
    Error: h^2 / (8 lower^3) with h = 2^(k - segments) units of x, k the bits that hold upper - lower and a piece more;
           plus half a unit in the last place.  On [1, 2]: h = 2^-9 and the error is below 1e-6.
    Cost:  1 round; as `curve`.
    Opens: as `curve`.
    """
    return (yield from curve(session, x, Lines.over(Reciprocal(lower), upper, x.scale, segments)))


def reciprocal_newton(
    session: Session, x: Share, *, upper: float, lower: float = 1.0, segments: int = 9, iterations: int = 1
) -> Rounds[Share]:
    """[1 / x] on [lower, upper] by a table and Newton's y (2 - x y), which squares the relative error.

    From:  Newton's iteration; docs/protocol-book.md, Functions by iteration.
    Needs: as `reciprocal`.
    Error: e^(2^iterations) for the table's relative error e, plus 3 units in the last place.
    Cost:  2 + 4 rounds an iteration (the table's scale is brought to x's by the first truncation).
    Opens: as `curve`, `bilinear`, `truncate`.
    """
    y = yield from reciprocal(session, x, upper=upper, lower=lower, segments=segments)
    y = yield from truncate_to(session, y, x.scale)
    return (yield from newton_reciprocal(session, x, y, iterations))


def reciprocal_published(session: Session, x: Share, *, iterations: int = 10) -> Rounds[Share]:
    """[1 / x] for x > 0 as CrypTen computes it: y_0 = 3 e^(1/2 - x) + 0.003, then Newton.

    From:  Hannun et al., "Privacy-preserving contextual bandits"; docs/protocol-book.md, Functions by iteration.
    Needs: 0 < x <= 500: beyond, 1 - x / 2^8 in the exponential nears -1, x y_0 passes 2 and Newton diverges.
    Cost:  17 + 1 rounds for y_0, 4 an iteration.
    Opens: as `exponential`, `bilinear`, `truncate`.
    """
    e = yield from exponential(session, 0.5 - x)
    y = yield from truncate(session, e * 3.0, FRACTION_BITS)
    return (yield from newton_reciprocal(session, x, y + 0.003, iterations))


def newton_reciprocal(session: Session, x: Share, y: Share, iterations: int) -> Rounds[Share]:
    """[1 / x] from a start y of the same scale: y (2 - x y).  Needs: 0 < x y < 2.  Cost: 4 rounds an iteration.

    From:  as in Hannun et al., "Privacy-preserving contextual bandits".
    """
    for _ in range(iterations):
        xy = yield from product(session, x, y)
        xy = yield from truncate(session, xy, x.scale)
        y = yield from product(session, y, 2.0 - xy)
        y = yield from truncate(session, y, x.scale)
    return y


def exponential(session: Session, x: Share, *, squarings: int = 8) -> Rounds[Share]:
    """[e^x] as the limit (1 + x / 2^k)^(2^k).

    x / 2^k is free: the same words with k more fraction bits.  The squarings run at that scale s.

    From:  Hannun et al., "Privacy-preserving contextual bandits"; docs/protocol-book.md, Functions by iteration.
    Needs: e^x < 2^(62 - 2 s) with s = x.scale + k, so x < 4 at 20 + 8 bits; and |x| < 2^k.
    Error: relative x^2 / 2^(k+1), plus 2^(k - s) from rounding.
    Cost:  2 k rounds and one truncation back: 2 k + 1.
    Opens: as `square`, `truncate`.
    """
    scale = x.scale + squarings
    if 2 * scale > VALUE_BITS - 2:
        raise RangeError(f"{squarings} squarings at {scale} fraction bits overflow: use fewer fraction bits for x")
    y = x.at_scale(scale) + 1.0
    for _ in range(squarings):
        y = yield from square(session, y)
        y = yield from truncate(session, y, scale)
    return (yield from truncate(session, y, squarings)) if squarings else y


def exponential_table(session: Session, x: Share, *, lower: float, upper: float, segments: int = 9) -> Rounds[Share]:
    """[e^x] on [lower, upper] by one table of lines.

    From:  docs/protocol-book.md, Look-ups.
    Needs: lower <= x <= upper.
    Error: e^upper h^2 / 16 with h = 2^(k - segments) units of x.
    Cost:  1 round; as `curve`.
    Opens: as `curve`.
    """
    return (yield from curve(session, x, Lines.over(Exponential(lower), upper, x.scale, segments)))


def square_root(session: Session, x: Share, *, upper: float, segments: int = 9, levels: int = 3) -> Rounds[Share]:
    """[sqrt(x)] on [0, upper] by tables of lines at several magnifications.

    Near 0 the root bends too sharply for one table.  Level l covers the lowest 2^-(6 l) of the interval, with
    pieces of at least a unit; all levels are looked up at once, beside the comparisons that say which one holds, and
    one product selects:

        y = y_0 + sum_l [x < limit_l] (y_l - y_(l-1))        limit_l = half of what level l covers

    From:  docs/protocol-book.md, Functions by iteration.
    Needs: 0 <= x <= upper.
    Error: 5e-4 up to upper = 10 with 9 segment bits and 3 levels; beyond, it grows with sqrt(upper).
    Cost:  3 + 1 + 1 rounds; `levels` line masks, levels - 1 comparisons and products, 1 truncation.
    Opens: as `curve`, `is_negative`, `bilinear`, `truncate`.
    """
    top = Lines.over(SquareRoot(), upper, x.scale, segments)
    cuts = list(dict.fromkeys(max(top.bits - 6 * level, segments) for level in range(levels)))
    lookups = [curve(session, x, replace(top, bits=bits)) for bits in cuts]
    if len(cuts) == 1:
        return (yield from truncate_to(session, (yield from lookups[0]), x.scale))
    limits = np.array([1 << (bits - 1) for bits in cuts[1:]], np.int64)
    gaps = x.integers().reshape(*x.shape, 1) - limits
    *values, below = yield from together(*lookups, is_negative(session, gaps, width=top.bits + 1))
    steps = stack([fine - coarse for coarse, fine in itertools.pairwise(values)], axis=-1)
    chosen = yield from product(session, below, steps)
    return (yield from truncate_to(session, values[0] + chosen.sum(axis=-1), x.scale))


def square_root_newton(
    session: Session, x: Share, *, upper: float, lower: float, segments: int = 9, iterations: int = 2
) -> Rounds[Share]:
    """[sqrt(x)] on [lower, upper], lower > 0, through 1 / sqrt(x): y (3 - x y^2) / 2 from a table's start, then x y.

    From:  Newton's iteration; docs/protocol-book.md, Functions by iteration.
    Needs: 0 < lower <= x <= upper.
    Error: relative 3/2 e^2 an iteration for the table's relative error e, plus rounding.
    Cost:  2 + 6 rounds an iteration + 2.
    Opens: as `curve`, `bilinear`, `truncate`.
    """
    f = x.scale
    y = yield from curve(session, x, Lines.over(InverseSquareRoot(lower), upper, x.scale, segments))
    y = yield from truncate_to(session, y, f)
    for _ in range(iterations):
        y2 = yield from square(session, y)
        y2 = yield from truncate(session, y2, f)
        xy2 = yield from product(session, x, y2)
        xy2 = yield from truncate(session, xy2, f)
        y = yield from product(session, y, 3.0 - xy2)
        y = (yield from truncate(session, y, f + 1)).at_scale(f)  # one bit more than its surplus: halved
    root = yield from product(session, x, y)
    return (yield from truncate(session, root, f))


def square_root_helba(session: Session, x: Share, *, upper: float = 1.0, iterations: int = 10) -> Rounds[Share]:
    """[sqrt(x)] on [0, upper] by the iteration HELBA uses (its Proposition 4; Wilkes 1951).

        a_0 = x, b_0 = x - 1;   a <- a (1 - b / 2),   b <- b^2 (b - 3) / 4        for x in [0, 1]

    From:  HELBA, Proposition 4; docs/protocol-book.md, Functions by iteration.
    Needs: 0 <= x <= upper.
    Error: below sqrt(upper) (1 - x / (4 upper))^(2^iterations), plus rounding.
    Cost:  4 rounds an iteration, and 2 when upper is not 1: x is divided by it, and a multiplied by its root.
    Opens: as `bilinear`, `truncate`.
    """
    f = x.scale
    a = x if upper == 1.0 else (yield from truncate(session, x.times(1.0 / upper, bits=FRACTION_BITS), FRACTION_BITS))
    b = a - 1.0
    for _ in range(iterations):
        half_b = b.at_scale(f + 1)
        ab, bb = yield from together(product(session, a, 1.0 - half_b), square(session, b))
        a, bb = yield from together(truncate(session, ab, f + 1), truncate(session, bb, f))
        cubic = yield from product(session, bb, b - 3.0)
        b = (yield from truncate(session, cubic, f + 2)).at_scale(f)  # two bits more: divided by 4
    return (
        a
        if upper == 1.0
        else (yield from truncate(session, a.times(math.sqrt(upper), bits=FRACTION_BITS), FRACTION_BITS))
    )

"""The inverse of a positive definite matrix, by products alone."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import packing
from ..bilinear import COMMUTING
from ..errors import RangeError
from ..ring import VALUE_BITS
from ..rounds import Rounds
from ..session import Session
from ..share import Share
from .arrange import concat, pack, unpack
from .products import bilinear, quadratic
from .truncate import truncate

_FINE, _FACTOR = 24, 8  # fraction bits of matrices on the way, where there is room for more than W's; and of q


class InverseSteps(NamedTuple):
    """fine: fraction bits of X and M.  start: h, a multiple of 2^-fine.  factors: q of each step."""

    fine: int
    start: float
    factors: tuple[float, ...]


@lru_cache(maxsize=64)
def inverse_steps(bits: int, least: float, bound: float) -> InverseSteps:
    """Of `inverse` at `bits` fraction bits: as many steps as bring all eigenvalues of M to 1 within 2^-bits."""
    if not 0.0 < least <= bound < math.inf:
        raise RangeError(f"the eigenvalues of a matrix lie between {least:g} and {bound:g}: both must be positive")
    room = (VALUE_BITS - 1 - _FACTOR - max(0, math.ceil(-math.log2(least)))) // 2
    fine = min(max(bits, _FINE), room)
    start = math.floor(2.0 / (least + bound) * 2.0**fine) * 2.0**-fine
    if bits > fine or start == 0.0:
        raise RangeError(
            f"{bits} fraction bits do not hold a matrix with eigenvalues from {least:g} to {bound:g} and its inverse: "
            "use fewer of them, or scale the matrix"
        )
    low, high, factors = least * start, bound * start, [1.0]
    while (low := min(low * (2.0 - low), high * (2.0 - high))) < 1.0 - 2.0**-bits or len(factors) < 2:
        high = math.floor(2.0 / (1.0 + low) * 2.0**_FACTOR) * 2.0**-_FACTOR  # below 2
        low, factors = low * high, [high, *factors]
    return InverseSteps(fine, start, (*reversed(factors[:-1]), 1.0))


def inverse(session: Session, w: Share, *, least: float, bound: float) -> Rounds[Share]:
    """[W^-1] for symmetric positive definite W by the coupled Newton iteration (HELBA, Proposition 2), scaled.

        X = h I,  M = h W;     X <- q X (2 I - M),   M <- q M (2 I - M)        h = 2 / (l + c),  l <= W <= c

    M = W X throughout.  An eigenvalue m of M becomes q (1 - (1 - m)^2), and the public q puts 1 in the middle of those
    that there may be: so a small one grows almost by 4, where q = 1 would make it grow by 2, and near 1 its distance
    to 1 is squared.  In the last step q is 1.  All matrices are polynomials in W: they commute and are symmetric, so
    their upper triangles are enough.  The first X is public.

    From:  HELBA, Proposition 2; docs/protocol-book.md, Functions by iteration.
    Needs: l <= W <= c as a quadratic form, of which the upper triangle is read; at most 26 fraction bits, fewer where l
           is below 1/2.
    Error: 2^-f / l by the iteration; by rounding about c / l^2 times 2^-24, and 2^-f.
    Cost:  1 + 2 k rounds for the k of `inverse_steps`; with T = D (D + 1) / 2, 8 T (4 k - 1) bytes per peer and
           T (40 k - 16) for party 0 (4 T (2 k - 1) more beyond 24 fraction bits).
    Opens: as `bilinear`, `quadratic`, `truncate`.
    """
    if w.ndim < 2 or w.shape[-1] != w.shape[-2]:
        raise TypeError(f"an inverse needs square matrices in the last two axes, these are {w.shape}")
    f, dim = w.scale, w.shape[-1]
    fine, start, (first, *between, _) = inverse_steps(f, least, bound)
    twice = 2.0 * packing.pack(np.broadcast_to(np.eye(dim), w.shape))[..., None, :]
    m = yield from truncate(session, pack(w)[..., None, :].times(start, bits=fine), f)
    m2 = yield from quadratic(session, COMMUTING, m)
    both = concat([(-m + twice).times(start, bits=fine), m.times(2.0, bits=fine) - m2], axis=-2)
    both = yield from truncate(session, both.times(first, bits=_FACTOR), fine + _FACTOR)
    for factor in between:
        products = yield from quadratic(session, COMMUTING, both)
        both = both.times(2.0, bits=fine) - products
        both = yield from truncate(session, both.times(factor, bits=_FACTOR), fine + _FACTOR)
    x, m = both[..., :1, :], both[..., 1:, :]
    x = x.times(2.0, bits=fine) - (yield from bilinear(session, COMMUTING, x, m))
    x = yield from truncate(session, x, 2 * fine - f)
    return unpack(x[..., 0, :], dim)

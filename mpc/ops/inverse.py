"""The inverse of a positive definite matrix, by products alone."""

from __future__ import annotations

import numpy as np

from ..errors import RangeError
from ..rounds import Rounds
from ..session import Session
from ..share import Share
from .arrange import concat
from .products import matmul
from .truncate import truncate


def inverse(session: Session, w: Share, *, bound: float, iterations: int = 16) -> Rounds[Share]:
    """[W^-1] for symmetric positive definite W by the coupled Newton iteration (HELBA, Proposition 2).

        X_0 = I / c,  M_0 = W / c;     X <- X (2 I - M),   M <- M (2 I - M)        c = bound >= the largest eigenvalue

    X_k M_0^-1 ... keep M_k = W X_k, and M -> I quadratically: after k steps an eigenvalue l of W is off by
    (1 - l / c)^(2^k).  X and M are stacked, so a step is one product.

    From:  HELBA, Proposition 2; docs/protocol-book.md, Functions by iteration.
    Needs: 0 < W <= bound as a quadratic form; entries of W^-1 below 2^(62 - 2 f).
    Cost:  1 + 2 rounds a step; a step is one 2D x D times D x D product and 2 D^2 truncations.
    Opens: as `bilinear`, `truncate`.
    """
    if w.ndim < 2 or w.shape[-1] != w.shape[-2]:
        raise TypeError(f"an inverse needs square matrices in the last two axes, these are {w.shape}")
    if bound <= 0 or iterations < 1:
        raise RangeError(f"bound {bound:g} and iterations {iterations} must be positive")
    f, dim = w.scale, w.shape[-1]
    if bound >= 2.0**f:
        raise RangeError(f"1 / {bound:g} is 0 at {f} fraction bits: use more of them, or scale the matrix down")
    identity = np.broadcast_to(np.eye(dim), w.shape)
    m = yield from truncate(session, w.times(1.0 / bound, bits=f), f)
    x = session.constant(identity / bound, f)
    for _step in range(iterations):
        factor = session.constant(2.0 * identity, f) - m
        both = yield from matmul(session, concat([x, m], axis=-2), factor)
        both = yield from truncate(session, both, f)
        x, m = both[..., :dim, :], both[..., dim:, :]
    return x

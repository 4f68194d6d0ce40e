"""A secret draw from secret weights."""

from __future__ import annotations

import numpy as np

from ..correlations import UniformNumber
from ..errors import RangeError
from ..rounds import Rounds
from ..session import Session
from ..share import Share
from .products import product
from .sign import Compare, is_negative


def draw(
    session: Session,
    weights: Share,
    *,
    weight_bits: int = 30,
    coin_bits: int = 30,
    how: Compare = Compare.TABLES,
) -> Rounds[Share]:
    """[one-hot of i with probability weight_i / total], over the last axis.

        u uniform in [0, 2^c), dealt;   C_i = weight_0 + ... + weight_i
        b_i = [u total < C_i 2^c]       0 0 1 1 1: the first 1 is the drawn one; b of the last is 1
        o_i = b_i - b_(i-1)

    From:  docs/protocol-book.md, Argmax.
    Needs: weights >= 0, not all 0, total < 2^weight_bits as a word; weight_bits + coin_bits <= 62.  If all are 0, the
           last is drawn.
    Error: each probability is off by less than 2^-coin_bits.
    Cost:  1 + 3 rounds by tables; 1 product, A - 1 comparisons of weight_bits + coin_bits + 1 bits.
    Opens: as product and comparison.
    """
    width = weight_bits + coin_bits + 1
    if width > 63 or coin_bits < 1 or weight_bits < 1:
        raise RangeError(f"weights of {weight_bits} bits and a coin of {coin_bits} need {width} bits of 63: lower one")
    if weights.ndim < 1:
        raise TypeError("a draw runs over the last axis: these weights have none")
    if weights.shape[-1] == 1:
        return Share(session, session.public(np.ones(weights.shape, np.uint64)), 0)
    running = weights.integers().cumsum(axis=-1)
    (u,) = session.draw(UniformNumber(weights.shape[:-1], coin_bits))
    point = yield from product(session, Share(session, u, 0), running[..., -1])
    gap = point.reshape(*point.shape, 1) - running[..., :-1] * (1 << coin_bits)
    below = yield from is_negative(session, gap, width=width, how=how)
    one = session.public(np.ones((*point.shape, 1), np.uint64))
    zero = np.zeros_like(one)
    steps = np.concatenate([below.words, one], axis=-1) - np.concatenate([zero, below.words], axis=-1)
    return Share(session, steps, 0)

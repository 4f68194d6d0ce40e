"""Division by a power of two: by a coin, to nearest, and as published; and the wrap count that this one stands on."""

from __future__ import annotations

import numpy as np

from ..correlations import Correlation, SignTables, TruncationMask, WrapMask
from ..errors import RangeError
from ..rounds import Open, Rounds
from ..session import Session
from ..share import Share
from .sign import is_negative

_MIDDLE = np.uint64(1 << 62)


def truncate(session: Session, x: Share, bits: int) -> Rounds[Share]:
    """[y] = [x / 2^bits], rounded down or up by an unbiased coin, and `bits` fewer fraction bits.

        z  = open(x + 2^62 + r)                                 r uniform in Z_2^64
        y  = (z >> f) - [r >> f] + (1 - z_63) 2^(64-f) [r_63] - 2^(62-f)

    x + 2^62 lies in [0, 2^63), so the sum wraps exactly when r has its top bit and z has not: the third term
    puts back what the wrap took.  No failure probability, for any number of parties.

    From:  docs/protocol-book.md, Exact truncation.
    Needs: |x| < 2^62 as a word; 1 <= bits <= 62.
    Error: |y - x / 2^bits| < 1 unit in the last place, mean 0.
    Cost:  1 round; 8 |x| bytes per peer; 1 truncation mask, 12 |x| bytes for party 0 (16 |x| beyond 32 bits).
    Opens: z, uniform.
    """
    _check(bits)
    r, high, top = session.draw(TruncationMask(x.shape, bits))
    z = yield Open(session.plus(x.wide() + r, _MIDDLE))
    f, rest = np.uint64(bits), np.uint64(64 - bits)
    wrapped = (np.uint64(1) - (z >> np.uint64(63))) * (top.astype(np.uint64) << rest)
    y = session.plus(wrapped - high, (z >> f) - np.uint64(1 << (62 - bits)))
    return Share(session, y, max(x.scale - bits, 0))


def truncate_to(session: Session, x: Share, scale: int) -> Rounds[Share]:
    """[x] with `scale` fraction bits: as `truncate`, or no round where it has no more of them."""
    if x.scale <= scale:
        return x.rescale(scale)
    return (yield from truncate(session, x, x.scale - scale))


def round_off(session: Session, x: Share, bits: int) -> Rounds[Share]:
    """[y] = [x / 2^bits] to the nearest integer, a tie upwards, and `bits` fewer fraction bits: for what is revealed.

        h = x + 2^(bits-1),   [t] = truncate(h),   [y] = [t] - [h - 2^bits t < 0]

    `truncate` gives floor(h / 2^bits) or, by its coin, 1 more; then 2^bits t lies above h, and a comparison tells.  So
    y = floor(x / 2^bits + 1/2) follows from x alone, and says no more of x than itself.

    From:  docs/protocol-book.md, Rounding to nearest.
    Needs: |x| + 2^(bits-1) < 2^62 as a word; 1 <= bits <= 62.
    Cost:  4 rounds; `truncate` and then `sign_by_tables` at width bits + 1: `rounding_items`.
    Opens: as `truncate` and `sign_by_tables`.
    """
    _check(bits)
    h = Share(session, session.plus(x.words, np.uint64(1 << (bits - 1))), x.scale)
    t = yield from truncate(session, h, bits)
    rest = Share(session, h.words - (t.words << np.uint64(bits)), 0)
    return t - (yield from is_negative(session, rest, width=bits + 1)).at_scale(t.scale)


def rounding_items(shape: tuple[int, ...], bits: int) -> tuple[Correlation, ...]:
    """What `round_off` draws, in order."""
    return TruncationMask(shape, bits), SignTables(shape, bits + 1)


def wraps(session: Session, x: Share, *, eta: bool = True) -> Rounds[Share]:
    """[theta]: how often the signed shares of x wrap around, x = sum of shares - theta 2^64.

    Algorithm 3 of Hannun et al., "Privacy-preserving contextual bandits".  With beta_p the wrap of party p's own
    x_p + r_p, theta_z the wraps of the opened shares z_p, and eta = 1, 0, -1 the wrap of x + r itself:

        theta_x = theta_z + sum_p beta_p - theta_r - eta

    The publication leaves eta out and is wrong with probability |x| / 2^64 per value; so is eta=False.  With
    eta, its sign follows from the quarter z lies in and the dealt sign of r.

    From:  docs/protocol-book.md, The published wrap count.
    Needs: |x| < 2^62 as a word.
    Cost:  1 round; 8 |x| bytes per peer; 1 wrap mask, 16 |x| bytes for party 0.
    Opens: each party's z_p = x_p + r_p, each uniform.
    """
    r, theta_r, negative = session.draw(WrapMask(x.shape))
    z_p = x.wide() + r
    z_each = yield Open(z_p, apart=True)
    theta = session.public(wrap_count(z_each)) + _pair_wraps(x.words, r, z_p) - theta_r
    if eta:
        z = z_each.sum(axis=0, dtype=np.uint64).view(np.int64)
        lowest, highest = z < -(1 << 62), z >= 1 << 62
        low, high = lowest.astype(np.uint64), highest.astype(np.uint64)
        theta = theta - (session.public(low) - low * negative) + high * negative
    return Share(session, theta, 0)


def truncate_published(session: Session, x: Share, bits: int, *, eta: bool = False) -> Rounds[Share]:
    """[x / 2^bits] as CrypTen publishes it: each party divides its share, the wrap count mends the sum.

        y_p = floor(x_p / 2^f),  y = sum y_p - theta_x 2^(64-f)

    From:  Hannun et al., "Privacy-preserving contextual bandits"; docs/protocol-book.md, The published wrap count.
    Needs: |x| < 2^62 as a word.  Without eta the result is off by 2^(64-f) with probability |x| / 2^64.
    Error: otherwise at most N units in the last place, biased downwards by N / 2 of them.
    Cost:  as `wraps`.
    Opens: as `wraps`.
    """
    _check(bits)
    theta = yield from wraps(session, x, eta=eta)
    y = (x.words.view(np.int64) >> np.int64(bits)).view(np.uint64) - (theta.words << np.uint64(64 - bits))
    return Share(session, y, max(x.scale - bits, 0))


def wrap_count(shares: np.ndarray) -> np.ndarray:
    """How often signed words wrap when they are added along axis 0: the carry of the 128-bit sum."""
    signed = shares.view(np.int64)
    total = np.zeros(shares.shape[1:], np.int64)
    count = np.zeros(shares.shape[1:], np.uint64)
    for part in signed:
        new = total + part
        count += ((total >= 0) & (part >= 0) & (new < 0)).astype(np.uint64)
        count -= ((total < 0) & (part < 0) & (new >= 0)).astype(np.uint64)
        total = new
    return count


def _pair_wraps(x: np.ndarray, r: np.ndarray, z: np.ndarray) -> np.ndarray:
    """beta_p for each hosted party: the wrap of one signed addition."""
    sx, sr, sz = x.view(np.int64), r.view(np.int64), z.view(np.int64)
    up = ((sx >= 0) & (sr >= 0) & (sz < 0)).astype(np.uint64)
    down = ((sx < 0) & (sr < 0) & (sz >= 0)).astype(np.uint64)
    return up - down


def _check(bits: int) -> None:
    if not 1 <= bits <= 62:
        raise RangeError(f"truncation drops 1 to 62 bits, not {bits}")

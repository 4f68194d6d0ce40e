"""XOR shares: conjunction, addition, and the way to and from additive shares."""

from __future__ import annotations

import numpy as np

from ..bilinear import AND
from ..correlations import AndMask, BitMask, SharedBits
from ..rounds import Open, Rounds
from ..session import Session
from ..share import BinaryShare, Share
from .arrange import stack


def conjunction(session: Session, x: BinaryShare, y: BinaryShare) -> Rounds[BinaryShare]:
    """<x & y>, bitwise, with broadcasting: Beaver's product over GF(2), one per bit.

        d = open(x ^ a),  e = open(y ^ b)         for dealt a, b, c = a & b
        z = c ^ (d & b) ^ ((a ^ d) & e)           where the public d is party 0's to add

    From:  Beaver, CRYPTO '91; docs/protocol-book.md, Products.
    Needs: equal widths.
    Cost:  1 round; |x| + |y| words per peer; 1 AND mask, |z| words for party 0.
    Opens: d and e, uniform.
    """
    if x.width != y.width:
        raise TypeError(f"widths {x.width} and {y.width} do not meet in an AND")
    a, b, c = session.draw(AndMask(x.shape, y.shape, x.width))
    d, e = yield Open(x.words ^ a, x.width, xor=True), Open(y.words ^ b, x.width, xor=True)
    a_d = a ^ session.public(d)
    left = AND.hosted(d, b, x_hosted=False, y_hosted=True)
    right = AND.hosted(a_d, e, x_hosted=True, y_hosted=False)
    return BinaryShare(session, c ^ left ^ right, x.width)


def add_binary(session: Session, x: BinaryShare, y: BinaryShare) -> Rounds[BinaryShare]:
    """<x + y mod 2^w> by the parallel-prefix adder of Kogge and Stone.

    From:  Kogge and Stone's adder, on shared bits; docs/protocol-book.md, Conversions.
    Needs: equal shapes and widths w.
    Cost:  1 + ceil(log2 w) rounds; 2 words, then 3 words a level (the last level 2), per element and peer;
           an AND mask a round, 1 word, then 2 a level (the last 1), for party 0.
    Opens: as `conjunction`.
    """
    generate = yield from conjunction(session, x, y)
    return (yield from _carry(session, generate, x ^ y, carry_in=False))


def to_binary(session: Session, x: Share) -> Rounds[BinaryShare]:
    """<x> from [x]: x = z + ~r + 1, where z is opened and r is dealt in both kinds.

        z = open(x + r),  <x> = z + <~r> + 1      the adder's first level is local, for z is public

    From:  docs/protocol-book.md, Conversions.
    Needs: nothing; the whole word is converted, two's complement.
    Cost:  1 + 6 rounds; 8 bytes, then 24 bytes a level (the last level 16), per element and peer; 1 bit mask and 6 AND
           masks, 96 bytes an element for party 0.
    Opens: z, uniform; then as `conjunction`.
    """
    r, bits = session.draw(BitMask(x.shape))
    z = yield Open(x.wide() + r)
    not_r = ~BinaryShare(session, bits, 64)
    return (yield from _carry(session, not_r & z, not_r ^ z, carry_in=True))


def to_arithmetic(session: Session, x: BinaryShare) -> Rounds[Share]:
    """[x] from <x>: each bit is masked by a dealt bit that is shared both ways.

        v = open(x ^ m),  [x] = sum_i 2^i (v_i + [m_i] - 2 v_i [m_i])

    From:  docs/protocol-book.md, Conversions.
    Needs: nothing; x is taken as an unsigned w-bit number, mod 2^64.
    Cost:  1 round; 1 word per element and peer; w shared bits, 8 w bytes an element for party 0.
    Opens: v, uniform in Z_2^w.
    """
    m, each = session.draw(SharedBits(x.shape, x.width))
    v = yield Open(x.words ^ m, x.width, xor=True)
    places = np.arange(x.width, dtype=np.uint64)
    bit = (v.astype(np.uint64)[..., None] >> places) & np.uint64(1)
    flip = np.uint64(1) - (bit << np.uint64(1))  # 1 - 2 v_i as a ring element
    total = ((session.public(bit) + each * flip) << places).sum(axis=-1, dtype=np.uint64)
    return Share(session, total, 0)


def _carry(session: Session, g: BinaryShare, p: BinaryShare, *, carry_in: bool) -> Rounds[BinaryShare]:
    """The sum from generate and propagate bits, disjoint: s = p ^ (carries << 1).

    (g, p)_i takes in (g, p)_(i-d) for d = 1, 2, 4, ...:  g = g ^ (p & g_(i-d)),  p = p & p_(i-d).
    A carry into bit 0 is a generate where bit 0 propagates.
    """
    first = p
    if carry_in:
        g = g ^ (p & 1)
    width, distance = g.width, 1
    while distance < width:
        last = 2 * distance >= width
        shifted_p = p << distance
        pairs = [g << distance] if last else [g << distance, shifted_p]
        both = yield from conjunction(session, p, stack(pairs))
        g = g ^ both[0]
        p = p if last else both[1]
        distance *= 2
    carries = g << 1
    total = first ^ carries
    return total ^ 1 if carry_in else total

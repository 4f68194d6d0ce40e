"""Bilinear products of shares, after Beaver, "Efficient multiparty protocols using circuit randomization", CRYPTO '91.

A product of scales s and t has scale s + t: truncate when the program says so, not after each product.
"""

from __future__ import annotations

from functools import lru_cache

from ..bilinear import MATMUL, MULTIPLY, TRIANGLE, Bilinear
from ..correlations import ProductMask, SquareMask
from ..errors import RangeError
from ..ring import VALUE_BITS
from ..rounds import Open, Rounds
from ..session import Session
from ..share import Share


def bilinear(session: Session, op: Bilinear, x: Share, y: Share) -> Rounds[Share]:
    """[z] = [op(x, y)] for a map that is linear in each operand.

        d = open(x - a),  e = open(y - b)         for dealt a, b, c = op(a, b)
        z = c + op(d, b) + op(a + d, e)           where the public d is party 0's to add

    Each operand is masked once, never its broadcast copy: scaling A x 1 x 1 times D x D opens A + D^2 words.

    From:  Beaver, CRYPTO '91; docs/protocol-book.md, Products.
    Needs: |op(x, y)| < 2^62 as words; scales that add up to at most 62.
    Cost:  1 round; 8 (|x| + |y|) bytes per peer; 1 product mask, 8 |z| bytes for party 0.
    Opens: d and e, uniform.
    """
    scale = _scale(x, y)
    a, b, c = session.draw(ProductMask(op, x.shape, y.shape))
    d, e = yield Open(x.wide() - a), Open(y.wide() - b)
    a_d = session.plus(a, d)
    z = c + op.hosted(d, b, x_hosted=False, y_hosted=True) + op.hosted(a_d, e, x_hosted=True, y_hosted=False)
    return Share(session, z, scale)


def product(session: Session, x: Share, y: Share) -> Rounds[Share]:
    """[x * y], elementwise with broadcasting.  Needs, Cost and Opens as `bilinear`."""
    return (yield from bilinear(session, MULTIPLY, x, y))


def matmul(session: Session, x: Share, y: Share) -> Rounds[Share]:
    """[x @ y], with batch axes in front.  Needs, Cost and Opens as `bilinear`."""
    return (yield from bilinear(session, MATMUL, x, y))


def einsum(session: Session, spec: str, x: Share, y: Share) -> Rounds[Share]:
    """[einsum(spec, x, y)], axes named by letters other than P.  Needs, Cost and Opens as `bilinear`.

    Behind "sym:", x is packed: a symmetric matrix as its upper triangle, and any rows behind it (`pack`).
    """
    return (yield from bilinear(session, _einsum(spec), x, y))


@lru_cache(maxsize=1024)
def _einsum(spec: str) -> Bilinear:
    return Bilinear(spec)


def outer(session: Session, x: Share, y: Share) -> Rounds[Share]:
    """[x y'] over the last axes.  Needs, Cost and Opens as `bilinear`."""
    return (yield from product(session, x.reshape(*x.shape, 1), y.reshape(*y.shape[:-1], 1, y.shape[-1])))


def square(session: Session, x: Share) -> Rounds[Share]:
    """[x^2].

        d = open(x - a),  z = c + 2 d a + d^2     for dealt a, c = a^2

    From:  Beaver, CRYPTO '91, with one mask for both operands; docs/protocol-book.md, Products.
    Needs: |x^2| < 2^62 as words; twice the scale at most 62.
    Cost:  1 round; 8 |x| bytes per peer; 1 square mask, 8 |x| bytes for party 0.
    Opens: d, uniform.
    """
    scale = _scale(x, x)
    a, c = session.draw(SquareMask(x.shape))
    d = yield Open(x.wide() - a)
    return Share(session, session.plus(c + (d + d) * a, d * d), scale)


def quadratic(session: Session, op: Bilinear, x: Share) -> Rounds[Share]:
    """[op(x, x)] for a map that is linear in each operand.

        d = open(x - a),  z = c + op(d, a) + op(a + d, d)     for dealt a, c = op(a, a)

    From:  Beaver, CRYPTO '91, with one mask for both operands; docs/protocol-book.md, Products.
    Needs: |op(x, x)| < 2^62 as words; twice the scale at most 62.
    Cost:  1 round; 8 |x| bytes per peer; 1 square mask, 8 |z| bytes for party 0.
    Opens: d, uniform.
    """
    scale = _scale(x, x)
    a, c = session.draw(SquareMask(x.shape, op))
    d = yield Open(x.wide() - a)
    left = op.hosted(d, a, x_hosted=False, y_hosted=True)
    return Share(session, c + left + op.hosted(session.plus(a, d), d, x_hosted=True, y_hosted=False), scale)


def outer_square(session: Session, x: Share) -> Rounds[Share]:
    """[x x'] over the last axis, as its upper triangle (`unpack`): 4 D (D + 1) bytes for party 0 for a vector of D.

    Needs, Cost and Opens as `quadratic`.
    """
    return (yield from quadratic(session, TRIANGLE, x))


def _scale(x: Share, y: Share) -> int:
    if not isinstance(x, Share) or not isinstance(y, Share):
        raise TypeError("a product of shares takes two arithmetic shares: multiply by a public value with '*'")
    scale = x.scale + y.scale
    if scale > VALUE_BITS:
        raise RangeError(f"the product would have {scale} fraction bits of {VALUE_BITS}: truncate an operand first")
    return scale

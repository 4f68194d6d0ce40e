"""The sign of a difference, in two ways that agree: by tables (few rounds) and by a circuit (few bytes)."""

from __future__ import annotations

from enum import Enum

import numpy as np

from ..correlations import EqualTables, SharedBits, SignBits, SignTables
from ..errors import RangeError
from ..ring import dtype_for, mask, spread_bits
from ..rounds import Open, Rounds
from ..session import Session
from ..share import BinaryShare, Share
from .binary import conjunction
from .lookup import gather

_PAIR_PLACES = np.array([0x03, 0x0C, 0x30, 0xC0], np.uint8)  # where chunk k of a group holds its (less, equal)


class Compare(Enum):
    """How a sign is computed."""

    TABLES = "tables"
    CIRCUIT = "circuit"


def is_negative(session: Session, d: Share, *, width: int = 64, how: Compare = Compare.TABLES) -> Rounds[Share]:
    """[d < 0] as 0 or 1.

    Needs: |d| < 2^(width - 1) as a word; 2 <= width <= 64.
    Cost and Opens: as `sign_by_tables` or `sign_by_circuit`.
    """
    if how is Compare.TABLES:
        return (yield from sign_by_tables(session, d, width=width))
    return (yield from sign_by_circuit(session, d, width=width))


def less(session: Session, x: Share, y: Share, *, width: int = 64, how: Compare = Compare.TABLES) -> Rounds[Share]:
    """[x < y] as 0 or 1.  Needs: |x - y| < 2^(width - 1) as a word.  Cost, Opens: as `is_negative`."""
    return (yield from is_negative(session, x - y, width=width, how=how))


def sign_by_tables(session: Session, d: Share, *, width: int = 64) -> Rounds[Share]:
    """[d < 0] in 3 rounds for any number of parties and any width w.

        z = open(d + r mod 2^w)
        for each byte k below the top bit:   ([z_k < r_k], [z_k = r_k]) from a masked table at z_k;   open
        for each group of 4 bytes:           the same pair of the group from a table at the 8 opened bits;   open
        t = r_(w-1) ^ [z_low < r_low]        from the last table, additively shared;   [d < 0] = z_(w-1) ^ t

    For d = z - r mod 2^w, and its top bit is z_(w-1) ^ r_(w-1) ^ borrow.

    From:  docs/protocol-book.md, Sign and comparison.
    Needs: |d| < 2^(w - 1) as a word.
    Cost:  3 rounds; per element and peer the narrowest word of w bits, then 1 byte a group, then 1 byte;
           1 sign table: 256 bytes a group, 128, and 8 2^(2 groups - 1) for party 0 (704 bytes at w > 33).
    Opens: z, uniform in Z_2^w; masked bits, uniform.
    """
    _check(width)
    item = SignTables(d.shape, width)
    groups = item.group_count
    r, chunks, group_tables, last = session.draw(item)

    z = yield Open(d.words.astype(r.dtype) + r, bits=width)
    z = z.astype(np.uint64)
    low = np.ascontiguousarray(z & mask(width - 1)).astype("<u8")
    at = low.reshape(*d.shape, 1).view(np.uint8)[..., : 4 * groups].reshape(*d.shape, groups, 4)
    entries = gather(chunks, at) & _PAIR_PLACES
    pairs = yield Open(np.bitwise_or.reduce(entries, axis=-1), bits=8, xor=True)

    nibbles = gather(group_tables, pairs & np.uint8(127))
    nibbles = nibbles >> ((pairs >> np.uint8(7)) << np.uint8(2))
    verdict = nibbles[..., 0] if groups == 1 else nibbles[..., 0] & np.uint8(1) | nibbles[..., 1] & np.uint8(6)
    index = yield Open(verdict, bits=item.last_bits, xor=True)

    t = gather(last, index)
    top = z >> np.uint64(width - 1)
    return Share(session, session.plus(t * (np.uint64(1) - top - top), top), 0)


def sign_by_circuit(session: Session, d: Share, *, width: int = 64) -> Rounds[Share]:
    """[d < 0] in 2 + ceil(log2(w - 1)) rounds and few bytes.

        z = open(d + r mod 2^w),  less_i = ~z_i & r_i,  equal_i = ~(z_i ^ r_i)       local: z is public
        level by level   (less, equal) = (less_hi ^ (equal_hi & less_lo), equal_hi & equal_lo)
        [d < 0] = z_(w-1) ^ r_(w-1) ^ less, made additive by a dealt bit

    r's bits are dealt with their places reversed (`ring.spread_bits`), so that neighbours lie in opposite halves of the
    word: a level joins the halves and the word shrinks by half.

    From:  docs/protocol-book.md, Sign and comparison.
    Needs: |d| < 2^(w - 1) as a word.
    Cost:  2 + L rounds, L = max(3, ceil(log2(w - 1))); per element and peer the narrowest word of w bits, three words
           of half the width a level (two on the last level), 1 byte at the end;
           1 sign mask, L AND masks, 1 shared bit: 36 bytes for party 0 at w = 64.
    Opens: z, uniform in Z_2^w; masked bits, uniform.
    """
    _check(width)
    item = SignBits(d.shape, width)
    r, low, top = session.draw(item)
    z = yield Open(d.words.astype(r.dtype) + r, bits=width)
    z = z.astype(np.uint64)

    bits = item.low_bits
    z_low = spread_bits(z & mask(width - 1), bits)
    r_low = BinaryShare(session, low, bits)
    less_, equal_ = r_low & ~z_low, ~(r_low ^ z_low)
    while bits > 1:
        bits //= 2
        dtype = dtype_for(bits)
        less_low, less_high = _halves(session, less_, bits, dtype)
        equal_low, equal_high = _halves(session, equal_, bits, dtype)
        pair = [less_low.words] if bits == 1 else [less_low.words, equal_low.words]
        both = yield from conjunction(session, equal_high, BinaryShare(session, np.stack(pair, axis=1), bits))
        less_ = less_high ^ both[0]
        equal_ = equal_ if bits == 1 else both[1]

    z_top = (z >> np.uint64(width - 1)).astype(np.uint8)
    negative = BinaryShare(session, top & np.uint8(1), 1) ^ less_ ^ z_top
    return (yield from bit_to_arithmetic(session, negative))


def bit_to_arithmetic(session: Session, bit: BinaryShare) -> Rounds[Share]:
    """[b] from <b>, one bit.  Cost: 1 round; 1 byte an element and peer; 1 shared bit.  Opens: b ^ m, uniform.

    From:  docs/protocol-book.md, Conversions.
    """
    m, each = session.draw(SharedBits(bit.shape, 1))
    v = yield Open(bit.words ^ m, bits=1, xor=True)
    v = v.astype(np.uint64)
    return Share(session, session.public(v) + each[..., 0] * (np.uint64(1) - v - v), 0)


def is_zero(session: Session, d: Share, *, width: int = 64) -> Rounds[Share]:
    """[d = 0 mod 2^width] as 0 or 1, by tables.

        z = open(d + r mod 2^w);   [z_k = r_k] for each byte, masked;   open;   "all equal" from a table

    From:  docs/protocol-book.md, Sign and comparison.
    Needs: 1 <= width <= 64; d is taken mod 2^width.
    Cost:  2 rounds; per element and peer the narrowest word of w bits, then 1 byte; 1 equality table:
           256 + 8 2^ceil(w / 8) bytes an element for party 0.
    Opens: z, uniform in Z_2^w; masked bits, uniform.
    """
    item = EqualTables(d.shape, width)
    r, chunks, last = session.draw(item)
    z = yield Open(d.words.astype(r.dtype) + r, bits=width)
    count = item.chunk_count
    at = z.astype("<u8").reshape(*d.shape, 1).view(np.uint8)[..., :count]
    places = (np.uint8(1) << np.arange(count, dtype=np.uint8)).astype(np.uint8)
    entries = np.take_along_axis(chunks, at.astype(np.intp)[None], axis=-1) & places
    index = yield Open(np.bitwise_or.reduce(entries, axis=-1), bits=count, xor=True)
    return Share(session, gather(last, index), 0)


def equal(session: Session, x: Share, y: Share, *, width: int = 64) -> Rounds[Share]:
    """[x = y] as 0 or 1.  Needs, Cost, Opens: as `is_zero` of x - y."""
    return (yield from is_zero(session, x - y, width=width))


def _halves(
    session: Session, x: BinaryShare, bits: int, dtype: np.dtype[np.generic]
) -> tuple[BinaryShare, BinaryShare]:
    """Lower and upper half of a 2 `bits`-bit word, each of `bits` bits."""
    words = x.words
    low = (words & words.dtype.type(mask(bits))).astype(dtype)
    high = (words >> words.dtype.type(bits)).astype(dtype)
    return BinaryShare(session, low, bits), BinaryShare(session, high, bits)


def _check(width: int) -> None:
    if not 2 <= width <= 64:
        raise RangeError(f"a comparison works in Z_2^w with w in [2, 64], not {width}")

"""The sign of a difference, in three ways that agree: by tables, by strings (few rounds), by a circuit (few bytes)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from ..chunks import Cut
from ..correlations import EqualTables, SharedBits, SignBits, SignStrings, SignTables
from ..errors import RangeError
from ..ring import dtype_for, mask, spread_bits
from ..rounds import Open, Rounds
from ..session import Session
from ..share import BinaryShare, Share
from .binary import conjunction
from .lookup import gather


class Compare(Enum):
    """How a sign is computed."""

    TABLES = "tables"
    STRINGS = "strings"
    CIRCUIT = "circuit"


def is_negative(
    session: Session, d: Share, *, width: int = 64, ring: int = 64, how: Compare = Compare.TABLES
) -> Rounds[Share]:
    """[d < 0] as 0 or 1, shared mod 2^ring.

    Needs: |d| < 2^(width - 1) as a word; 2 <= width <= 64; ring 8, 16 or 64.
    Cost and Opens: as `sign_by_tables`, `sign_by_strings` or `sign_by_circuit`.
    """
    if how is not Compare.CIRCUIT:
        by = sign_by_tables if how is Compare.TABLES else sign_by_strings
        return (yield from by(session, d, width=width, ring=ring))
    bit = yield from sign_by_circuit(session, d, width=width)
    return bit.mod(ring)


def less(
    session: Session, x: Share, y: Share, *, width: int = 64, ring: int = 64, how: Compare = Compare.TABLES
) -> Rounds[Share]:
    """[x < y] as 0 or 1.  Needs: |x - y| < 2^(width - 1) as a word.  Cost, Opens: as `is_negative`."""
    return (yield from is_negative(session, x - y, width=width, ring=ring, how=how))


def sign_by_tables(session: Session, d: Share, *, width: int = 64, ring: int = 64) -> Rounds[Share]:
    """[d < 0] mod 2^ring in 3 rounds for any number of parties and any width w.

        z = open(d + r mod 2^w)
        for each chunk k of 4 bits below the top:   [z_k <= r_k], [z_k < r_k], two bits of a dealt word, masked;   open
        for each group of chunks:                   [z = r], [z < r] of the group, the parity of those dealt bits that
                                                    the opened ones select, masked;   open
        t = r_(w-1) ^ [z_low < r_low]               from the last tables, shared mod 2^ring;   [d < 0] = z_(w-1) ^ t

    For d = z - r mod 2^w, and its top bit is z_(w-1) ^ r_(w-1) ^ borrow.

    From:  docs/protocol-book.md, Sign and comparison.
    Needs: |d| < 2^(w - 1) as a word; ring 8, 16 or 64.
    Cost:  3 rounds; per element and peer the narrowest words of w bits, of 2 n - 1 bits for n = ceil((w - 1) / 4)
           chunks and of 2 g - 1 for g <= 3 groups; 1 sign table: 2 n bytes, the words of the groups' coefficients, and
           ring / 8 (3 2^(g - 1) - 1) bytes for party 0: 61 at w = 64 and ring 8, 138 at ring 64 (`chunks.cut`).
    Opens: z, uniform in Z_2^w; masked bits, uniform.
    """
    words, item = d.wide(), SignTables(d.shape, width, ring)
    cut, axes = item.cut, d.ndim
    r, *dealt = session.draw(item)
    masks, chunks, *coefficients, last = [part.reshape(*part.shape[: part.ndim - axes], d.size) for part in dealt]

    z = yield Open(words.astype(r.dtype) + r, bits=width)
    z = z.reshape(-1)
    bits = (chunks >> cut.split(z)) & np.uint16(3)
    pairs = yield Open(cut.paired(bits) ^ masks, bits=cut.pair_bits, xor=True)
    verdicts = yield Open(_parities(pairs, (masks, *coefficients), cut), bits=cut.verdict_bits, xor=True)

    top = z >> z.dtype.type(width - 1)
    at = verdicts | top.astype(np.intp) << cut.verdict_bits
    t = (last * cut.readout.take(at, axis=1)).sum(axis=1, dtype=last.dtype)
    return Share(session, session.plus(t, top.astype(last.dtype)).reshape(-1, *d.shape), 0)


def _parities(pairs: np.ndarray, held: Sequence[np.ndarray], cut: Cut) -> np.ndarray:
    """Each group's (equal, less), masked, from the bits of the words held (hosted, n) that the opened pairs select."""
    at = cut.entries(pairs)
    counts = np.bitwise_count(cut.selections[0].take(at, axis=1) & held[0][:, None, None])  # masks: of all groups
    for words, table, groups in zip(held[1:], cut.selections[1:], cut.selected_by[1:], strict=True):
        counts[:, :, groups] += np.bitwise_count(table.take(at[groups], axis=1) & words[:, None, None])
    counts &= np.uint8(1)
    return np.bitwise_or.reduce(counts << cut.verdict_shifts, axis=(1, 2))


def sign_by_strings(session: Session, d: Share, *, width: int = 64, ring: int = 64) -> Rounds[Share]:
    """[d < 0] mod 2^ring in 2 rounds for any number of parties and any width w.

        z = open(d + r mod 2^w)
        for each chunk k below the top:   [z_k <= r_k], [z_k < r_k], two bits of a dealt string, masked;   open
        t = r_(w-1) ^ [z_low < r_low]     from the last tables, shared mod 2^ring;   [d < 0] = z_(w-1) ^ t

    From:  docs/protocol-book.md, Sign and comparison.
    Needs: |d| < 2^(w - 1) as a word; ring 8, 16 or 64.
    Cost:  2 rounds; per element and peer the narrowest words of w bits and of 2 n - 1 bits for n <= 8 chunks; 1 item of
           2^c / 8 bytes a chunk and ring / 8 (3 2^(n - 1) - 1) for party 0: 623 at w = 64 and ring 8 (`strings`).
    Opens: z, uniform in Z_2^w; masked bits, uniform.
    """
    words, item = d.wide(), SignStrings(d.shape, width, ring)
    cut, size = item.cut, d.size
    r, masks, strings, last = session.draw(item)
    z = yield Open(words.astype(r.dtype) + r, bits=width)
    z = z.reshape(-1)

    spots, more = cut.spots(z)
    own = np.arange(size)
    octets = strings.reshape(len(strings), -1).take((spots >> 3) + cut.string_bytes * own, axis=1)
    bits = (octets >> (spots & 7).astype(np.uint8)) & np.uint8(1)
    bits[:, 1] &= more
    bits[:, 0] ^= bits[:, 1]
    bits[:, 0, 0] = 0  # nobody asks whether the lowest chunk is equal
    dtype = cut.verdict_shifts.dtype
    pairs = np.bitwise_or.reduce(bits.astype(dtype) << cut.verdict_shifts, axis=(1, 2))
    verdicts = yield Open(pairs ^ masks.reshape(-1, size), bits=cut.verdict_bits, xor=True)

    places, counts = cut.readout(verdicts)
    top = (z >> z.dtype.type(width - 1)).astype(last.dtype)
    signs = counts.astype(last.dtype) * (last.dtype.type(1) - top - top)
    read = last.reshape(len(last), -1).take(places + cut.readings * own, axis=1)
    t = (read * signs).sum(axis=1, dtype=last.dtype)
    return Share(session, session.plus(t, top).reshape(-1, *d.shape), 0)


def sign_by_circuit(session: Session, d: Share, *, width: int = 64) -> Rounds[Share]:
    """[d < 0] mod 2^64 in 2 + ceil(log2(w - 1)) rounds and few bytes.

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
    z = yield Open(d.wide().astype(r.dtype) + r, bits=width)
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


def lift(session: Session, bit: Share) -> Rounds[Share]:
    """[b] mod 2^64 from [b] mod 2^8 or 2^16, a bit: its share's lowest bits are an XOR share of it.

    From:  docs/protocol-book.md, Conversions.
    Needs: b is 0 or 1; of another number the lowest bit is lifted.
    Cost, Opens: as `bit_to_arithmetic`.
    """
    lowest = (bit.words & bit.words.dtype.type(1)).astype(np.uint8)
    return (yield from bit_to_arithmetic(session, BinaryShare(session, lowest, 1)))


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
    z = yield Open(d.wide().astype(r.dtype) + r, bits=width)
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

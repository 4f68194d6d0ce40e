"""How a comparison is cut and joined: chunks of 4 bits, groups of chunks, and public tables that join them.

Knows bits; no share and no mask.  Of each chunk j the parties open whether z_j <= r_j and whether z_j < r_j, masked:
a pair of bits.  They read the tables here at what they opened, and the dealer at the masks.  With

    l_j = [z_j < r_j],  e_j = [z_j = r_j],    a_j, b_j their masks,    ol_j = l_j ^ a_j,  oe_j = e_j ^ b_j

a group of k chunks, lowest first, is less or equal by polynomials over GF(2) in what is opened:

    equal = prod_j (oe_j ^ b_j),      less = sum_i (ol_i ^ a_i) prod_(j > i) (oe_j ^ b_j)

Their coefficients are functions of masks alone: M_S = prod_(j in S) b_j, and C_T, what belongs to prod_(j in T) oe_j
where no ol is.  They are dealt as the bits of a few words.  So what a group's opened bits choose is a selection of
bits, and an output's share is the parity of the selected ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from .errors import RangeError
from .ring import dtype_for

CHUNK = 4
_LARGEST = 7  # chunks of a group: its tables have 2^14 entries
_MOST = 4  # groups


class _Term(NamedTuple):
    """A coefficient over all values of a group's masks, and where it is selected over all values of its opened bits.

    free: the mask bits whose sum it is, where it need not be dealt.  constant: it is 1.
    """

    value: np.ndarray
    equal: np.ndarray
    less: np.ndarray
    free: tuple[int, ...] = ()
    constant: bool = False


@dataclass(frozen=True)
class Cut:
    """The chunks of the low width - 1 bits in groups, lowest first, for a result mod 2^ring.

    Pairs of bits lie from the lowest chunk up, without the first bit of the lowest chunk: no one asks whether that is
    equal.  Verdicts are equal of the groups but the lowest, then less of all.
    """

    width: int
    ring: int
    groups: tuple[int, ...]

    @property
    def chunks(self) -> int:
        return sum(self.groups)

    @property
    def pair_bits(self) -> int:
        """What is opened of the chunks."""
        return 2 * self.chunks - 1

    @property
    def verdict_bits(self) -> int:
        """What is opened of the groups."""
        return 2 * len(self.groups) - 1

    @property
    def coefficient_words(self) -> tuple[int, ...]:
        """Bits of each word that holds dealt coefficients, a 1 among them."""
        bits = 1 + sum(3 * 2 ** (k - 1) - 2 - k if place else 2**k - 1 - k for place, k in enumerate(self.groups))
        return (*[64] * (bits // 64), *[bits % 64] * (bits % 64 > 0))

    @property
    def readings(self) -> int:
        """Entries of the last tables, one for each g groups: A of 2^(g-1), B_i of 2^(g-1-i)."""
        return 3 * 2 ** (len(self.groups) - 1) - 1

    @property
    def dealt_bytes(self) -> int:
        """For one comparison."""
        words = sum(dtype_for(bits).itemsize for bits in self.coefficient_words)
        return 2 * self.chunks + words + self.readings * self.ring // 8

    @cached_property
    def _shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the chunks begin in a word, and their pairs in the word of pairs: (chunks, 1) each."""
        chunk = np.arange(self.chunks)[:, None]
        return (CHUNK * chunk).astype(dtype_for(self.width)), (2 * chunk).astype(dtype_for(self.pair_bits))

    def split(self, words: np.ndarray) -> np.ndarray:
        """The chunks of n words: (chunks, n)."""
        low = words & words.dtype.type((1 << self.width - 1) - 1)
        return (low >> self._shifts[0]).astype(np.uint16) & np.uint16((1 << CHUNK) - 1)

    def paired(self, bits: np.ndarray) -> np.ndarray:
        """The pairs of bits of all chunks, (hosted, chunks, n), side by side in a word."""
        shifts = self._shifts[1]
        return np.bitwise_or.reduce(bits.astype(shifts.dtype) << shifts, axis=1) >> shifts.dtype.type(1)

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each group: the first of its opened bits, a mask as wide as they are, where its part of a table starts."""
        starts = np.cumsum([0, *(2 * k for k in self.groups)])[:-1]
        first = np.maximum(starts - 1, 0)
        sizes = np.array([1 << 2 * k - (place == 0) for place, k in enumerate(self.groups)])
        base = np.cumsum([0, *sizes])[:-1]
        dtype = dtype_for(self.pair_bits)
        return first.astype(dtype)[:, None], (sizes - 1).astype(dtype)[:, None], base.astype(np.intp)[:, None]

    def entries(self, pairs: np.ndarray) -> np.ndarray:
        """Where each group reads its tables: (groups, n) for pairs, or their masks, of n comparisons."""
        first, within, base = self._places
        return ((pairs.astype(first.dtype, copy=False) >> first) & within) + base

    @cached_property
    def _tables(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """`selections` and `coefficients`, all groups behind each other."""
        words = (self.pair_bits + self.verdict_bits, *self.coefficient_words)
        chosen: list[np.ndarray] = []
        values: list[np.ndarray] = []
        at, start, count = 1, 0, len(self.groups)
        for place, k in enumerate(self.groups):
            size = 1 << 2 * k - (place == 0)
            select, value = np.zeros((len(words), 8, 2, size), np.uint8), np.zeros((len(words), 8, size), np.uint8)
            for term in _terms(k, lowest=place == 0):
                spots = [(0, start + bit) for bit in term.free]
                if not spots:  # dealt, or the 1 in front
                    spots, at = [(1, 0)] if term.constant else [(1 + at // 64, at % 64)], at + (not term.constant)
                    _flip(value, *spots[0], term.value & (not term.constant or place == 0))
                for word, bit in spots:
                    _flip(select, word, bit, np.stack([term.equal, term.less]))
            own = self.pair_bits + np.array([place - 1, count - 1 + place])
            _flip(select[..., 1, :], 0, own[1], np.True_)
            if place:
                _flip(select[..., 0, :], 0, own[0], np.True_)
            else:
                select[:, :, 0] = 0  # nobody asks
            chosen.append(_words(select))
            values.append(_words(value))
            start += 2 * k - (place == 0)
        select, value = np.concatenate(chosen, axis=-1), np.concatenate(values, axis=-1)
        return (
            tuple(table.astype(dtype_for(bits)) for table, bits in zip(select, words, strict=True)),
            tuple(table.astype(dtype_for(bits)) for table, bits in zip(value[1:], words[1:], strict=True)),
        )

    @property
    def selections(self) -> tuple[np.ndarray, ...]:
        """Bits of the masks' word, and of each word of coefficients, for (equal, less) at each entry: (2, entries).

        The masks of the verdicts are selected along with the rest.
        """
        return self._tables[0]

    @cached_property
    def selected_by(self) -> tuple[slice, ...]:
        """The groups that have a part in each word of `selections`."""
        starts = [int(start) for start in self._places[2][:, 0]]
        ends = [*starts[1:], self.selections[0].shape[1]]
        found = []
        for table in self.selections:
            busy = [place for place, (a, b) in enumerate(zip(starts, ends, strict=True)) if table[:, a:b].any()]
            found.append(slice(busy[0], busy[-1] + 1))
        return tuple(found)

    @property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """Each word of coefficients at each entry: the words of all groups add up, by XOR."""
        return self._tables[1]

    @cached_property
    def verdict_shifts(self) -> np.ndarray:
        """Where (equal, less) of each group lie in the verdicts: (2, groups, 1)."""
        return verdict_shifts(len(self.groups))

    @cached_property
    def readout(self) -> np.ndarray:
        """What each entry of the last tables counts, 0, 1 or -1: (readings, 4^groups).

        Read at the verdicts, with the top bit of z above them, which turns all signs.
        """
        count = len(self.groups)
        at = np.arange(1 << 2 * count)
        opened = at & ((1 << count - 1) - 1)
        sign = 1 - 2 * (at >> 2 * count - 1)
        rows = [(np.arange(1 << count - 1)[:, None] == opened).astype(np.int64)]
        for i in range(count):
            less = (at >> (count - 1 + i)) & 1
            rows.append((np.arange(1 << count - 1 - i)[:, None] == opened >> i) * less)
        return (np.concatenate(rows) * sign).astype(dtype_for(self.ring))

    @cached_property
    def last(self) -> np.ndarray:
        """The last tables at each value of the verdicts' masks, r's top bit above them: (readings, 4^groups)."""
        masks = np.arange(1 << 2 * len(self.groups))
        tables = last_tables(len(self.groups), self.ring, masks, masks >> self.verdict_bits)
        return np.ascontiguousarray(tables.T)


def checked(width: int, ring: int) -> None:
    """Refuse what no comparison works in."""
    if not 2 <= width <= 64:
        raise RangeError(f"a comparison works in Z_2^w with w in [2, 64], not {width}")
    if ring not in (8, 16, 64):
        raise RangeError(f"a comparison's result is shared mod 2^8, 2^16 or 2^64, not mod 2^{ring}")


def verdict_shifts(count: int) -> np.ndarray:
    """Where (equal, less) of each of `count` parts lie in what is opened of them, the lowest part's equal not."""
    equal, less = np.maximum(np.arange(count) - 1, 0), np.arange(count) + count - 1
    return np.stack([equal, less]).astype(dtype_for(2 * count - 1))[..., None]


def last_starts(count: int) -> np.ndarray:
    """Where A and each B_i begin in the last tables of `count` parts."""
    return np.cumsum([0, 1 << count - 1, *(1 << count - 1 - i for i in range(count))])[: count + 1]


def last_tables(count: int, ring: int, masks: np.ndarray, top: np.ndarray) -> np.ndarray:
    """The last tables at n values of the verdicts' masks and of r's top bit: (n, readings).

        A = top + s sum_i a_i prod_(j > i) [oe_j != b_j],    B_i = s (1 - 2 a_i) prod_(j > i) [oe_j != b_j]

    s = 1 - 2 top: then top ^ less = A + sum_i ol_i B_i.  A at x counts the a_i above the highest place where x is not
    the complement of the masks of equal.
    """
    dtype, n, everyone = dtype_for(ring), np.arange(masks.size), (1 << count - 1) - 1
    masks = masks.astype(np.intp)
    right = ~masks & everyone  # the opened bits of equal where all are
    a = ((masks[:, None] >> (count - 1 + np.arange(count))) & 1).astype(dtype)
    above = np.zeros((masks.size, count + 1), dtype)
    above[:, :count] = np.cumsum(a[:, ::-1], axis=1, dtype=dtype)[:, ::-1]
    sign = (1 - 2 * top.astype(np.int64)).astype(dtype)[:, None]
    lengths = _lengths(count - 1).take(right, axis=0) + ((count + 1) * n)[:, None]
    out = np.zeros((masks.size, 3 * (everyone + 1) - 1), dtype)
    out[:, : everyone + 1] = top.astype(dtype)[:, None] + sign * above.reshape(-1).take(lengths)
    for i, start in enumerate(last_starts(count)[1:]):
        out[n, start + (right >> i)] = (sign * (dtype.type(1) - a - a))[:, i]
    return out


@lru_cache(maxsize=16)
def _lengths(bits: int) -> np.ndarray:
    """Bits of x ^ y without leading zeros, for all y and x."""
    numbers = np.arange(1 << bits)
    unlike = numbers[:, None] ^ numbers[None]
    return sum(((unlike >> k) > 0).astype(np.intp) for k in range(bits)) + np.zeros_like(unlike)


@lru_cache(maxsize=256)
def cut(width: int, ring: int) -> Cut:
    """The groups that take the fewest dealt bytes."""
    checked(width, ring)
    found = [Cut(width, ring, groups) for groups in _splits(-(-(width - 1) // CHUNK), _MOST)]
    return min(found, key=lambda one: (one.dealt_bytes, sum(4**k for k in one.groups), one.groups))


def _splits(chunks: int, most: int) -> Iterator[tuple[int, ...]]:
    """All ways to cut a row of chunks into at most so many groups."""
    if chunks <= _LARGEST:
        yield (chunks,)
    if most > 1:
        for first in range(1, min(_LARGEST, chunks - 1) + 1):
            for rest in _splits(chunks - first, most - 1):
                yield (first, *rest)


def _terms(k: int, *, lowest: bool) -> Iterator[_Term]:
    """All coefficients of a group: M_S, then C_T.  S and T are numbers whose bit j says that j is in it."""
    bits = np.arange(1 << 2 * k - lowest) << lowest
    second = [(bits >> 2 * j + 1 & 1).astype(bool) for j in range(k)]
    unlike = [(bits >> 2 * j & 1).astype(bool) ^ second[j] for j in range(k)]
    products, everyone = _products(unlike), (1 << k) - 1
    above = [everyone & ~((2 << i) - 1) for i in range(k)]
    none = np.zeros(bits.size, bool)
    for s in range(0, 1 << k, 1 + lowest):  # of the lowest group, no S with its lowest chunk: equal is not asked
        less = none.copy()
        for i in range(k):
            if not s & ~above[i]:
                less ^= second[i] & products[above[i] & ~s]
        free = tuple(2 * j + bit - lowest for j in range(k) if s == 1 << j for bit in (0, 1))
        yield _Term(products[s], products[everyone & ~s], less, free, constant=s == 0)
    for t in range(0, 1 << k, 2):
        value = none.copy()
        for i in range(k):
            if not t & ~above[i]:
                value ^= second[i] & products[above[i] & ~t]
        free = (1 - lowest,) if t == above[0] else ()
        yield _Term(value, none, products[t], free)


def _flip(octets: np.ndarray, word: int, bit: int, where: np.ndarray | np.bool_) -> None:
    """Turn a bit of a word over, its octets along axis 1."""
    octets[word, bit // 8] ^= where.astype(np.uint8) << np.uint8(bit % 8)


def _words(octets: np.ndarray) -> np.ndarray:
    """Words whose octets lie along axis 1, the lowest first."""
    return np.ascontiguousarray(np.moveaxis(octets, 1, -1)).view("<u8")[..., 0]


def _products(factors: list[np.ndarray]) -> list[np.ndarray]:
    """prod_(j in S) of the factors, for each S."""
    found: list[Any] = [np.ones(factors[0].size, bool)]
    for factor in factors:
        found += [product & factor for product in found]
    return found

"""How a comparison in two rounds is cut: a string of 2^c bits for each chunk of c bits, and one step over all chunks.

Knows bits; no share and no mask.  A string says of each z whether z <= r_k.  The last tables are those of `chunks`,
over chunks instead of groups: A of 2^(n-1) entries and B_i of 2^(n-1-i).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .chunks import checked, last_starts, verdict_shifts
from .ring import dtype_for

_MOST = 8  # chunks: the last tables have 383 entries


@dataclass(frozen=True)
class Strings:
    """The bits of each chunk below the top bit, lowest first, for a result mod 2^ring."""

    width: int
    ring: int
    chunks: tuple[int, ...]

    @property
    def verdict_bits(self) -> int:
        """What is opened of the chunks: equal of all but the lowest, then less of all."""
        return 2 * len(self.chunks) - 1

    @property
    def string_bytes(self) -> int:
        """Of all strings, each from a byte on."""
        return sum(_octets(bits) for bits in self.chunks)

    @property
    def readings(self) -> int:
        """Entries of the last tables."""
        return 3 * 2 ** (len(self.chunks) - 1) - 1

    @property
    def dealt_bytes(self) -> int:
        """For one comparison."""
        return self.string_bytes + self.readings * self.ring // 8

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each chunk: where it begins in a word, a mask as wide as it is, where its string begins, in bits."""
        shifts = np.cumsum([0, *self.chunks])[:-1]
        first = 8 * np.cumsum([0, *(_octets(bits) for bits in self.chunks)])[:-1]
        within = (1 << np.array(self.chunks)) - 1
        dtype = dtype_for(self.width)
        return shifts.astype(dtype)[:, None], within.astype(dtype)[:, None], first[:, None]

    def split(self, words: np.ndarray) -> np.ndarray:
        """The chunks of n words: (chunks, n)."""
        shifts, within, _ = self._places
        return (words >> shifts) & within

    def spots(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits of the strings that say z <= r_k and z < r_k, (2, chunks, n); whether there is one for the latter."""
        split, (_, within, first) = self.split(words), self._places
        more = split < within
        at = first + split.astype(np.intp)
        return np.stack([at, at + more]), more

    @cached_property
    def verdict_shifts(self) -> np.ndarray:
        """Where (equal, less) of each chunk lie in the verdicts: (2, chunks, 1)."""
        return verdict_shifts(len(self.chunks))

    def readout(self, verdicts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of the last tables' entries are read, A's first, and whether each counts: (chunks + 1, n) both."""
        count, opened = len(self.chunks), verdicts.astype(np.intp)
        equal = opened & ((1 << count - 1) - 1)
        i = np.arange(count)[:, None]
        places = np.concatenate([equal[None], self._starts[1:, None] + (equal >> i)])
        counts = np.concatenate([np.ones_like(equal)[None], opened >> (count - 1 + i) & 1])
        return places, counts

    @cached_property
    def _starts(self) -> np.ndarray:
        return last_starts(len(self.chunks))

    def strings(self, r: np.ndarray) -> np.ndarray:
        """What is dealt for the words r: (n, string_bytes)."""
        rows = [_thermometer(bits).take(part.astype(np.intp), axis=0) for bits, part in zip(self.chunks, self.split(r))]
        return np.concatenate(rows, axis=1)


@lru_cache(maxsize=256)
def strings(width: int, ring: int) -> Strings:
    """The chunks that take the fewest dealt bytes."""
    checked(width, ring)
    low = width - 1
    found = [
        Strings(width, ring, tuple(low // n + (k < low % n) for k in range(n)))
        for n in range(-(-low // 12), min(_MOST, low) + 1)
    ]
    return min(found, key=lambda one: (one.dealt_bytes, len(one.chunks)))


def _octets(bits: int) -> int:
    return max(1, (1 << bits) // 8)


@lru_cache(maxsize=16)
def _thermometer(bits: int) -> np.ndarray:
    """Row r: bits 0 to r are 1, in octets."""
    numbers = np.arange(1 << bits)
    rows = np.packbits(numbers[None] <= numbers[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray(rows)

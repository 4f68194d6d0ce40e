"""A refresh under masks of single slots, and what the masks hide.  Knows polynomials' roundings; no bandit.

    server   sends  y = m + r            r uniform: +-2^32 where anything of a user's lies, +-2^20 elsewhere
    user     sends  y, encrypted anew    0 where nothing is kept
    server   takes  y - r

A double holds 53 bits, so r is high + low, multiples of 2^-20 and of 2^-74, and y is sent back as what a double gives
of it and the rest.  Encoding rounds; where a number stays in its slot, both sides encode the same scale, and
the server's roundings of r come back as they went: a refresh is then as exact as a fresh ciphertext, to about 1e-9.
Numbers that change their slots are rounded anew, to about 3e-7; and where that does, the rest and r's low part need
not come back: 5e-7, at two thirds of the time.  What the user is sent is the same.

One mask hides a number of [-1, 1] up to the statistical distance 2^-33.  Elsewhere, public constants and roundings far
below 2^-20 are all there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc.prg import Prg

from ...published.ckks import Ciphertext, Cloud, Plain, Scheme, Vault, level_of
from .layout import Placing

BITS, AROUND = 32, 20
_FINE = 2.0 ** (BITS - 52)
DISTANCE = 2.0 ** -(BITS + 1)
"""Of what a user sees of one masked number of [-1, 1] from nothing at all."""


class Mask:
    """What a server added; wide: the slots that are masked by 32 bits."""

    def __init__(self, scheme: Scheme, prg: Prg, wide: np.ndarray) -> None:
        self.scheme, self.wide = scheme, wide
        count = len(wide)
        self.high, self.low = np.zeros(scheme.slots), np.zeros(scheme.slots)
        self.high[wide] = _signed(prg, count) * 2.0**BITS
        self.low[wide] = _signed(prg, count) * _FINE / 2.0
        self._around = _signed(prg, scheme.slots) * 2.0**AROUND
        self._around[wide] = 0.0
        self._whole: Plain = None

    def bare(self, slots: np.ndarray) -> Mask:
        """Without a mask at these, which are for the user to read."""
        self._around[slots] = 0.0
        return self

    def onto(self, cloud: Cloud, m: Ciphertext) -> Ciphertext:
        """m + r."""
        scheme, level, scale = self.scheme, level_of(m), m.scale()
        self._whole = scheme.encode(self.high, scale, scheme.top)
        m = cloud.plus_plain(m, self._whole)
        return cloud.plus_plain(m, scheme.encode(self.low + self._around, scale, level))

    def off(self, cloud: Cloud, y: Ciphertext, placing: Placing | None = None, *, rounded: bool = False) -> Ciphertext:
        """y - r; placing: where the user put each number.  rounded: where it sent no rest."""
        scheme, level, scale = self.scheme, level_of(y), y.scale()
        if rounded:
            return cloud.plus_plain(y, self._whole, -1)
        high = self._whole if placing is None else scheme.encode(moved(self.high, placing), scale, level)
        low = scheme.encode(self.low if placing is None else moved(self.low, placing), scale, level)
        return cloud.plus_plain(cloud.plus_plain(y, high, -1), low, -1)

    def sum_at(self, slots: np.ndarray) -> float:
        """Of the masks there."""
        return float(self.high[slots].sum() + self.low[slots].sum())


def refreshed(
    vault: Vault, scheme: Scheme, y: Ciphertext, level: int, kept: np.ndarray, placings: Sequence[Placing] = (),
    *, rounded: bool = False,
) -> list[Ciphertext]:  # fmt: skip
    """What a user answers: y at this level in the slots that are kept, or as it is to be placed."""
    scale = y.scale()
    high = np.zeros(scheme.slots)
    high[kept] = vault.decrypt(y)[kept]
    if rounded:
        return [vault.encrypt(high, scale, level)]
    whole = scheme.encode(high, scale, scheme.top)
    rest = np.zeros(scheme.slots)
    rest[kept] = vault.decrypt(scheme.evaluator.sub_plain(y, scheme.at(whole, level_of(y))))[kept]
    add = scheme.evaluator.add_plain
    if not placings:
        return [add(vault.seal(scheme.at(whole, level)), scheme.encode(rest, scale, level))]
    return [
        add(vault.encrypt(moved(high, one), scale, level), scheme.encode(moved(rest, one), scale, level))
        for one in placings
    ]


def moved(numbers: np.ndarray, placing: Placing) -> np.ndarray:
    """As placed."""
    out = np.zeros_like(numbers)
    out[placing.to] = numbers[placing.source]
    return out


def _signed(prg: Prg, count: int) -> np.ndarray:
    """Uniform multiples of 2^-52 in [-1, 1)."""
    return np.asarray((prg.words((count,)) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0)

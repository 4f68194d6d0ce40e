"""What Comp sees of a score: the word times a mask, at a width that the policy and N fix.  Knows no key.

    largest    w alpha rounded to a double of 53 bits:   8 bytes
    draw       w alpha as an exact integer:              as many bytes as the largest needs

alpha is fresh for each step and iteration, from the owners' common seed.

Largest.  alpha = (1 + a / 2^52) 2^e with a uniform below 2^52 and e uniform in [-512, 512).  Rounding keeps order and
ties: for integers v < w < 2^52, w alpha (1 - 2^-53) > v alpha (1 + 2^-53), since (w - v) 2^53 > w + v.  A list scaled
by 2 looks the same but for one in 1024, whereas a mask uniform in an interval would tell the size of the largest
score.  The paper's mask is a double as well.

Draw.  alpha is uniform in [1, 2^64].  A draw compares sums with a fraction of the total, so the same arm for every
alpha takes exact products.  They tell more than doubles do: the greatest common divisor of a list is alpha times that
of the words, so Comp mostly learns the words themselves.  Pursuit loses nothing by it, as its weights sum to 1 anyway.

Neither hides a ratio; what follows from ratios is the reason for the protocol on shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandits.samba.coins import CommonCoins, OrderCoins, derived
from mpc.prg import Unshared

from ..owners import LocalPolicy, Select

MASK_BITS = 64
_DOUBLE, _RAW = np.dtype("<f8"), np.dtype("V8")
_MANTISSA = 52
_EXPONENTS = 1024


@dataclass(frozen=True)
class Field:
    """How a masked score is written.  doubles: else unsigned integers of `width` bytes, little end first."""

    select: Select
    width: int
    doubles: bool

    def write(self, words: np.ndarray, mask: int) -> list[bytes]:
        """Masked words.  mask: in [1, 2^64]."""
        if self.doubles:
            masked = (words * double_of(mask)).astype(_DOUBLE, copy=False)
            written: list[bytes] = masked.view(_RAW).tolist()
            return written
        return [(word * mask).to_bytes(self.width, "little") for word in words.tolist()]

    def read(self, texts: list[bytes]) -> np.ndarray | list[int]:
        """What `write` wrote, masked as it is."""
        if self.doubles:
            return np.frombuffer(b"".join(texts), _DOUBLE)
        return [int.from_bytes(text, "little") for text in texts]


def fields_of(policy: LocalPolicy, budget: int) -> list[Field]:
    """One for each iteration."""
    out = []
    for iteration, select in enumerate(policy.selects, 1):
        bits = policy.word_bits(budget, iteration)
        doubles = select is Select.LARGEST and bits <= _MANTISSA
        out.append(Field(select, 8 if doubles else math.ceil((bits + MASK_BITS) / 8), doubles))
    return out


def double_of(mask: int) -> float:
    """alpha of the first kind, from a mask in [1, 2^64]."""
    exponent, a = divmod(mask - 1, 1 << _MANTISSA)
    return math.ldexp(1.0 + a * 2.0**-_MANTISSA, exponent % _EXPONENTS - _EXPONENTS // 2)


class OwnerCoins(Unshared):
    """What all owners draw alike, by (step, iteration): exploration, masks, and each one's slot in Comp's list.

    A slot is an owner's name for one iteration: it stands on a message in place of its owner's number.
    """

    def __init__(self, common: bytes, masks: bytes, arms: int) -> None:
        super().__init__()
        self._common, self._masks = CommonCoins(common), CommonCoins(derived(masks, "masks"))
        self._slots = OrderCoins(derived(masks, "slots"), arms)

    def explores(self, t: int, chance: float) -> bool:
        """With this probability."""
        self.require_own()
        return chance > 0.0 and self._common.explore(t, chance)

    def mask(self, t: int, iteration: int) -> int:
        """Uniform in [1, 2^64]."""
        self.require_own()
        return self._masks.mask(t, iteration, MASK_BITS)

    def slots(self, t: int, iteration: int) -> np.ndarray:
        """(K,), owner i's at place i."""
        self.require_own()
        return self._slots.order(t, iteration)

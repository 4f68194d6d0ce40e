"""The ring Z_2^64 and fixed point.  Knows words and scales; no party, no share.

A real v is the word round(v * 2^scale) mod 2^64, negatives in two's complement.  Words are `numpy.uint64`: they wrap
without a warning on arrays, and a right shift is logical.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .errors import RangeError
from .extras import extra

FRACTION_BITS = 20
VALUE_BITS = 62  # |word| < 2^62 for every encoded value: what truncation needs


def mask(bits: int) -> np.uint64:
    """2^bits - 1 as a word."""
    return np.uint64((1 << bits) - 1)


_DTYPES = [np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32, np.uint32, *[np.uint64] * 4)]  # by bytes


@lru_cache(maxsize=64)
def narrow_mask(bits: int) -> np.unsignedinteger[Any]:
    """2^bits - 1 in the narrowest type that holds `bits` bits."""
    return dtype_for(bits).type((1 << bits) - 1)


def word(value: int) -> np.uint64:
    """An integer of any sign, reduced mod 2^64."""
    return np.uint64(value & 0xFFFF_FFFF_FFFF_FFFF)


def dtype_for(bits: int) -> np.dtype[Any]:
    """The narrowest unsigned type of at least `bits` bits."""
    if not 1 <= bits <= 64:
        raise RangeError(f"a ring Z_2^w has w in [1, 64], not {bits}")
    return _DTYPES[(bits - 1) >> 3]


def spread_bits(words: np.ndarray, bits: int) -> np.ndarray:
    """The low `bits` bits (8, 16, 32 or 64) with the index of each bit reversed: bit 0b001 goes to place 0b100.

    Bits that were neighbours then lie in opposite halves, at the same place.  An index is reversed by swapping its
    digits a and b; a swap exchanges each place that has digit a alone with the one that has digit b alone.
    """
    dtype = dtype_for(bits)
    x = words.astype(dtype)
    digits = bits.bit_length() - 1
    for a in range(digits // 2):
        b = digits - 1 - a
        shift = dtype.type((1 << b) - (1 << a))
        places = dtype.type(sum(1 << i for i in range(bits) if (i >> a) & 1 and not (i >> b) & 1))
        moved = ((x >> shift) ^ x) & places
        x = x ^ moved ^ (moved << shift)
    return x


def as_array(values: Any) -> np.ndarray:
    """numpy from numpy, torch or Python numbers, with the dtypes that mean numbers only."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"values must be real numbers, integers or booleans, not {array.dtype}: convert them first")
    return array


def encode(values: Any, scale: int = FRACTION_BITS, *, bound: float | None = None) -> np.ndarray:
    """Words of real values, rounded to nearest (ties to even).

    Needs: values finite and |v| < 2^(62 - scale), and |v| <= bound if one is declared; RangeError otherwise.
    Error: at most half a unit in the last place, 2^-(scale + 1), for |v| 2^scale < 2^53.
    """
    if not 0 <= scale < VALUE_BITS:
        raise RangeError(f"a scale lies in [0, {VALUE_BITS - 1}] fraction bits, not {scale}")
    array = as_array(values)
    limit = 2.0 ** (VALUE_BITS - scale)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise RangeError("there are NaN or infinite values: clean them before they are shared")
        array = array.astype(np.float64)
        _check_bound(array, limit, scale, bound)
        return np.rint(array * 2.0**scale).astype(np.int64).view(np.uint64)
    array = array.astype(np.uint8) if array.dtype.kind == "b" else array
    _check_bound(array, int(limit), scale, bound)  # integers compare exactly, up to 2^62 - 1
    return np.left_shift(array.astype(np.int64), scale).view(np.uint64)


@lru_cache(maxsize=1024)
def encode_number(value: float, scale: int) -> np.ndarray:
    """The word of one public number, as `encode`; programs use the same few over and over."""
    word_ = encode(value, scale)
    word_.setflags(write=False)
    return word_


def encode_bits(values: Any, width: int) -> np.ndarray:
    """Words of integers: of any sign at width 64, non-negative and below 2^width else."""
    array = as_array(values)
    if array.dtype.kind == "f":
        raise TypeError("bits are integers: encode real values first")
    if width < 64 and array.size and (array.min() < 0 or int(array.max()) >> width):
        raise RangeError(f"bits of {width}-bit words lie in [0, 2^{width}): mask the values or use wider words")
    return array.astype(np.int64 if array.dtype.kind == "i" else np.uint64).view(np.uint64)


def _check_bound(array: np.ndarray, limit: float, scale: int, bound: float | None) -> None:
    if array.size == 0:
        return
    low, high = array.min(), array.max()
    if bound is not None and (low < -bound or high > bound):
        raise RangeError(
            f"values leave the declared bound |v| <= {bound:g}: scale or clip them, or declare a larger bound"
        )
    if low <= -limit or high >= limit:
        raise RangeError(
            f"values reach 2^{VALUE_BITS - scale} = {limit:g}, the bound at {scale} fraction bits: "
            "use smaller values or fewer fraction bits"
        )


def decode(words: np.ndarray, scale: int) -> np.ndarray:
    """Real values of words: float64 with fraction bits, int64 without."""
    signed = np.asarray(words).view(np.int64)
    return np.asarray(signed * 2.0**-scale) if scale else signed.copy()


def as_torch(values: np.ndarray) -> Any:
    """numpy to torch; a scalar becomes a tensor without axes."""
    with extra("a result as a tensor"):
        import torch

    return torch.from_numpy(np.array(values, ndmin=1)).reshape(values.shape)


def widen(x: np.ndarray, rank: int, hosted: bool = True) -> np.ndarray:
    """Bring a value to `rank` axes by axes of one; a hosted axis stays in front and is not counted."""
    lead = x.shape[:1] if hosted else ()
    rest = x.shape[len(lead) :]
    return x.reshape(lead + (1,) * (rank - len(rest)) + rest)

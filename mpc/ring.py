"""The ring Z_2^64 and fixed point.  Knows words and scales; no party, no share.

A real v is the word round(v * 2^scale) mod 2^64, negatives in two's complement.  Words are `numpy.uint64`: they wrap
without a warning on arrays, and a right shift is logical.  Large integer matrix products go through torch, whose
int64 kernels are an order of magnitude faster than numpy's; torch is loaded on the first of them, so that a party
that never needs one starts in a fraction of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import RangeError
from .packing import rows_of, triangle, unpack

FRACTION_BITS = 20
VALUE_BITS = 62  # |word| < 2^62 for every encoded value: what truncation needs
_TORCH_WORK = 1 << 15  # multiplications from which torch's kernels win


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
    import torch

    return torch.from_numpy(np.array(values, ndmin=1)).reshape(values.shape)


_PACKED = "sym:"
_SIMPLE = {"": "an elementwise product", "&": "an AND", "@": "a matrix product", "^": "an outer product's triangle"}


@dataclass(frozen=True)
class Bilinear:
    """A bilinear map: `spec` is "" for elementwise product, "&" for AND over GF(2), "@" for matmul, else an einsum.

    "^" is the upper triangle of the outer product over last axes.  An einsum behind "sym:" takes its first operand
    packed (`packing`), so that each word of a symmetric matrix occurs once; its last two axes are one.
    """

    spec: str = ""

    def __post_init__(self) -> None:
        if self.spec in _SIMPLE:
            return
        if self.spec.count(",") != 1 or self.spec.count("->") != 1 or "P" in self.spec or "." in self.spec:
            raise ValueError(
                f"an einsum of two operands with named axes and '->' (the letter P is taken), not {self.spec!r}"
            )

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not self.spec:
            return x * y
        if self.spec == "^":
            i, j = triangle(x.shape[-1])
            return x.take(i, axis=-1) * y.take(j, axis=-1)
        if self.spec == "&":
            return x & y
        if self.spec == "@":
            return _matmul(x, y)
        return _einsum(self._indices, self._table(x, y.shape), y)

    @property
    def _indices(self) -> str:
        return self.spec.removeprefix(_PACKED)

    def _dim(self, y: tuple[int, ...]) -> int:
        """Columns of the matrix in a packed first operand."""
        left, right = self._indices.split("->")[0].split(",")
        return y[right.index(left[-1])]

    def _table(self, x: np.ndarray, y: tuple[int, ...]) -> np.ndarray:
        """The first operand with all its axes."""
        return unpack(x, self._dim(y)) if self.spec.startswith(_PACKED) else x

    def hosted(self, x: np.ndarray, y: np.ndarray, *, x_hosted: bool, y_hosted: bool) -> np.ndarray:
        """The map applied to each hosted party's words; an operand without the hosted axis is public."""
        if self.spec not in _SIMPLE:
            x = self._table(x, y.shape[y_hosted:])
            return _einsum(_hosted_spec(self._indices, x_hosted, y_hosted), x, y)
        vectors = [self.spec == "@" and v.ndim - hosted == 1 for v, hosted in ((x, x_hosted), (y, y_hosted))]
        x = x[..., None, :] if vectors[0] else x
        y = y[..., None] if vectors[1] else y
        rank = max(x.ndim - x_hosted, y.ndim - y_hosted)
        z = self(widen(x, rank, x_hosted), widen(y, rank, y_hosted))
        return z.squeeze(axis=tuple(axis for axis, vector in zip((-2, -1), vectors) if vector))

    def shape(self, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result; a TypeError that names both shapes where they do not fit."""
        try:
            if self.spec in ("", "&"):
                return np.broadcast_shapes(x, y)
            if self.spec == "@":
                return _matmul_shape(x, y)
            if self.spec == "^":
                return _triangle_shape(x, y)
            if self.spec.startswith(_PACKED):
                dim = self._dim(y)
                return _einsum_shape(self._indices, (*x[:-1], rows_of(x[-1], dim), dim), y)
            return _einsum_shape(self.spec, x, y)
        except (ValueError, IndexError) as error:
            kind = _SIMPLE.get(self.spec, f"{self.spec!r}")
            raise TypeError(f"shapes {x} and {y} do not fit {kind}") from error


MULTIPLY = Bilinear()
AND = Bilinear("&")
MATMUL = Bilinear("@")
TRIANGLE = Bilinear("^")


def widen(x: np.ndarray, rank: int, hosted: bool = True) -> np.ndarray:
    """Bring a value to `rank` axes by axes of one; a hosted axis stays in front and is not counted."""
    lead = x.shape[:1] if hosted else ()
    rest = x.shape[len(lead) :]
    return x.reshape(lead + (1,) * (rank - len(rest)) + rest)


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    work = x.size * y.shape[-1] if y.ndim > 1 else x.size
    if work < _TORCH_WORK:
        return np.matmul(x, y)
    import torch

    left, right = (torch.from_numpy(np.ascontiguousarray(v).view(np.int64)) for v in (x, y))
    return torch.matmul(left, right).numpy().view(np.uint64)


def _einsum(spec: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not _torch_wins(spec, x.shape, y.shape):
        return np.einsum(spec, x, y)
    import torch

    operands = [torch.from_numpy(np.ascontiguousarray(v).view(np.int64)) for v in (x, y)]
    return torch.einsum(spec, *operands).contiguous().numpy().view(np.uint64)


@lru_cache(maxsize=1024)
def _hosted_spec(spec: str, x_hosted: bool, y_hosted: bool) -> str:
    """The same map with the hosted axis P in front."""
    left, rest = spec.split(",")
    right, out = rest.split("->")
    return f"{'P' * x_hosted}{left},{'P' * y_hosted}{right}->P{out}"


@lru_cache(maxsize=1024)
def _torch_wins(spec: str, x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Where there is much to multiply and operands are used more than once; numpy is faster at matrix times vector."""
    inputs, _ = spec.split("->")
    work = math.prod(dict(zip(inputs.replace(",", ""), x + y, strict=True)).values())
    return work >= max(_TORCH_WORK, 2 * math.prod(x), 2 * math.prod(y))


def _matmul_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if not x or not y:
        raise ValueError("a matrix product takes no scalars")
    left, right = (x if len(x) > 1 else (1, *x)), (y if len(y) > 1 else (*y, 1))
    if left[-1] != right[-2]:
        raise ValueError("inner axes differ")
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    return batch + (left[-2],) * (len(x) > 1) + (right[-1],) * (len(y) > 1)


def _triangle_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if not x or not y or x[-1] != y[-1]:
        raise ValueError("two last axes of one size")
    return (*np.broadcast_shapes(x[:-1], y[:-1]), x[-1] * (x[-1] + 1) // 2)


def _einsum_shape(spec: str, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    inputs, out = spec.split("->")
    sizes: dict[str, int] = {}
    for axis, size in zip(inputs.replace(",", ""), x + y, strict=True):
        if sizes.setdefault(axis, size) != size:
            raise ValueError(f"axis {axis} has two sizes")
    return tuple(sizes[axis] for axis in out)

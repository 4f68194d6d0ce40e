"""Maps that are linear in each of two operands: products of all kinds, on words.  Knows shapes; no share.

Large integer matrix products go through torch, whose int64 kernels are an order of magnitude faster than numpy's; torch
is loaded on the first of them, so that a party that never needs one starts in a fraction of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .packing import rows_of, triangle, unpack
from .ring import widen

_TORCH_WORK = 1 << 15  # multiplications from which torch's kernels win
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

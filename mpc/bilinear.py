"""Maps that are linear in each of two operands: products of all kinds, on words.  Knows shapes; no share.

Large integer matrix products go through torch where it is installed: its int64 kernels are an order of magnitude faster
than numpy's, for the same words.  It is loaded on the first of them, so that a party that never needs one starts in a
fraction of a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from .packing import bordered, dim_of, pack, rows_of, unpack, words_of
from .ring import widen

Shape = tuple[int, ...]
_Map = Callable[[np.ndarray, np.ndarray], np.ndarray]

_TORCH_WORK = 1 << 15  # multiplications from which torch's kernels win
_PACKED = "sym:"


@dataclass(frozen=True)
class Bilinear:
    """A bilinear map: `spec` is "" for elementwise product, "&" for AND over GF(2), "@" for matmul, else an einsum.

    An einsum behind "sym:" takes its first operand packed (`packing`), so that each word of a symmetric matrix occurs
    once; its last two axes are one.  Of matrices that are symmetric, the upper triangle is enough:

    "^"   x y' over last axes, packed, and behind it x times what y has more
    "^."  all <x_i, y_j> with i <= j, of vectors x_i and y_j of matrices' rows
    "^@"  X_k Y of packed X_k and the last of some packed Y, where X_k and Y commute
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
        if simple := _SIMPLE.get(self.spec):
            return simple.apply(x, y)
        return _einsum(self._indices, self._table(x, y.shape), y)

    @property
    def _indices(self) -> str:
        return self.spec.removeprefix(_PACKED)

    def _dim(self, y: Shape) -> int:
        """Columns of the matrix in a packed first operand."""
        left, right = self._indices.split("->")[0].split(",")
        return y[right.index(left[-1])]

    def _table(self, x: np.ndarray, y: Shape) -> np.ndarray:
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

    def shape(self, x: Shape, y: Shape) -> Shape:
        """The shape of the result; a TypeError that names both shapes where they do not fit."""
        try:
            if simple := _SIMPLE.get(self.spec):
                return simple.shape(x, y)
            if self.spec.startswith(_PACKED):
                dim = self._dim(y)
                return _einsum_shape(self._indices, (*x[:-1], rows_of(x[-1], dim), dim), y)
            return _einsum_shape(self.spec, x, y)
        except (ValueError, IndexError) as error:
            kind = simple.name if simple else f"{self.spec!r}"
            raise TypeError(f"shapes {x} and {y} do not fit {kind}") from error


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    work = x.size * y.shape[-1] if y.ndim > 1 else x.size
    if work < _TORCH_WORK or (torch := _torch()) is None:
        return np.matmul(x, y)
    left, right = (torch.from_numpy(np.ascontiguousarray(v).view(np.int64)) for v in (x, y))
    return torch.matmul(left, right).numpy().view(np.uint64)


def _einsum(spec: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not _torch_wins(spec, x.shape, y.shape) or (torch := _torch()) is None:
        return np.einsum(spec, x, y)
    operands = [torch.from_numpy(np.ascontiguousarray(v).view(np.int64)) for v in (x, y)]
    return torch.einsum(spec, *operands).contiguous().numpy().view(np.uint64)


@cache
def _torch() -> Any:
    """torch, or None where it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return torch


@lru_cache(maxsize=1024)
def _hosted_spec(spec: str, x_hosted: bool, y_hosted: bool) -> str:
    """The same map with the hosted axis P in front."""
    left, rest = spec.split(",")
    right, out = rest.split("->")
    return f"{'P' * x_hosted}{left},{'P' * y_hosted}{right}->P{out}"


@lru_cache(maxsize=1024)
def _torch_wins(spec: str, x: Shape, y: Shape) -> bool:
    """Where there is much to multiply and operands are used more than once; numpy is faster at matrix times vector."""
    inputs, _ = spec.split("->")
    work = math.prod(dict(zip(inputs.replace(",", ""), x + y, strict=True)).values())
    return work >= max(_TORCH_WORK, 2 * math.prod(x), 2 * math.prod(y))


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    if not x or not y:
        raise ValueError("a matrix product takes no scalars")
    left, right = (x if len(x) > 1 else (1, *x)), (y if len(y) > 1 else (*y, 1))
    if left[-1] != right[-2]:
        raise ValueError("inner axes differ")
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    return batch + (left[-2],) * (len(x) > 1) + (right[-1],) * (len(y) > 1)


def _triangle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    i, j = bordered(x.shape[-1], y.shape[-1])
    return np.asarray(x.take(i, axis=-1) * y.take(j, axis=-1))


def _triangle_shape(x: Shape, y: Shape) -> Shape:
    if not x or not y or x[-1] > y[-1]:
        raise ValueError("two last axes, the second at least as long")
    return (*np.broadcast_shapes(x[:-1], y[:-1]), len(bordered(x[-1], y[-1])[0]))


def _gram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return pack(_matmul(x, y.swapaxes(-1, -2)))


def _gram_shape(x: Shape, y: Shape) -> Shape:
    if x[-2:] != y[-2:]:
        raise ValueError("matrices of one shape")
    return (*np.broadcast_shapes(x[:-2], y[:-2]), words_of(x[-2]))


def _commuting(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    dim = dim_of(x.shape[-1])
    return pack(_matmul(unpack(x, dim), unpack(y[..., -1:, :], dim)))


def _commuting_shape(x: Shape, y: Shape) -> Shape:
    if x[-1] != y[-1] or words_of(dim_of(x[-1])) != x[-1]:
        raise ValueError("packed matrices of one size")
    return (*np.broadcast_shapes(x[:-2], y[:-2]), x[-2], x[-1])


def _einsum_shape(spec: str, x: Shape, y: Shape) -> Shape:
    inputs, out = spec.split("->")
    sizes: dict[str, int] = {}
    for axis, size in zip(inputs.replace(",", ""), x + y, strict=True):
        if sizes.setdefault(axis, size) != size:
            raise ValueError(f"axis {axis} has two sizes")
    return tuple(sizes[axis] for axis in out)


class _Simple(NamedTuple):
    """A map without indices: how an error calls it, what it does, and the shape of what comes out."""

    name: str
    apply: _Map
    shape: Callable[[Shape, Shape], Shape]


_SIMPLE = {
    "": _Simple("an elementwise product", np.multiply, np.broadcast_shapes),
    "&": _Simple("an AND", np.bitwise_and, np.broadcast_shapes),
    "@": _Simple("a matrix product", _matmul, _matmul_shape),
    "^": _Simple("an outer product's triangle", _triangle, _triangle_shape),
    "^.": _Simple("a triangle of inner products", _gram, _gram_shape),
    "^@": _Simple("a product of packed matrices that commute", _commuting, _commuting_shape),
}
MULTIPLY = Bilinear()
AND = Bilinear("&")
MATMUL = Bilinear("@")
TRIANGLE = Bilinear("^")
GRAM = Bilinear("^.")
COMMUTING = Bilinear("^@")

"""Bilinear maps are what numpy says they are; a symmetric matrix is packed and unpacked without a loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.bilinear import Bilinear
from mpc.packing import border, pack, unpack

SHAPES = [
    ("", (3,), (3,)), ("", (), (4,)), ("", (2, 1), (1, 5)), ("", (2, 3), (3,)), ("&", (2, 3), (3,)),
    ("@", (3,), (3,)), ("@", (2, 3), (3,)), ("@", (3,), (3, 2)), ("@", (2, 3), (3, 4)), ("@", (5, 2, 3), (3, 4)),
    ("@", (5, 1, 2, 3), (4, 3, 2)), ("@", (40, 40), (40, 40)), ("ij,j->i", (2, 3), (3,)), ("i,j->ij", (2,), (3,)),
    ("aij,ajk->aik", (2, 3, 4), (2, 4, 5)), ("i,i->", (7,), (7,)), ("ij,jk->ik", (40, 40), (40, 40)),
    ("^", (4,), (4,)), ("^", (2, 3), (2, 3)), ("^", (3, 1, 5), (2, 5)), ("^", (1,), (1,)),
    ("^", (3,), (5,)), ("^", (2, 1, 2), (4, 3)), ("^.", (3, 2), (3, 2)), ("^.", (2, 4, 3), (4, 3)),
    ("^.", (40, 30), (40, 30)), ("^@", (1, 6), (1, 6)), ("^@", (2, 10), (2, 10)), ("^@", (3, 2, 3), (3, 1, 3)),
    ("sym:ij,j->i", (6,), (3,)), ("sym:raij,rbj->rbai", (2, 3, 14), (2, 5, 4)), ("sym:aij,jk->aik", (2, 10), (4, 2)),
    ("sym:raij,rbj->rbai", (1, 10, 230), (1, 30, 20)),
]  # fmt: skip


def unpacked(x: np.ndarray, dim: int) -> np.ndarray:
    """Word after word: the triangle's rows, then whole rows."""
    rows = [[None] * dim for _ in range(dim)]
    words = iter(np.moveaxis(x, -1, 0))
    for i in range(dim):
        for j in range(i, dim):
            rows[i][j] = rows[j][i] = next(words)
    rest = list(words)
    rows += [rest[at : at + dim] for at in range(0, len(rest), dim)]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def plain(op: Bilinear, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if op.spec == "^":
        outer, dim = x[..., :, None] * y[..., None, :], x.shape[-1]
        rows = [outer[..., i, j] for i in range(dim) for j in range(i, dim)]
        return np.stack(rows + [outer[..., i, j] for j in range(dim, y.shape[-1]) for i in range(dim)], axis=-1)
    if op.spec == "^.":
        inner = (x[..., :, None, :] * y[..., None, :, :]).sum(axis=-1, dtype=np.uint64)
        return np.stack([inner[..., i, j] for i in range(x.shape[-2]) for j in range(i, x.shape[-2])], axis=-1)
    if op.spec == "^@":
        dim = round((2 * x.shape[-1]) ** 0.5 - 0.5)
        whole = np.matmul(unpacked(x, dim), unpacked(y[..., -1:, :], dim))
        return np.stack([whole[..., i, j] for i in range(dim) for j in range(i, dim)], axis=-1)
    if op.spec.startswith("sym:"):
        return np.einsum(op.spec[4:], unpacked(x, y.shape[-1] if y.ndim != 2 or "k" not in op.spec else y.shape[0]), y)
    if op.spec in ("", "&", "@"):
        return {"": np.multiply, "&": np.bitwise_and, "@": np.matmul}[op.spec](x, y)
    return np.einsum(op.spec, x, y)


@pytest.mark.parametrize(("spec", "x_shape", "y_shape"), SHAPES)
def test_bilinear_agrees_with_numpy(spec: str, x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    op = Bilinear(spec)
    x, y = (rng.integers(0, 1 << 64, (3, *shape), dtype=np.uint64) for shape in (x_shape, y_shape))
    expected = np.stack([plain(op, x[p], y[p]) for p in range(3)])
    assert op.shape(x_shape, y_shape) == expected.shape[1:]
    assert (op(x[0], y[0]) == expected[0]).all()
    assert (op.hosted(x, y, x_hosted=True, y_hosted=True) == expected).all()
    assert (op.hosted(x[0], y, x_hosted=False, y_hosted=True)[1] == plain(op, x[0], y[1])).all()
    assert (op.hosted(x, y[0], x_hosted=True, y_hosted=False)[2] == plain(op, x[2], y[0])).all()


@pytest.mark.parametrize(
    ("spec", "x", "y"),
    [("", (2,), (3,)), ("@", (2, 3), (2, 3)), ("@", (), (2,)), ("@", (2, 2, 3), (3, 3, 4)), ("ij,j->i", (2, 3), (2,)),
     ("ij,j->i", (2,), (3,)), ("^", (4,), (3,)), ("^", (), (4,)), ("^.", (3, 2), (2, 3)),
     ("^.", (3, 2), (4, 2)), ("^.", (2,), (2,)),
     ("^@", (1, 6), (1, 3)), ("^@", (1, 5), (1, 5)), ("^@", (6,), (1, 6)), ("sym:ij,j->i", (7,), (3,)),
     ("sym:ij,j->i", (5,), (3,)), ("sym:ij,j->i", (), (3,))],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_named(spec: str, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(TypeError) as error:
        Bilinear(spec).shape(x, y)
    assert str(x) in str(error.value) and str(y) in str(error.value)


@given(st.integers(1, 8), st.integers(0, 3))
def test_what_is_packed_is_unpacked(dim: int, further: int) -> None:
    """Each word of the upper triangle and of the rows behind it is there once; the lower triangle is the upper one."""
    table = np.random.default_rng(dim).integers(0, 1 << 64, (2, dim + further, dim), dtype=np.uint64)
    words = pack(table)
    assert words.shape == (2, dim * (dim + 1) // 2 + further * dim)
    upper = np.triu(table[:, :dim])
    symmetric = np.concatenate([upper + np.triu(upper, 1).swapaxes(-1, -2), table[:, dim:]], axis=1)
    assert (unpack(words, dim) == symmetric).all() and (pack(symmetric) == words).all()


@given(st.integers(1, 9))
def test_the_triangle_of_a_vector_and_a_number_has_a_border(dim: int) -> None:
    """In the order in which a matrix and a row behind it are packed; and no other length is a triangle."""
    y = np.random.default_rng(dim).integers(0, 1 << 30, dim + 1, dtype=np.uint64)
    square = np.outer(y, y)
    words = square[np.triu_indices(dim + 1)]
    assert (words[border(words.size)] == pack(np.concatenate([square[:dim, :dim], square[dim:, :dim]]))).all()
    with pytest.raises(ValueError, match="no triangle"):
        border(words.size + 1)


@pytest.mark.parametrize("spec", ["ij", "ij,jk", "ij,jk,kl->il", "Pi,i->P", "...i,i->..."])
def test_other_einsums_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="two operands with named axes"):
        Bilinear(spec)

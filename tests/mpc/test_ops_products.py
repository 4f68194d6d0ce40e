"""Bilinear products: exact on words, with broadcasting, and accurate after one truncation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from mpc import Session, ops
from mpc.cases import on_grid
from mpc.ring import FRACTION_BITS as F
from mpc.rounds import Rounds
from mpc.share import Share

Fixture = Callable[..., Any]


def then_truncate(session: Session, product: Rounds[Share], bits: int = F) -> Rounds[Share]:
    z = yield from product
    return (yield from ops.truncate(session, z, bits))


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0), st.integers(0, 2**32 - 1))
def test_products_broadcast_as_numpy(
    parties: int, simulate: Fixture, evaluate: Fixture, shapes: Any, seed: int
) -> None:
    session, rng = simulate(parties), np.random.default_rng(seed)
    x, y = (rng.integers(-(2**30), 2**30, shape) for shape in shapes.input_shapes)
    z = evaluate(session, ops.product(session, session.share(x, scale=0), session.share(y, owner=1, scale=0)))
    assert z.shape == shapes.result_shape
    assert (z == x * y).all()


EINSUMS = ["i,i->i", "i,i->", "i,j->ij", "ij,j->i", "ij,jk->ik", "ij,ij->j", "aij,ajk->aik", "ai,aij->aj", "ij,k->kji"]


@given(st.sampled_from(EINSUMS), st.lists(st.integers(1, 4), min_size=4, max_size=4), st.integers(0, 2**32 - 1))
def test_einsum(parties: int, simulate: Fixture, evaluate: Fixture, spec: str, sides: list[int], seed: int) -> None:
    session, rng = simulate(parties), np.random.default_rng(seed)
    sizes = dict(zip("aijk", sides, strict=True))
    left, right = spec.partition("->")[0].split(",")
    x, y = (rng.integers(-(2**25), 2**25, [sizes[axis] for axis in axes]) for axes in (left, right))
    z = evaluate(session, ops.einsum(session, spec, session.share(x, scale=3), session.share(y, owner=1, scale=4)))
    assert (z == np.einsum(spec, x, y)).all()


@pytest.mark.parametrize(
    ("x_shape", "y_shape"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
     ((6, 3), (4, 3, 2)), ((3,), (4, 3, 2)), ((50, 50), (50, 50))],
)  # fmt: skip
def test_matmul(
    x_shape: tuple[int, ...], y_shape: tuple[int, ...], parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    session, rng = simulate(parties), np.random.default_rng(4)
    x, y = (rng.integers(-(2**25), 2**25, shape) for shape in (x_shape, y_shape))
    z = evaluate(session, ops.matmul(session, session.share(x, scale=0), session.share(y, owner=1, scale=0)))
    assert z.shape == (x @ y).shape and (z == x @ y).all()


def test_outer_and_square(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, rng = simulate(parties), np.random.default_rng(5)
    x, y = rng.integers(-(2**30), 2**30, (2, 4)), rng.integers(-(2**30), 2**30, (2, 3))
    left, right = session.share(x, scale=0), session.share(y, owner=1, scale=0)
    assert (evaluate(session, ops.outer(session, left, right)) == x[:, :, None] * y[:, None, :]).all()
    assert (evaluate(session, ops.square(session, left)) == x**2).all()


def test_products_at_the_edge_of_their_range(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    x, y = np.array([2**31 - 1, -(2**31) + 1, 2**61, 0]), np.array([2**31, 2**31, -1, 2**61])
    left, right = session.share(x, scale=0), session.share(y, owner=1, scale=0)
    assert (evaluate(session, ops.product(session, left, right)) == x * y).all()


def test_a_share_may_be_squared_as_a_product(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    x = session.share([3.0, -2.5])
    assert evaluate(session, ops.product(session, x, x)).tolist() == [9.0, 6.25]


def test_accuracy_of_a_product_of_reals(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Rounding the inputs costs up to 2 * 6 * 2^-21 = 5.8e-6, the truncation 2^-20 more."""
    session, rng = simulate(parties), np.random.default_rng(6)
    x, y = rng.uniform(-6, 6, (2, 20_000))
    z = evaluate(session, then_truncate(session, ops.product(session, session.share(x), session.share(y, owner=1))))
    assert np.abs(z - x * y).max() < 7e-6


def test_accuracy_of_a_matrix_product(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """The 64 products of a sum are truncated once, so the error is that of one truncation.

    The inputs lie on the grid: rounding 64 of them each way would alone cost about 64^0.5 * 2^-21 and more.
    """
    session, rng = simulate(parties), np.random.default_rng(7)
    x, y = on_grid(rng.uniform(-1, 1, (2, 64, 64)))
    z = evaluate(session, then_truncate(session, ops.matmul(session, session.share(x), session.share(y, owner=1))))
    assert np.abs(z - x @ y).max() < 2e-6


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 1, 4)])
def test_an_outer_square_is_symmetric(
    shape: tuple[int, ...], parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Its triangle is exact on words, and stands for the whole."""
    session = simulate(parties)
    x = np.random.default_rng(parties).integers(-(2**28), 2**28, shape)
    triangle = session.run(ops.outer_square(session, session.share(x, scale=0)))
    whole = evaluate(session, ops.truncate(session, ops.unpack(triangle, shape[-1]).rescale(3), 3))
    assert (np.abs(whole - x[..., :, None] * x[..., None, :]) <= 1).all()
    assert triangle.shape == (*shape[:-1], shape[-1] * (shape[-1] + 1) // 2)


def test_an_outer_square_of_a_vector_and_a_number(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """[y; s] gives y y' and s y', whatever s^2 would be."""
    session = simulate(parties)
    y = np.random.default_rng(parties).integers(-(2**20), 2**20, 6)
    y[5] = 2**40
    both = ops.bordered(session.run(ops.outer_square(session, session.share(y, scale=0))))
    whole = evaluate(session, ops.truncate(session, ops.unpack(both, 5).rescale(1), 1))
    assert (np.abs(whole - np.outer(y, y)[:, :5]) <= 1).all()


def test_a_packed_matrix_times_vectors(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """The lower triangle is never read."""
    session, rng = simulate(parties), np.random.default_rng(parties)
    table = rng.integers(-(2**20), 2**20, (2, 3, 5, 4))
    x = rng.integers(-(2**20), 2**20, (2, 6, 4))
    packed = ops.pack(session.share(table, scale=0))
    found = evaluate(session, ops.einsum(session, "sym:raij,rbj->rbai", packed, session.share(x, owner=1, scale=0)))
    table[..., :4, :] = np.triu(table[..., :4, :]) + np.triu(table[..., :4, :], 1).swapaxes(-1, -2)
    assert (found == np.einsum("raij,rbj->rbai", table, x)).all()

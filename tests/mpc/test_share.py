"""Local arithmetic on shares agrees with numpy, and the rows of a sharing tell nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc import RangeError, ops, ring

Fixture = Callable[..., Any]
SEED = np.random.default_rng(3)
X, Y = SEED.integers(-(2**20), 2**20, (2, 2, 3)) * 2.0**-10
LOCAL = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "negate": lambda x, y: -x,
    "add public": lambda x, y: x + 1.5,
    "public minus": lambda x, y: 2.0 - x,
    "public array": lambda x, y: np.ones((2, 3)) + x,
    "add a wider public": lambda x, y: x + np.arange(12.0).reshape(2, 2, 3),
    "broadcast rows": lambda x, y: x + y[0],
    "broadcast columns": lambda x, y: x - y[:, :1],
    "times integer": lambda x, y: x * 3 - y * -2,
    "times real": lambda x, y: x * 0.5,
    "real array times": lambda x, y: np.array([0.5, -2.0, 0.25]) * x,
    "index": lambda x, y: x[1, 2],
    "slice": lambda x, y: x[..., ::2],
    "fancy": lambda x, y: x[:, np.array([2, 0])],
    "reshape": lambda x, y: x.reshape(3, 2),
    "sum": lambda x, y: x.sum(),
    "sum axis": lambda x, y: x.sum(axis=-1),
    "sum axes": lambda x, y: x.sum(axis=(0, 1)),
    "cumsum": lambda x, y: x.cumsum(axis=1),
    "transpose": lambda x, y: x.T,
}


@pytest.mark.parametrize("name", LOCAL)
def test_local_arithmetic(name: str, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x, y = session.share(X, owner=0), session.share(Y, owner=parties - 1)
    result = LOCAL[name](x, y)
    expected = LOCAL[name](X, Y)
    assert result.shape == np.shape(expected)
    assert session.round == 0
    assert reveal(result) == pytest.approx(expected, abs=0)


BITS_X, BITS_Y = SEED.integers(0, 1 << 13, (2, 4))
LOCAL_BITS = {
    "xor": lambda x, y: x ^ y,
    "xor public": lambda x, y: x ^ 5,
    "and public": lambda x, y: x & 0x0FF0,
    "not": lambda x, y: ~x & 0x1FFF,
    "left": lambda x, y: (x << 3) & 0x1FFF,
    "right": lambda x, y: x >> 2,
    "index": lambda x, y: x[1:3],
    "reshape": lambda x, y: x.reshape(2, 2),
}


@pytest.mark.parametrize("name", LOCAL_BITS)
def test_local_bits(name: str, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x, y = (session.share_bits(v, owner=i, width=13) for i, v in enumerate((BITS_X, BITS_Y)))
    assert reveal(LOCAL_BITS[name](x, y)).tolist() == LOCAL_BITS[name](BITS_X, BITS_Y).tolist()


@pytest.mark.parametrize("rows", [X, X[0], X[:, :0]], ids=["matrix", "one row", "nothing"])
def test_a_public_matrix_maps_a_vector(rows: np.ndarray, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x = session.share(Y[0, : rows.shape[-1]], owner=parties - 1, scale=15)
    result = x.mapped(rows, bits=12)
    assert result.scale == 27 and result.shape == rows.shape[:-1] and session.round == 0
    assert reveal(result) == pytest.approx(rows @ Y[0, : rows.shape[-1]], abs=0)
    with pytest.raises(RangeError, match="truncate first"):
        x.mapped(rows, bits=48)
    with pytest.raises(TypeError, match="maps a vector"):
        session.share(X).mapped(rows, bits=12)


def test_scales_travel(simulate: Fixture, reveal: Fixture) -> None:
    x = simulate(3).share([1.5, -2.25])
    assert (x * 2).scale == 20 and (x * 0.5).scale == 40 and x.times(0.5, bits=3).scale == 23
    assert x.rescale(30).scale == 30 and reveal(x.rescale(30)).tolist() == [1.5, -2.25]
    assert len(x) == 2 and x.size == 2 and x.ndim == 1


@given(values=st.lists(st.floats(-(2.0**20), 2.0**20), min_size=1, max_size=5), scale=st.integers(0, 30))
def test_round_trip(parties: int, simulate: Fixture, reveal: Fixture, values: list[float], scale: int) -> None:
    session = simulate(parties)
    for owner in range(parties):
        back = reveal(session.share(values, owner=owner, scale=scale))
        assert (back == ring.decode(ring.encode(values, scale), scale)).all()


@given(values=st.lists(st.integers(0, (1 << 33) - 1), min_size=1, max_size=5))
def test_round_trip_of_bits(parties: int, simulate: Fixture, reveal: Fixture, values: list[int]) -> None:
    session = simulate(parties)
    for owner in range(parties):
        assert reveal(session.share_bits(values, owner=owner, width=33)).tolist() == values


def test_torch_in_torch_out(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    torch = pytest.importorskip("torch")
    values = torch.tensor([[1.5, -2.0]], requires_grad=True)
    back = reveal(session.share(values), torch=True)
    assert isinstance(back, torch.Tensor) and torch.equal(back, values.detach().double())
    assert isinstance(reveal(session.share(torch.tensor(7), scale=0), torch=True), torch.Tensor)
    assert reveal(session.share(torch.tensor(7), scale=0), torch=True).shape == ()
    assert isinstance(reveal(session.share(values)), np.ndarray)
    assert reveal(session.share(values) * torch.tensor([2, 3])).tolist() == [[3.0, -6.0]]


@pytest.mark.parametrize("secret", [0, (1 << 62) - 1])
@pytest.mark.parametrize("kind", ["sum", "xor"])
def test_all_but_one_row_are_uniform(
    kind: str, secret: int, parties: int, simulate: Fixture, uniformity: Fixture
) -> None:
    """Every N - 1 rows, one by one and added up.  Rejects at p < 1e-6, on fixed pair keys."""
    session, values = simulate(parties), np.full(20_000, secret)
    for owner in range(parties):
        summed = session.share(values, owner=owner, scale=0)
        shared = summed if kind == "sum" else session.share_bits(values, owner=owner)
        for rows in itertools.combinations(range(parties), parties - 1):
            seen = shared.words[list(rows)]
            joint = seen.sum(axis=0, dtype=np.uint64) if kind == "sum" else np.bitwise_xor.reduce(seen, axis=0)
            assert min(uniformity(words, 64) for words in (*seen, joint)) > 1e-6


@pytest.mark.parametrize("owner", [0, 1])
def test_rows_of_the_others_do_not_depend_on_the_secret(owner: int, parties: int, simulate: Fixture) -> None:
    one, other = (simulate(parties).share(np.full(50, secret), owner=owner) for secret in (0.0, 1e6))
    others = [party for party in range(parties) if party != owner]
    assert (one.words[others] == other.words[others]).all()
    assert (one.words[owner] != other.words[owner]).all()


def test_repr_shows_shape_and_scale_alone(simulate: Fixture) -> None:
    session = simulate(2)
    assert repr(session.share(np.full((2, 3), 123.0))) == "Share(shape=(2, 3), scale=20)"
    assert repr(session.share_bits([5, 6], width=7)) == "BinaryShare(shape=(2,), width=7)"


KEYS = [
    0, -1, slice(1, None), Ellipsis, None, (0, 1), (slice(None), 2), (Ellipsis, 3), (..., [0, 2]), ([1, 0],),
    (0, [1, 2]), ([0, 1], slice(None), [0, 2]), (0, slice(None), [1, 2]),
    ([0, 1], [1, 2]), (slice(None), [0, 2], [1, 3]),
    (None, [1], slice(None), 0), np.arange(24).reshape(2, 3, 4) % 3 == 0, (1, np.array([True, False, True])),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys_on_the_value(key: Any, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    """Index arrays that a slice keeps apart would move their axes before the hosted one."""
    values = np.arange(24.0).reshape(2, 3, 4)
    picked = simulate(parties).share(values)[key]
    assert picked.shape == values[key].shape
    assert (reveal(picked) == values[key]).all()


def test_transpose_needs_two_axes(simulate: Fixture, reveal: Fixture) -> None:
    share = simulate(2).share(np.arange(6.0).reshape(2, 3))
    assert (reveal(share.T) == np.arange(6.0).reshape(2, 3).T).all()
    with pytest.raises(TypeError, match="no two axes"):
        share[0].T  # noqa: B018


@given(scale=st.integers(0, 40), read=st.integers(0, 62), words=st.lists(st.integers(-(2**61), 2**61), max_size=4))
def test_a_view_reads_the_same_words(
    parties: int, simulate: Fixture, reveal: Fixture, scale: int, read: int, words: list[int]
) -> None:
    values = np.array(words, np.int64)
    x = simulate(parties).share(values, scale=0).at_scale(scale)
    assert x.scale == scale and (reveal(x) == values * 2.0**-scale).all()
    assert x.at_scale(read).scale == read and x.at_scale(read).words is x.words
    assert x.integers().scale == 0 and (reveal(x.integers()) == values).all()


@pytest.mark.parametrize("scale", [-1, 63])
def test_words_are_not_read_at_a_scale_that_no_share_has(scale: int, simulate: Fixture) -> None:
    with pytest.raises(RangeError, match=f"not {scale}: truncate first"):
        simulate(2).share([1.0]).at_scale(scale)


def test_the_scale_check_holds_for_views(simulate: Fixture) -> None:
    x = simulate(2).share([1.0])
    with pytest.raises(RangeError, match="scales 20 and 0 do not add"):
        x + x.integers()


def test_a_diagonal_needs_two_axes(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    values = np.arange(18.0).reshape(2, 3, 3)
    share = simulate(parties).share(values)
    assert (reveal(share.diagonal()) == values.diagonal(axis1=1, axis2=2)).all()
    assert share.diagonal().scale == share.scale
    with pytest.raises(TypeError, match="no diagonal"):
        share[0, 0].diagonal()


@pytest.mark.parametrize("bits", [8, 16])
def test_a_share_of_a_narrow_ring(bits: int, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    """The same local arithmetic, mod 2^bits, on signed numbers."""
    session = simulate(parties)
    x, y = np.array([[3, -1, 100], [-7, 0, 27]]), np.array([5, -2, 1])
    a, b = (session.share(v, owner=parties - 1, scale=0).mod(bits) for v in (x, y))
    cases = {
        "plus": (a + b, x + y), "minus": (a - b, x - y), "negative": (-a, -x), "public": (4 - a, 4 - x),
        "times": (a * -3, x * -3), "times rows": (a * np.array([1, 2, 0]), x * [1, 2, 0]), "row": (a[1], x[1]),
        "sum": (a.sum(axis=0), x.sum(axis=0)), "running": (a.cumsum(axis=1), x.cumsum(axis=1)), "T": (a.T, x.T),
        "joined": (ops.concat([a, a]), np.concatenate([x, x])), "flat": (a.reshape(6), x.reshape(6)),
    }  # fmt: skip
    for what, (share, clear) in cases.items():
        assert share.words.dtype == f"u{bits // 8}" and share.ring == bits
        wrapped = (clear + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        assert (reveal(share) == wrapped).all(), what
    assert session.ledger

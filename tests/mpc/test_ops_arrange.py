"""Shares put together agree with numpy on the values, cost nothing, and never mix scales, widths or sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc import RangeError, ops

Fixture = Callable[..., Any]
SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=3)


def _values(shape: list[int], start: int = 0) -> np.ndarray:
    return np.arange(start, start + int(np.prod(shape))).reshape(shape)


@given(data=st.data(), shape=SHAPES, count=st.integers(1, 3), binary=st.booleans())
def test_joined_as_numpy_joins(
    data: st.DataObject, parties: int, simulate: Fixture, reveal: Fixture, shape: list[int], count: int, binary: bool
) -> None:
    session = simulate(parties)
    share = session.share_bits if binary else session.share
    values = [_values(shape, 50 * number) for number in range(count)]
    parts = [share(each, owner=number % parties) for number, each in enumerate(values)]
    along = data.draw(st.integers(-len(shape), len(shape) - 1))
    between = data.draw(st.integers(-len(shape) - 1, len(shape)))
    assert (reveal(ops.concat(parts, axis=along)) == np.concatenate(values, axis=along)).all()
    stacked = ops.stack(parts, axis=between)
    assert stacked.shape == np.stack(values, axis=between).shape
    assert (reveal(stacked) == np.stack(values, axis=between)).all()
    assert session.meter.total.opened_bytes == 0


@given(shape=SHAPES, places=st.sets(st.integers(0, 6), min_size=1), as_mask=st.booleans())
def test_scattered_columns(
    parties: int, simulate: Fixture, reveal: Fixture, shape: list[int], places: set[int], as_mask: bool
) -> None:
    columns, values = np.array(sorted(places)), _values([*shape, len(places)], 1)
    expected = np.zeros((*shape, 7))
    expected[..., columns] = values
    x = simulate(parties).share(values)
    spread = ops.scatter(x, np.isin(np.arange(7), columns) if as_mask else columns, 7)
    assert spread.scale == x.scale and (reveal(spread) == expected).all()


@pytest.mark.parametrize("rows", [np.array([True, False, True]), np.array([0, 2])], ids=["mask", "numbers"])
def test_replaced_rows(rows: np.ndarray, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session, before, by = simulate(parties), _values([2, 3, 4]), _values([2, 2, 4], 100)
    expected = before.copy()
    expected[:, rows] = by
    x = session.share(before)
    assert (reveal(ops.replaced(x, rows, session.share(by))) == expected).all()
    assert (reveal(x) == before).all()


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "concat": lambda x, y: ops.concat([x, y]),
    "stack": lambda x, y: ops.stack([x, y], axis=-1),
    "replaced": lambda x, y: ops.replaced(x, np.array([0, 1]), y),
}


@pytest.mark.parametrize("name", JOINS)
def test_what_does_not_join_is_refused_with_the_cure(name: str, simulate: Fixture) -> None:
    session, values = simulate(2), np.arange(4).reshape(2, 2)
    x, y = session.share(values), session.share(values, scale=10)
    with pytest.raises(RangeError, match=r"scales 20 and 10 do not join: .*raise the other with rescale.*integers\(\)"):
        JOINS[name](x, y)
    assert JOINS[name](x.integers(), y.integers()).scale == 0
    with pytest.raises(TypeError, match="one session"):
        JOINS[name](x, simulate(2).share(values))
    with pytest.raises(TypeError, match=r"ops\.to_arithmetic"):
        JOINS[name](x, session.share_bits(values))
    with pytest.raises(TypeError, match="of 64 bits and <y> of 8"):
        JOINS[name](session.share_bits(values), session.share_bits(values, width=8))


def test_an_axis_that_a_value_lacks_is_refused(simulate: Fixture) -> None:
    """The parties' own axis is none of the value's."""
    x = simulate(2).share([1.0, 2.0])
    for axis in (1, -2):
        with pytest.raises(TypeError, match=f"axis {axis} of a share with 1 axes"):
            ops.concat([x, x], axis=axis)
    for axis in (2, -3):
        with pytest.raises(TypeError, match=f"axis {axis} of a share with 2 axes"):
            ops.stack([x, x], axis=axis)

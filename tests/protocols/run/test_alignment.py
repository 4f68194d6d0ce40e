"""Rows of parties by their ids: whose differ hears which of its own rows; what travels, no outsider can try ids on."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.errors import ConfigError
from mpc.net.transport import Stamp
from protocols.run.alignment import Rows, align, check_distinct

from ...parties.threads import Outcome, side_by_side


class Wire:
    """One party's messages, of which a test keeps the bytes."""

    def __init__(self, node: int, boxes: dict[tuple[int, int], queue.Queue[bytes]], parties: int) -> None:
        self.node, self.parties, self._boxes = node, parties, boxes
        self.said: list[bytes] = []

    def say(self, peer: int, payload: bytes, stamp: Stamp) -> None:
        self.said.append(payload)
        self._boxes[self.node, peer].put(payload)

    def hear(self, peer: int, count: int, stamp: Stamp) -> bytes:
        raw = self._boxes[peer, self.node].get(timeout=300)
        assert len(raw) == count
        return raw


def aligned(*ids: Sequence[str] | bool | None) -> tuple[list[Outcome], list[Wire]]:
    """False: brings no rows.  None: rows without ids."""
    count = len(ids)
    boxes: dict[tuple[int, int], Any] = {
        (one, other): queue.Queue() for one in range(count) for other in range(count) if one != other
    }
    wires = [Wire(node, boxes, count) for node in range(count)]
    rows = [Rows(False) if each is False else Rows(True, each) for each in ids]  # type: ignore[arg-type]
    calls = [(lambda at=at: align(wires[at], rows[at], bytes([at]) * 32)) for at in range(count)]
    return side_by_side(*calls), wires


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=5), unique=True, max_size=6), st.integers(2, 4))
def test_the_same_ids_in_the_same_order_cost_two_messages_each(ids: list[str], parties: int) -> None:
    outcomes, wires = aligned(*[ids] * parties, False)
    assert [outcome.error for outcome in outcomes] == [None] * (parties + 1)
    assert all([len(raw) for raw in wire.said] == [33] * parties + [72] * (parties - 1) for wire in wires[:-1])


def test_each_hears_of_its_own_rows_alone() -> None:
    outcomes, wires = aligned(["anna", "bert", "carl"], ["anna", "carl", "dora"], ["anna", "bert", "carl"])
    first, second, third = (outcome.error for outcome in outcomes)
    assert isinstance(first, ConfigError) and isinstance(second, ConfigError) and isinstance(third, ConfigError)
    assert "(party 1 lacks the ids of rows 1, and has 1 that are not here)" in str(first)
    assert "(party 0 lacks the ids of rows 2, and has 1 that are not here; party 2 lacks the ids of rows 2" in str(
        second
    )
    assert str(third) == str(first)
    for error in (first, second, third):
        assert error.told.endswith("bring the same rows, sorted alike...") and "row 1" not in error.told
        assert error.logged == str(error), "numbers of rows are no values: its own log has them"
    names = ("anna", "bert", "carl", "dora")
    assert not any(name in str(error) for name in names for error in (first, second, third))
    assert not any(name.encode() in raw for name in names for wire in wires for raw in wire.said)


def test_another_order_is_said_with_its_first_row() -> None:
    outcomes, _ = aligned(["a", "b", "c"], ["a", "c", "b"])
    assert all("in another order, from row 1 on" in str(outcome.error) for outcome in outcomes)


def test_many_strangers_are_counted() -> None:
    outcomes, _ = aligned([str(at) for at in range(9)], ["0", *"abcdefgh"])
    assert "lacks the ids of rows 1, 2, 3, 4, 5 and 3 more, and has 8 that are not here" in str(outcomes[0].error)


@pytest.mark.parametrize("count", [0, 1, 1 << 40, (1 << 64) - 1])
def test_a_party_is_not_believed_how_many_rows_it_brings(count: int) -> None:
    """The run says it: nobody makes room for more, or waits for them."""
    boxes: dict[tuple[int, int], Any] = {(0, 1): queue.Queue(), (1, 0): queue.Queue()}
    wire = Wire(0, boxes, 2)
    boxes[1, 0].put(bytes([2]) + bytes(32))
    boxes[1, 0].put(count.to_bytes(8, "little") + bytes(64))
    with pytest.raises(ConfigError, match=rf"party 0 of 3 and party 1 of {count:,}: run the same release everywhere"):
        align(wire, Rows(True, ["a", "b", "c"]), bytes(32))


def test_all_name_a_column_or_nobody_does() -> None:
    outcomes, _ = aligned(["a"], None, False)
    assert all("party 0 names a column of ids and party 1 does not" in str(outcome.error) for outcome in outcomes)
    assert [outcome.error for outcome in aligned(None, None)[0]] == [None, None]


def test_the_same_ids_hash_apart_in_every_run() -> None:
    """Who does not know this run's key cannot try ids."""
    one = aligned(["a", "b"], ["a", "c"])[1][0].said[-1]
    boxes: dict[tuple[int, int], Any] = {(0, 1): queue.Queue(), (1, 0): queue.Queue()}
    wires = [Wire(node, boxes, 2) for node in range(2)]
    side_by_side(
        *(lambda at=at: align(wires[at], Rows(True, ["a", "bc"[at]]), bytes([at + 7]) * 32) for at in range(2))
    )
    assert len(one) == len(wires[0].said[-1]) == 32 and one != wires[0].said[-1]


def test_two_rows_of_one_id_are_named_by_their_rows() -> None:
    check_distinct(["a", "b"])
    with pytest.raises(ConfigError, match=r"^rows 0 and 2 are of the same id: leave one of them$"):
        check_distinct(["a", "b", "a"])


@pytest.mark.parametrize("none", ["", "  ", "NA", "nan"])
def test_a_row_without_an_id_is_named_by_its_row(none: str) -> None:
    """Else two parties' rows without one would be of one patient."""
    with pytest.raises(ConfigError, match=r"^row 1 has no id: fill it in, or drop the row$"):
        check_distinct(["a", none, "b"])

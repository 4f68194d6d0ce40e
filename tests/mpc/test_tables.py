"""Tables as text: what stands where, and what stands for nothing."""

from __future__ import annotations

import pytest

from mpc.tables import aligned, markdown, plain

COLUMNS = (("name", "s"), ("count", ","), ("share", ".0%"))
ROWS = [("argmax", 12345, 0.5), ("sqrt", None, 1.0)]


def test_markdown_says_which_columns_are_numbers() -> None:
    assert markdown(COLUMNS, ROWS) == [
        "| name | count | share |",
        "| :--- | ---: | ---: |",
        "| argmax | 12,345 | 50% |",
        "| sqrt |  | 100% |",
    ]
    assert markdown(COLUMNS, ROWS, absent="-")[-1] == "| sqrt | - | 100% |"


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_end_below_each_other() -> None:
    assert plain(COLUMNS, ROWS) == [
        "name     count  share",
        "argmax  12,345    50%",
        "sqrt         -   100%",
    ]
    assert plain(COLUMNS, []) == ["name  count  share"]


def test_names_may_come_twice_and_lines_end_without_space() -> None:
    assert markdown([("x", "s"), ("x", "d")], [("a", 1)])[0] == "| x | x |"
    assert aligned([("owner 1", "nothing", ""), ("DC", "", "")]) == ["owner 1  nothing", "DC"]


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError):
        markdown(COLUMNS, [("argmax", 1)])
    with pytest.raises(ValueError):
        aligned([("a", "b"), ("c",)])

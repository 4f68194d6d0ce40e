"""Columns of numbers from files of one's own: what is read, and what is refused with its cure."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from bandits.csv_table import TableError, read_columns, read_rows

TEXT = "age,name,weight\n1,2,3.5\n4,5,-6\n"


def test_columns_come_by_name_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write(TEXT)
    np.save(tmp_path / "c.npy", np.array([[1, 2], [3, 4]], np.int32))
    assert read_columns(tmp_path / "a.csv", ["weight", "age"]).tolist() == [[3.5, 1.0], [-6.0, 4.0]]
    assert read_columns(tmp_path / "b.csv.gz").tolist() == [[1.0, 2.0, 3.5], [4.0, 5.0, -6.0]]
    assert read_columns(tmp_path / "c.npy").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_what_is_no_table_of_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT.replace("-6", "nan"))
    (tmp_path / "broken.npy").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "text.npy").write_bytes(b"1,2,3")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    for name, columns, words in (
        ("none.csv", (), "there is no file"), ("a.csv", ("height",), "no column 'height': it has age, name, weight"),
        ("a.csv", (), "line 3 of .* holds NaN"), ("broken.npy", (), "damaged or no array"),
        ("text.npy", (), "damaged or no array"), ("flat.npy", (), "holds no rows of numbers"),
        ("words.npy", (), "holds no rows of numbers"), ("flat.npy", ("age",), "have no names"),
    ):  # fmt: skip
        with pytest.raises(TableError, match=words):
            read_columns(tmp_path / name, columns)
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(TableError, match="ends in none of"):
        read_columns(tmp_path / "a.txt")


def test_a_number_with_thousands_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    incomes = [f"{900 + 2 * row:,}" for row in range(120)]  # with a comma from the 51st on
    for end, name in ((",", "a.csv"), ("\t", "tabs.csv")):
        lines = [f'{row}{end}"{income}"' for row, income in enumerate(incomes)]
        (tmp_path / name).write_text("\n".join([f"row{end}income", *lines]))
        with pytest.raises(TableError, match="income of line 52 is '1,000', with or without thousands"):
            read_columns(tmp_path / name, ["income"])
    lines = ["row,dose,income", *(f'{row},"0,5","{income}"' for row, income in enumerate(incomes))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert read_columns(tmp_path / "a.csv", ["dose"]).tolist() == [[0.5]] * 120


@pytest.mark.parametrize("text", ["bp\n0,15\n0,25\n-0,5\n", "bp\n7\n0,25\n", 'bp\n"1",0\n"2",5\n'])
def test_a_comma_in_one_column_ends_no_name_of_a_row(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(TableError, match="2 values for 1 column: write a point before decimals, or a name for each"):
        read_columns(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text('bp\n"0,15"\n"-0,5"\n')
    assert read_columns(tmp_path / "a.csv").tolist() == [[0.15], [-0.5]]


def test_a_blank_line_between_values_of_one_column_is_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\nbp\n1\n\n\n4\n")
    with pytest.raises(TableError, match="bp of line 4 is missing: fill it in, or drop the row"):
        read_columns(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("\nbp\n1\n4\n\n\n")
    assert read_columns(tmp_path / "a.csv").tolist() == [[1.0], [4.0]], "lines behind the last value are none"
    (tmp_path / "a.csv").write_text("bp,dose\n1,2\n\n4,5\n")
    assert read_columns(tmp_path / "a.csv").tolist() == [[1.0, 2.0], [4.0, 5.0]]


def test_fields_of_an_array_have_names_and_ids_are_text(tmp_path: Path) -> None:
    rows = np.array([("b7", 1.5, 2), ("a1", -1.0, 3)], [("who", "U4"), ("age", "f8"), ("count", "i4")])
    np.save(tmp_path / "named.npy", rows)
    (tmp_path / "named.csv").write_text("who,age,count\nb7,1.5,2\na1,-1,3\n")
    for name in ("named.npy", "named.csv"):
        values, ids = read_rows(tmp_path / name, by="who")
        assert values.tolist() == [[1.5, 2.0], [-1.0, 3.0]] and ids == ["b7", "a1"]
        assert read_rows(tmp_path / name, ["count"], by="who")[0].tolist() == [[2.0], [3.0]]
        assert read_rows(tmp_path / name, ["age"])[1] is None
        for columns, by, words in ((["who"], "who", "is the column of ids"), ((), "name", "has no column 'name'")):
            with pytest.raises(TableError, match=words):
                read_rows(tmp_path / name, columns, by=by)
    with pytest.raises(TableError, match="the field 'who' holds no numbers"):
        read_rows(tmp_path / "named.npy")
    np.save(tmp_path / "plain.npy", np.zeros((2, 2)))
    with pytest.raises(TableError, match="have no names"):
        read_rows(tmp_path / "plain.npy", by="who")

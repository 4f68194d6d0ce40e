"""Tables of any usual kind: CSV, JSON lines, Parquet, and frames of pandas or polars.  The door to pyarrow.

Knows files; no meaning of a column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .csv_table import Table, TableError, decoded, once, read_table, unpacked, without_row_names

_PARQUET = b"PAR1"
_JSON = (".json", ".jsonl", ".ndjson")
_AS_ROWS = 'an object for each row is wanted, as pandas writes it with to_json(..., orient="records", lines=True)'


def table_of(source: Any, *, most: int | None = None) -> Table:
    """A table from a file, by what it holds, or from a frame or a mapping of columns.  most: so many rows at most."""
    if not isinstance(source, (str, Path)):
        return without_row_names(_from_frame(source, most))
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{path} is a folder: name one file of it")
    if not path.is_file():
        raise TableError(f"{path} is not there: give a CSV, a Parquet file or JSON lines")
    with path.open("rb") as file:
        start = file.read(4)
    if start == _PARQUET:
        return without_row_names(_from_parquet(path, most))
    if path.name.removesuffix(".gz").endswith(_JSON):
        return _from_json(path, most)
    return read_table(path, most=most)


def _from_frame(frame: Any, most: int | None) -> Table:
    names = frame.keys() if isinstance(frame, Mapping) else getattr(frame, "columns", None)
    if names is None:
        raise TableError(f"a table is a file, a frame or a mapping of columns, not {type(frame).__name__}")
    once([str(name) for name in names], "this frame")
    columns = {str(name): np.asarray(frame[name])[:most] for name in names}
    lengths = {values.shape for values in columns.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1 or lengths == {(0,)}:
        raise TableError("this frame has no rows, or columns of several lengths: one value in each row is wanted")
    return Table(columns, decimal="?")


def _from_parquet(path: Path, most: int | None) -> Table:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table as read_parquet

    try:
        found = read_parquet(path)
    except (OSError, ArrowException) as error:
        raise TableError(f"{path.name} is damaged or no Parquet: fetch it again") from error
    columns = found.slice(0, most) if most is not None else found
    return Table({name: columns[name].to_pylist() for name in columns.column_names}, decimal="?")


def _from_json(path: Path, most: int | None) -> Table:
    """An object for each line, or one array of objects; what is nested is named with points: context.age."""
    notes: list[str] = []
    found, begins = _values(decoded(unpacked(path), path, notes))
    table = Table({}, tuple(notes), "?", begins)
    if not found[:most]:
        raise TableError(f"{path.name} has no rows: {_AS_ROWS}")
    if len(found) == 1 and _of_columns(found[0]):
        raise TableError(f"{path.name} holds columns, not rows: {_AS_ROWS}")
    rows = [_row(value, table.place(number)) for number, value in enumerate(found[:most])]
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())[0]
            raise TableError(
                f"{table.place(number)} and {table.place(0)} differ in {odd!r}: the same names are wanted in all rows"
            )
    return table._replace(columns={name: [row[name] for row in rows] for name in rows[0]})


def _values(text: str) -> tuple[list[Any], list[int]]:
    """What the lines hold, and which they are; of one array, what is in it."""
    if text.lstrip().startswith("["):
        found = _parsed(text, "it")
        return list(found), []
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [_parsed(line, f"line {number}") for number, line in lines], [number for number, _ in lines]


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise TableError(f"{where} is nested too deep: {_AS_ROWS}") from None
    except ValueError as error:
        raise TableError(f"{where} is no JSON: {_AS_ROWS}") from error


def _row(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TableError(f"{where} is no object: {_AS_ROWS}")
    try:
        return dict(_flat(value))
    except RecursionError:
        raise TableError(f"{where} is nested too deep: {_AS_ROWS}") from None


def _of_columns(value: Any) -> bool:
    """Whether it is a whole table in one object, as pandas writes it unless told otherwise."""
    return isinstance(value, dict) and bool(value) and all(isinstance(each, (dict, list)) for each in value.values())


def _flat(given: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = {str(at): part for at, part in enumerate(value)}  # noqa: PLW2901  a list is an object with numbers
        found += _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else [(before + name, value)]
    return found

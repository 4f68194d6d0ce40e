"""Tables of any usual kind: CSV, JSON lines, Parquet, and frames of pandas or polars.  The door to pyarrow.

Knows files; no meaning of a column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .csv_table import Table, TableError, decoded, read_table, unpacked, without_row_names

_PARQUET = b"PAR1"
_JSON = (".json", ".jsonl", ".ndjson")


def table_of(source: Any, *, most: int | None = None) -> Table:
    """A table from a file, by what it holds, or from a frame or a mapping of columns.  most: so many rows at most."""
    if not isinstance(source, (str, Path)):
        return without_row_names(_from_frame(source, most))
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{path} is a folder: name one file of it")
    if not path.is_file():
        raise TableError(f"there is no file {path}: give a CSV, a Parquet file or JSON lines")
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
    columns = {str(name): np.asarray(frame[name])[:most] for name in names}
    if len(columns) < len(list(names)):
        raise TableError("this frame names a column twice: each once is wanted")
    lengths = {values.shape for values in columns.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1 or lengths == {(0,)}:
        raise TableError("this frame has no rows, or columns of several lengths: one value in each row is wanted")
    return Table(columns)


def _from_parquet(path: Path, most: int | None) -> Table:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table as read_parquet

    try:
        found = read_parquet(path)
    except (OSError, ArrowException) as error:
        raise TableError(f"{path.name} is damaged or no Parquet: fetch it again") from error
    columns = found.slice(0, most) if most is not None else found
    return Table({name: columns[name].to_pylist() for name in columns.column_names})


def _from_json(path: Path, most: int | None) -> Table:
    """An object for each line, or one array of objects; what is nested is named with points: context.age."""
    notes: list[str] = []
    text = decoded(unpacked(path), path, notes).strip()
    try:
        lines = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise TableError(f"{path.name} holds no JSON lines: an object for each row is wanted") from error
    rows = [dict(_flat(line)) if isinstance(line, dict) else {} for line in lines[:most]]
    if not rows:
        raise TableError(f"{path.name} has no rows: an object for each row is wanted")
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())[0]
            raise TableError(f"row {number} and row 0 differ in {odd!r}: the same names are wanted in all rows")
    return Table({name: [row[name] for row in rows] for name in rows[0]}, tuple(notes))


def _flat(given: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = {str(at): part for at, part in enumerate(value)}  # noqa: PLW2901  a list is an object with numbers
        found += _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else [(before + name, value)]
    return found

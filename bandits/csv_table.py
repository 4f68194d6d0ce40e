"""Tables of text with a line of names, packed or not, and of numbers.  Knows files; no meaning of a column."""

from __future__ import annotations

import csv
import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np


class TableError(ValueError):
    """A file is missing or is no such table."""


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Names and rows of a CSV, packed or not; every row as long as the names."""
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path.name} is damaged or no text: fetch it again") from error
    if len(lines) < 2:
        raise TableError(f"{path.name} has no rows: a line of names and at least one of values are wanted")
    names, rows = [name.strip() for name in lines[0]], lines[1:]
    if len(set(names)) < len(names):
        raise TableError(f"{path.name} names a column twice: each once is wanted")
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise TableError(f"row {number} has {len(row)} values for {len(names)} columns")
    return names, rows


def numbers(texts: Sequence[str], name: str) -> np.ndarray:
    """A column as numbers."""
    values = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            values[row] = float(text)
        except ValueError as error:
            raise TableError(f"{name} of row {row} is no number: {text[:20]!r}") from error
    return values


def read_columns(path: Path, columns: Sequence[str] = ()) -> np.ndarray:
    """(rows, columns) of numbers; see `read_rows`."""
    return read_rows(path, columns)[0]


def read_rows(path: Path, columns: Sequence[str] = (), *, by: str = "") -> tuple[np.ndarray, list[str] | None]:
    """(rows, columns) of numbers, and each row's id as text.

    Columns are those of these names, in their order, or all but the ids: of a CSV, or of an NPY whose fields have
    names.  by: the column of the ids; None is given for them where none is named.
    TableError for what is not there or is no finite number.
    """
    if not path.is_file():
        raise TableError(f"there is no file {path}: give a .csv, .csv.gz or .npy")
    if path.suffix == ".npy":
        values, ids = _from_npy(path, columns, by)
    elif path.name.endswith((".csv", ".csv.gz")):
        names, rows = read_table(path)
        wanted = _chosen(path, names, columns, by)
        texts = dict(zip(names, zip(*rows), strict=True))
        values = np.stack([numbers(texts[name], name) for name in wanted], axis=1)
        ids = list(texts[by]) if by else None
    else:
        raise TableError(f"{path}: its name ends in none of .csv, .csv.gz and .npy")
    if not np.isfinite(values).all():
        row = int(np.nonzero(~np.isfinite(values).all(axis=1))[0][0])
        raise TableError(f"row {row} of {path} holds NaN or infinite values: clean them or drop the row")
    return values.astype(np.float64), ids


def _chosen(path: Path, names: Sequence[str], columns: Sequence[str], by: str) -> list[str]:
    """The columns that are numbers."""
    if missing := [name for name in (*columns, *([by] if by else [])) if name not in names]:
        raise TableError(f"{path} has no column {missing[0]!r}: it has {', '.join(names)}")
    if by in columns:
        raise TableError(f"{path}: {by!r} is the column of ids, and no number: leave it out of the columns")
    if not (wanted := list(columns) or [name for name in names if name != by]):
        raise TableError(f"{path} has no column but its ids: columns of numbers are wanted")
    return wanted


def _from_npy(path: Path, columns: Sequence[str], by: str) -> tuple[np.ndarray, list[str] | None]:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(f"{path}: it is damaged or no array: write it with numpy.save") from error
    if isinstance(values, np.ndarray) and values.dtype.names is not None and values.ndim == 1:
        wanted = _chosen(path, values.dtype.names, columns, by)
        if odd := [name for name in wanted if values[name].dtype.kind not in "iufb" or values[name].ndim != 1]:
            raise TableError(f"{path}: the field {odd[0]!r} holds no numbers, one for each row: name others")
        ids = [str(each) for each in values[by].tolist()] if by else None
        return np.stack([values[name].astype(np.float64) for name in wanted], axis=1), ids
    if columns or by:
        raise TableError(
            f"{path}: the columns of this .npy have no names: save an array with named fields, or leave out the names"
        )
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "iufb":
        raise TableError(f"{path} holds no rows of numbers: two axes, the first of rows, are wanted")
    return values, None

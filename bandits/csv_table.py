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
    """(rows, columns) of numbers: from CSV those of these names, in their order, or all; from NPY all.

    TableError for what is not there or is no finite number.
    """
    if not path.is_file():
        raise TableError(f"there is no file {path}: give a .csv, .csv.gz or .npy")
    if path.suffix == ".npy":
        values = _from_npy(path, columns)
    elif path.name.endswith((".csv", ".csv.gz")):
        names, rows = read_table(path)
        if missing := [name for name in columns if name not in names]:
            raise TableError(f"{path} has no column {missing[0]!r}: it has {', '.join(names)}")
        texts = dict(zip(names, zip(*rows), strict=True))
        values = np.stack([numbers(texts[name], name) for name in columns or names], axis=1)
    else:
        raise TableError(f"{path}: its name ends in none of .csv, .csv.gz and .npy")
    if not np.isfinite(values).all():
        row = int(np.nonzero(~np.isfinite(values).all(axis=1))[0][0])
        raise TableError(f"row {row} of {path} holds NaN or infinite values: clean them or drop the row")
    return values.astype(np.float64)


def _from_npy(path: Path, columns: Sequence[str]) -> np.ndarray:
    if columns:
        raise TableError(f"{path}: the columns of an .npy have no names: leave them out, and give those alone")
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(f"{path}: it is damaged or no array: write it with numpy.save") from error
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "iufb":
        raise TableError(f"{path} holds no rows of numbers: two axes, the first of rows, are wanted")
    return values

"""Tables of text with a line of names, packed or not.  Knows files; no meaning of a column."""

from __future__ import annotations

import csv
import gzip
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

"""Tables with named columns: CSV of any usual kind, and numbers out of text.  Knows files; no meaning of a column.

What separates columns, how text is encoded, whether it is packed and whether a comma is a decimal point is found out.
Other kinds of files, and frames, stand in `tables`.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .arrays import unhurried

_DELIMITERS = (",", ";", "\t", "|", " ")  # of two that split a file equally well, the first is meant
_SAMPLE = 50
_GZIP = b"\x1f\x8b"
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ROW_NAMES = ("", "Unnamed: 0", "__index_level_0__")  # R and pandas; pandas read back and saved again; pyarrow
_MISSING = ("", "na", "n/a", "#n/a", "nan", "<na>", "nat", "null")
_NO_NUMBER = (*_MISSING, "none")  # as a word of its own, none is an answer
_TRUTH = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}([,. '\u00a0]\d{3})+([.,]\d+)?")
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


class TableError(ValueError):
    """A file is missing or is no such table.  told: the message without what stands in a cell."""

    def __init__(self, message: str = "", *, told: str | None = None) -> None:
        super().__init__(message)
        self.told = message if told is None else told


class Table(NamedTuple):
    """columns: the values of each name.  notes: what was found out of the file, or left out, in words.

    decimal: what stands before the decimals, "." or ","; "?" where a comma in 1,250 may as well end the thousands.
    lines: the line of the file, counted from 1, on which each row begins; none where there are no lines.
    """

    columns: dict[str, Any]
    notes: tuple[str, ...] = ()
    decimal: str = "."
    lines: Sequence[int] = ()

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def column(self, name: str) -> Any:
        """TableError with the names that there are."""
        if name not in self.columns:
            raise TableError(f"it has no column {name!r}: it has {listed(self.names)}")
        return self.columns[name]

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers: with decimals, or true and false."""
        return _numbers(self, name)

    def place(self, row: int) -> str:
        """Where a row is, for people."""
        return f"line {self.lines[row]}" if self.lines else f"row {row} (counted from 0)"


def read_table(path: Path, *, most: int | None = None) -> Table:
    """Columns of a CSV, packed or not.  most: only so many rows from the first on."""
    notes: list[str] = []
    lines = list(io.StringIO(decoded(unpacked(path), path, notes), newline=""))
    hint = re.fullmatch(r'"?sep=(.)"?', lines[0].strip()) if lines else None  # Excel's own
    if hint:
        lines = lines[1:]
    delimiter = hint[1] if hint else _delimiter(lines)
    if delimiter != ",":
        notes.append(f"columns end at {'a tab' if delimiter == chr(9) else repr(delimiter)}")
    try:
        reading = _rows(lines, delimiter, 2 if hint else 1)
        found = list(itertools.islice(reading, None if most is None else most + 1))
    except csv.Error as error:
        raise TableError(f"{path.name} is damaged or no text: fetch it again, or export it as CSV") from error
    if len(found) < 2:
        raise TableError(f"{path.name} has no rows: a line of names and at least one of values are wanted")
    names = [name.strip() for name in found.pop(0)[1]]
    begins, rows = [line for line, _ in found], [row for _, row in found]
    single = len(names) == 1  # a decimal comma then looks as if it ended a row's name
    if not single and all(len(row) == len(names) + 1 for row in rows):  # R's row names, which have no name of their own
        names = ["", *names]
    for line, row in found:
        if len(row) != len(names):
            cure = ": write a point before decimals, or a name for each column" if single else ""
            raise TableError(f"line {line} has {len(row)} values for {len(names)} column{'s' * (not single)}{cure}")
    columns = list(zip(names, zip(*rows), strict=True))
    while len(columns) > 1 and not columns[-1][0] and not any(columns[-1][1]):  # a line that ends with a delimiter
        columns.pop()
    once([name for name, _ in columns], path.name)
    decimal = _decimal(rows, delimiter)
    if decimal == ",":
        notes.append("a comma stands before the decimals")
    return without_row_names(Table(dict(columns), tuple(notes), decimal, begins))


def once(names: Sequence[str], source: str) -> None:
    """TableError with the name of a column that stands there twice."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise TableError(f"{source} names column {twice[0]!r} twice: each once is wanted")


def is_missing(value: Any) -> bool:
    """Whether nothing was known: None, NaN, nothing written, or a word that says so."""
    return value is None or str(value).strip().lower() in _MISSING


def without_row_names(table: Table) -> Table:
    """A first column that only numbers the rows is left out, with a word."""
    first = next(iter(table.columns), "x")
    if first not in _ROW_NAMES or len(table.columns) < 2:
        return table
    kept = {name: values for name, values in table.columns.items() if name != first}
    what = f"column {first!r}" if first else "a first column without a name"
    return table._replace(columns=kept, notes=(*table.notes, f"{what} is left out: it holds row names"))


def unpacked(path: Path) -> bytes:
    """What a file holds, whether packed by gzip or not."""
    try:
        raw = path.read_bytes()
        if raw.startswith(_GZIP) or path.suffix == ".gz":
            return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{path.name} is damaged or no text: fetch it again, or export it as CSV") from error
    return raw


def _rows(lines: Sequence[str], delimiter: str, first: int) -> Iterator[tuple[int, list[str]]]:
    """Values of each row, and the line that it begins on.  first: what the first line counts.

    A blank line is no row; between the rows of one column it is a value that is missing.
    """
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    begins, columns = first, 0
    blank: list[tuple[int, list[str]]] = []
    for row in reader:
        if row:
            yield from blank
            yield begins, row
            columns, blank = columns or len(row), []
        elif columns == 1:
            blank.append((begins, [""]))
        begins = first + reader.line_num


def _numbers(table: Table, name: str) -> np.ndarray:
    values = table.column(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if table.decimal != ",":
        try:
            return np.array([float(value) for value in values])
        except (TypeError, ValueError, OverflowError):
            pass  # one by one, to say which
    return np.array(
        [_number(value, f"{name} of {table.place(row)}", table.decimal) for row, value in enumerate(values)]
    )


def _number(value: Any, where: str, decimal: str) -> float:
    text = "" if value is None else str(value).strip()
    if text.lower() in _NO_NUMBER:
        raise TableError(f"{where} is missing: fill it in, or drop the row")
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if (decimal == "," and "." in text) or (decimal == "?" and _THOUSANDS.fullmatch(text)):
        cure = "with or without thousands: write it without them"
        raise TableError(f"{where} is {text[:20]!r}, {cure}", told=f"{where} is ..., {cure}")
    try:
        return float(text.replace(",", ".") if _COMMA.fullmatch(text) else text)
    except ValueError as error:
        cure = "without thousands" if _GROUPED.fullmatch(text) else "as a number, or as true or false"
        raise TableError(
            f"{where} is no number: {text[:20]!r}; write it {cure}", told=f"{where} is no number; write it {cure}"
        ) from error


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
    place = Table({}).place
    if path.suffix == ".npy":
        values, ids = _from_npy(path, columns, by)
    elif path.name.endswith((".csv", ".csv.gz")):
        table = read_table(path)
        wanted = _chosen(path, table.names, columns, by)
        values = np.stack([table.numbers(name) for name in wanted], axis=1)
        ids, place = list(table.columns[by]) if by else None, table.place
    else:
        raise TableError(f"{path}: its name ends in none of .csv, .csv.gz and .npy")
    if not np.isfinite(values).all():
        row = int(np.nonzero(~np.isfinite(values).all(axis=1))[0][0])
        raise TableError(f"{place(row)} of {path} holds NaN or infinite values: clean them or drop the row")
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
        values = unhurried(lambda: np.load(path, allow_pickle=False))
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


def decoded(raw: bytes, path: Path, notes: list[str]) -> str:
    """Text in its own encoding; notes are added to."""
    if raw.startswith(b"PK\x03\x04"):
        raise TableError(f"{path.name} is a workbook or a zip archive: save it as CSV, or unpack it")
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            notes.append(f"text in {encoding.removesuffix('-sig')}, with a byte order mark")
            break
    else:
        encoding = "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        text = raw.decode("cp1252", errors="replace")
        if encoding != "utf-8" or "\0" in text:
            raise TableError(f"{path.name} is damaged or no text: fetch it again, or export it as CSV") from error
        notes.append("text in Windows-1252: it is not UTF-8")
    if "\0" in text:
        raise TableError(f"{path.name} is damaged or no text: fetch it again, or export it as CSV")
    return text


def _delimiter(lines: Sequence[str]) -> str:
    """The one that splits the first lines into most columns, as many in each; else the names alone into most."""

    def counts(delimiter: str) -> list[int]:
        try:
            split = csv.reader(lines[:_SAMPLE], delimiter=delimiter, skipinitialspace=True)
            return [len(row) for row in split if row]
        except csv.Error:
            return []

    def key(delimiter: str) -> tuple[bool, int]:
        named, *others = counts(delimiter) or [0]
        even = len(set(others)) <= 1 and (not others or others[0] - named in (0, 1))
        return even and named > 1, named

    return max(_DELIMITERS, key=key)


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """What stands before the decimals, judged by all values; of columns that end at semicolons, it is the comma."""
    thousands = False
    for value in itertools.chain.from_iterable(rows):
        if "," in value and _COMMA.fullmatch(text := value.strip()):
            if delimiter == ";" or not _THOUSANDS.fullmatch(text):
                return ","
            thousands = True
    return "?" if thousands else "."


def listed(names: Sequence[str]) -> str:
    """The first names, in quotes where they have a comma themselves."""
    shown = ", ".join(f'"{name}"' if "," in name else name for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"

"""Tables as text: Markdown for a page, aligned columns for a terminal.  Knows cells and widths; not what they say.

A column is a name and the format of its values: "s" is text and stands to the left, all others stand to the right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

Column = tuple[str, str]
TEXT = "s"


def markdown(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, absent: str = "") -> list[str]:
    """The lines of a page's table.  absent: stands for None."""
    rule = [":---" if kind == TEXT else "---:" for _, kind in columns]
    return [f"| {' | '.join(cells)} |" for cells in (_names(columns), rule, *_cells(columns, rows, absent))]


def plain(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, absent: str = "-") -> list[str]:
    """The lines of a terminal's table.  absent: stands for None."""
    right = [place for place, (_, kind) in enumerate(columns) if kind != TEXT]
    return aligned([_names(columns), *_cells(columns, rows, absent)], right)


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell.  right: columns that end below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _names(columns: Sequence[Column]) -> list[str]:
    return [name for name, _ in columns]


def _cells(columns: Sequence[Column], rows: Iterable[Sequence[Any]], absent: str) -> list[list[str]]:
    return [
        [absent if value is None else format(value, kind) for value, (_, kind) in zip(row, columns, strict=True)]
        for row in rows
    ]

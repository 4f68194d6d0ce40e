"""What all figures draw alike: curves over runs, a line for each value of a column, stacked shares, one legend below.

Knows rows and axes; no system.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .units import Rows

PANEL, SMALL = 9, 8  # points of a panel's title, and of what stands in it


def each(rows: Rows, name: str) -> list[Any]:
    """The values of a column, in order of appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def of(rows: Rows, **same: Any) -> Rows:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in same.items())]


def over_runs(rows: Rows, by: str, value: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each `by`, and the mean and standard deviation of `value` over the runs there."""
    keys = sorted({float(row[by]) for row in rows})
    columns = [np.array([float(row[value]) for row in rows if float(row[by]) == key]) for key in keys]
    return np.array(keys), np.array([c.mean() for c in columns]), np.array([c.std() for c in columns])


def band(axes: Axes, rows: Rows, by: str, value: str, label: str, style: str = "-", **more: Any) -> None:
    """The mean over runs, and one standard deviation to each side."""
    x, mean, spread = over_runs(rows, by, value)
    (line,) = axes.plot(x, mean, style, label=label, **more)
    axes.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, linewidth=0)


def mean_line(axes: Axes, rows: Rows, by: str, value: str, label: str | None, style: str, **more: Any) -> None:
    """The mean over runs alone."""
    x, mean, _ = over_runs(rows, by, value)
    axes.plot(x, mean, style, label=label, **more)


def lines(axes: Axes, rows: Rows, name: str, by: str, value: str, label: str = "{}", **more: Any) -> None:
    """A line of `value` against `by` for each value of the column `name`."""
    for one in each(rows, name):
        some = sorted(of(rows, **{name: one}), key=lambda row: int(row[by]))
        axes.plot([row[by] for row in some], [row[value] for row in some], "o-", label=label.format(one), **more)


def stacked(axes: Axes, rows: Rows, by: tuple[str, ...], part: str, parts: Iterable[str], label: str) -> list[Any]:
    """A bar for each value of the columns `by`, its shares on top of each other; gives these values.

    label: of a part, which may name its `part`, and the `least` and the `most` of it in %.
    """
    bars = list(dict.fromkeys(tuple(row[name] for name in by) for row in rows))
    place, left = np.arange(len(bars)), np.zeros(len(bars))
    for piece in parts:
        found = (of(rows, **dict(zip(by, bar)), **{part: piece}) for bar in bars)
        share = np.array([100.0 * row["share"] for row, *_ in found])
        named = label.format(part=piece, least=share.min(), most=share.max())
        axes.bar(place, share, bottom=left, label=named)
        left += share
    return bars


def legend(canvas: Figure, axes: Axes, **how: Any) -> None:
    """One legend for all panels, which have the lines of this one."""
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend(handles, labels, **{"loc": "outside lower center", "ncols": 4, "fontsize": PANEL, **how})

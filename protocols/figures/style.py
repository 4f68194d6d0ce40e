"""What all figures draw alike: curves over runs, a line for each value of a column, stacked shares, one legend below.

Knows rows and axes; no system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..run.picture import picture
from .units import Rows

PANEL, SMALL = 9, 8  # points of a panel's title, and of what stands in it
BLUE, RED, GREEN, PINK, ORANGE, SKY, BROWN, GREY = (  # Okabe and Ito's, which the colour-blind tell apart
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#666666",
)  # fmt: skip
PALETTE = (BLUE, RED, GREEN, PINK, ORANGE, SKY, BROWN, GREY)
TWIN: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 1.5)), "linewidth": 1.6, "zorder": 5.0}
"""How a plaintext twin is drawn: above what it stands beside."""
_HOUSE: Any = {
    "axes.prop_cycle": cycler(color=PALETTE), "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "legend.frameon": False,
    "svg.hashsalt": "figures", "svg.fonttype": "none",
}  # fmt: skip


@contextmanager
def page(path: Path, width: float, height: float, title: str) -> Iterator[Figure]:
    """A picture in the house's style."""
    with rc_context(_HOUSE), picture(path, width, height, dpi=130) as canvas:
        canvas.suptitle(title, fontsize=11)
        yield canvas


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


def mean_line(axes: Axes, rows: Rows, by: str, value: str, label: str | None, style: str = "", **more: Any) -> None:
    """The mean over runs alone."""
    x, mean, _ = over_runs(rows, by, value)
    axes.plot(x, mean, *([style] if style else []), label=label, **more)


def lines(
    axes: Axes, rows: Rows, name: str, by: str, value: str, label: str = "{}", *,
    colours: Mapping[Any, str] | None = None, **more: Any,
) -> None:  # fmt: skip
    """A line of `value` against `by` for each value of the column `name`.  colours: of these values."""
    for one in each(rows, name):
        some = sorted(of(rows, **{name: one}), key=lambda row: int(row[by]))
        own: dict[str, Any] = {} if colours is None else {"color": colours[one]}
        axes.plot([row[by] for row in some], [row[value] for row in some], "o-", label=label.format(one), **own, **more)


def stacked(axes: Axes, bars: Sequence[Mapping[str, float]], colours: Mapping[str, str]) -> None:
    """Bars side by side, each with its parts on top of each other.  colours: of the parts, from below."""
    place, left = np.arange(len(bars)), np.zeros(len(bars))
    for part, colour in colours.items():
        height = np.array([bar.get(part, 0.0) for bar in bars])
        axes.bar(place, height, 0.7, bottom=left, label=part, color=colour)
        left += height


def mean_of(rows: Rows, value: str) -> float:
    """Over all of them."""
    return float(np.mean([row[value] for row in rows]))


def legend(canvas: Figure, *panels: Axes, **how: Any) -> None:
    """One legend below all panels, of what they show: a name that stands in several is there once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            found.setdefault(label, handle)
    if found:
        how = {"loc": "outside lower center", "ncols": min(4, len(found)), "fontsize": SMALL, **how}
        canvas.legend(list(found.values()), list(found), **how)

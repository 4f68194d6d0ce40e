"""The pictures of SAMBA's figure 8, drawn from their rows alone.  A door to matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np

from .units import Rows

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_PARTICIPANTS = ("owners", "Comp", "Controller", "DC")


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a panel."""
    title, drawer = _DRAWERS[figure]
    canvas = plt.figure(figsize=(11, 7 if figure in "ab" else 4.6), layout="constrained")
    canvas.suptitle(title, fontsize=11)
    drawer(canvas, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=110)
    plt.close(canvas)


def _against_pulls(canvas: Figure, rows: Rows) -> None:
    _times(canvas, rows, "N", "seconds", "seconds of a run")


def _against_arms(canvas: Figure, rows: Rows) -> None:
    _times(canvas, rows, "K", "milliseconds_per_step", "ms a step")


def _times(canvas: Figure, rows: Rows, by: str, value: str, name: str) -> None:
    """A panel for each policy."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    panels = canvas.subplots(-(-len(policies) // 3), 3, squeeze=False, sharey=True)
    for axes in panels.flat[len(policies) :]:
        axes.axis("off")
    for axes, policy in zip(panels.flat, policies):
        some = [row for row in rows if row["policy"] == policy]
        for mode in dict.fromkeys(row["mode"] for row in some):
            line = sorted((row for row in some if row["mode"] == mode), key=lambda row: int(row[by]))
            axes.plot([row[by] for row in line], [row[value] for row in line], "o-", markersize=3, label=mode)
        axes.set(xlabel=by, xscale="log", yscale="log")
        places = sorted({row[by] for row in some})
        axes.set_xticks(places, [f"{place:,}" for place in places], fontsize=8)
        axes.minorticks_off()
        axes.set_title(policy if by == "K" else f"{policy}, K = {some[0]['K']}", fontsize=9)
    for line in panels:
        line[0].set_ylabel(name)
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)


def _rewards(canvas: Figure, rows: Rows) -> None:
    """A panel for each data set; what is lost to the best arm shows better than what is won."""
    sets = list(dict.fromkeys(row["data"] for row in rows))
    panels = canvas.subplots(1, len(sets), squeeze=False)
    for axes, data in zip(panels[0], sets):
        some = [row for row in rows if row["data"] == data]
        pulls = np.array(sorted({row["N"] for row in some}))
        for policy in dict.fromkeys(row["policy"] for row in some):
            own = [row for row in some if row["policy"] == policy]
            each = [np.array([row["reward"] / n for row in own if row["N"] == n]) for n in pulls.tolist()]
            mean, spread = np.array([e.mean() for e in each]), np.array([e.std() for e in each])
            axes.plot(pulls, mean, "o-", markersize=2.5, linewidth=1.0, label=policy)
            axes.fill_between(pulls, mean - spread, mean + spread, alpha=0.12, linewidth=0)
        for column, style in (("best", "k:"), ("random", "k--")):
            level = some[0][column] / some[0]["N"]
            axes.plot(pulls, np.full(len(pulls), level), style, linewidth=1.0, label=f"{column} arm")
        axes.set(xlabel="N", xscale="log", ylabel="cumulative reward / N")
        axes.set_title(f"{data}, {len({row['run'] for row in some})} runs", fontsize=9)
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside right upper", fontsize=8)


def _shares(canvas: Figure, rows: Rows) -> None:
    """A bar for each policy, a panel for each K."""
    sizes = sorted({row["K"] for row in rows})
    panels = canvas.subplots(1, len(sizes), squeeze=False, sharey=True)
    for axes, arms in zip(panels[0], sizes):
        _bars(axes, [row for row in rows if row["K"] == arms])
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    panels[0][0].set_ylabel("% of computing time, keys and sum with it")


def _bars(axes: Axes, rows: Rows) -> None:
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    left = np.zeros(len(policies))
    for name in _PARTICIPANTS:
        share = np.array([
            next(100.0 * row["share"] for row in rows if row["policy"] == policy and row["participant"] == name)
            for policy in policies
        ])  # fmt: skip
        axes.bar(np.arange(len(policies)), share, bottom=left, label=name)
        left += share
    axes.set_xticks(np.arange(len(policies)), [policy.replace("-", "-\n") for policy in policies], fontsize=8)
    axes.set_title(f"K = {rows[0]['K']}, N = {rows[0]['N']:,}, key of {rows[0]['bits']} bits", fontsize=9)


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "a": ("Figure 8a: time of a run against N", _against_pulls),
    "b": ("Figure 8b: time of a step against K", _against_arms),
    "c": ("Figure 8c: cumulative reward against N", _rewards),
    "d": ("Figure 8d: share of time of each participant, as published", _shares),
}

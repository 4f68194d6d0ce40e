"""The pictures of SAMBA's figure 8, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..run.picture import picture
from .style import PANEL, SMALL, band, each, legend, lines, of, stacked
from .units import Rows

_PARTICIPANTS = ("owners", "Comp", "Controller", "DC")


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a panel."""
    title, drawer = _DRAWERS[figure]
    with picture(path, 11, 7 if figure in "ab" else 4.6, dpi=110) as canvas:
        canvas.suptitle(title, fontsize=11)
        drawer(canvas, rows)


def _times(by: str, value: str, name: str, canvas: Figure, rows: Rows) -> None:
    """A panel for each policy."""
    policies = each(rows, "policy")
    panels = canvas.subplots(-(-len(policies) // 3), 3, squeeze=False, sharey=True)
    for axes in panels.flat[len(policies) :]:
        axes.axis("off")
    for axes, policy in zip(panels.flat, policies):
        some = of(rows, policy=policy)
        lines(axes, some, "mode", by, value, markersize=3)
        axes.set(xlabel=by, xscale="log", yscale="log")
        places = sorted(each(some, by))
        axes.set_xticks(places, [f"{place:,}" for place in places], fontsize=SMALL)
        axes.minorticks_off()
        axes.set_title(policy if by == "K" else f"{policy}, K = {some[0]['K']}", fontsize=PANEL)
    for line in panels:
        line[0].set_ylabel(name)
    legend(canvas, panels[0][0])


def _rewards(canvas: Figure, rows: Rows) -> None:
    """A panel for each data set; what is lost to the best arm shows better than what is won."""
    sets = each(rows, "data")
    panels = canvas.subplots(-(-len(sets) // 2), min(2, len(sets)), squeeze=False)
    for axes, data in zip(panels.flat, sets):
        some = [{**row, "each": row["reward"] / row["N"]} for row in of(rows, data=data)]
        for policy in each(some, "policy"):
            band(axes, of(some, policy=policy), "N", "each", policy, "o-", markersize=2.5, linewidth=1.0)
        pulls = sorted(each(some, "N"))
        for column, style in (("best", "k:"), ("random", "k--")):
            level = some[0][column] / some[0]["N"]
            axes.plot(pulls, np.full(len(pulls), level), style, linewidth=1.0, label=f"{column} arm")
        axes.set(xlabel="N", xscale="log", ylabel="cumulative reward / N")
        axes.set_title(f"{data}, {len(each(some, 'run'))} runs", fontsize=PANEL)
    legend(canvas, panels[0][0], loc="outside right upper", ncols=1, fontsize=SMALL)


def _shares(canvas: Figure, rows: Rows) -> None:
    """A bar for each policy, a panel for each K."""
    sizes = sorted(each(rows, "K"))
    panels = canvas.subplots(1, len(sizes), squeeze=False, sharey=True)
    for axes, arms in zip(panels[0], sizes):
        some = of(rows, K=arms)
        bars = stacked(axes, some, ("policy",), "participant", _PARTICIPANTS, "{part}")
        axes.set_xticks(range(len(bars)), [policy.replace("-", "-\n") for (policy,) in bars], fontsize=SMALL)
        axes.set_title(f"K = {arms}, N = {some[0]['N']:,}, key of {some[0]['bits']} bits", fontsize=PANEL)
    legend(canvas, panels[0][0])
    panels[0][0].set_ylabel("% of computing time, keys and sum with it")


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "a": ("Figure 8a: time of a run against N", partial(_times, "N", "seconds", "seconds of a run")),
    "b": ("Figure 8b: time of a step against K", partial(_times, "K", "milliseconds_per_step", "ms a step")),
    "c": ("Figure 8c: cumulative reward against N", _rewards),
    "d": ("Figure 8d: share of time of each participant, as published", _shares),
}

"""The pictures of SAMBA's figure 8, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .style import (
    BLUE,
    BROWN,
    GREEN,
    GREY,
    ORANGE,
    PANEL,
    PINK,
    RED,
    SKY,
    SMALL,
    band,
    each,
    legend,
    of,
    page,
    stacked,
)
from .units import Rows

_POLICIES = {
    "epsilon-greedy": BLUE,
    "epsilon-decreasing": SKY,
    "ucb": GREEN,
    "thompson": RED,
    "softmax": ORANGE,
    "pursuit": PINK,
}
_MODES = {"as published": "o-", "in the clear": "o:", "on shares": "s--"}
_LAUNCHED = {"as published, K + 3 processes": "*", "on shares, launched": "D"}


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the picture of a panel."""
    title, drawer = _DRAWERS[figure]
    with page(path, 11, 7.5 if figure == "c" else 5.4, title) as canvas:
        drawer(canvas, rows)


def _against_pulls(canvas: Figure, rows: Rows) -> None:
    _times(canvas, rows, "N", lambda some: f"K = {some[0]['K']}")


def _against_arms(canvas: Figure, rows: Rows) -> None:
    longest = max(row["N"] for row in rows)
    _times(canvas, of(rows, N=longest), "K", lambda some: f"N = {some[0]['N']:,}")


def _times(canvas: Figure, rows: Rows, by: str, fixed: Callable[[Rows], str]) -> None:
    """A panel for each data set: colours are policies, styles are modes.

    A run in one process is drawn by what the processor worked for it, so that other work beside it does not show.
    """
    sets = [data for data in each(rows, "data") if of(rows, data=data, mode="as published")]
    panels = canvas.subplots(1, len(sets), squeeze=False, sharex=True, sharey=True)[0]
    for axes, data in zip(panels, sets):
        own = of(rows, data=data)
        for policy in each(own, "policy"):
            for mode, style in _MODES.items():
                if some := of(own, policy=policy, mode=mode):
                    band(
                        axes,
                        some,
                        by,
                        "processor_seconds",
                        "",
                        style,
                        color=_POLICIES[policy],
                        markersize=3,
                        linewidth=1.0,
                    )
        axes.set(xlabel=by, yscale="log", ylabel="processor seconds of a run" if axes is panels[0] else "")
        axes.set_title(f"{data}, {fixed(own)}, {len(each(own, 'run'))} runs", fontsize=PANEL)
    for mode, style in _LAUNCHED.items():
        for row in of(rows, mode=mode):
            name = f"ucb {mode}, {row['N']:,} pulls, by the clock"
            panels[0].plot([row[by]], [row["seconds"]], style, color=_POLICIES["ucb"], label=name)
    for policy in each(rows, "policy"):
        panels[0].plot([], [], color=_POLICIES[policy], label=policy)
    for mode, style in _MODES.items():
        panels[0].plot([], [], style, color=GREY, markersize=3, label=mode)
    legend(canvas, panels[0], ncols=5)


def _rewards(canvas: Figure, rows: Rows) -> None:
    """A panel for each data set; what is lost to the best arm shows better than what is won."""
    sets = each(rows, "data")
    panels = canvas.subplots(-(-len(sets) // 2), min(2, len(sets)), squeeze=False, sharex=True)
    for axes, data in zip(panels.flat, sets):
        some = [{**row, "each": row["reward"] / row["N"]} for row in of(rows, data=data)]
        drawn: set[str] = set()
        for policy in each(some, "policy"):
            name = policy.split()[0]
            style = "s--" if name in drawn else "o-"  # of another constant
            drawn.add(name)
            band(
                axes, of(some, policy=policy), "N", "each", policy, style, markersize=2.5, linewidth=1.0,
                color=_POLICIES[name],
            )  # fmt: skip
        pulls = sorted(each(some, "N"))
        for column, style in (("best", "k:"), ("random", "k--")):
            level = some[0][column] / some[0]["N"]
            axes.plot(pulls, np.full(len(pulls), level), style, linewidth=1.0, label=f"{column} arm")
        axes.set(xlabel="N", xscale="log", ylabel="cumulative reward / N")
        axes.set_title(f"{data}, {len(each(some, 'run'))} runs", fontsize=PANEL)
    legend(canvas, panels[0][0], ncols=5)


def _shares(canvas: Figure, rows: Rows) -> None:
    """A bar for each policy, a panel for each K; each owner is a slice."""
    played = [row for row in rows if row.get("owners")]
    sizes = sorted(each(played, "K"))
    panels = canvas.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    for axes, arms in zip(panels, sizes):
        some = of(played, K=arms)
        policies, bars = each(some, "policy"), []
        for policy in policies:
            mean = {
                who: np.mean([row[who] for row in of(some, policy=policy)])
                for who in ("Comp", "Controller", "DC", "owners")
            }
            whole = sum(mean.values())
            slices = {f"owner {number}": 100.0 * mean["owners"] / whole / arms for number in range(1, arms + 1)}
            bars.append({who: 100.0 * mean[who] / whole for who in ("Comp", "Controller", "DC")} | slices)
        stacked(axes, bars, {"Comp": BLUE, "Controller": ORANGE, "DC": BROWN})
        left = np.array([sum(bar[who] for who in ("Comp", "Controller", "DC")) for bar in bars])
        for number in range(1, arms + 1):
            height = np.array([bar[f"owner {number}"] for bar in bars])
            name = "owners, a slice each" if number == 1 else None
            axes.bar(
                range(len(bars)), height, 0.7, bottom=left, color=GREEN, edgecolor="white", linewidth=0.3, label=name
            )
            left += height
        axes.set_xticks(range(len(bars)), [policy.replace("-", "-\n") for policy in policies], fontsize=SMALL)
        axes.set_title(f"K = {arms}, N = {some[0]['N']:,}, {len(each(some, 'run'))} runs", fontsize=PANEL)
    panels[0].set_ylabel("% of computing time, keys and sum with it")
    legend(canvas, panels[0])


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "a": ("Figure 8a: time of a run against N", _against_pulls),
    "b": ("Figure 8b: time of a run against K", _against_arms),
    "c": ("Figure 8c: cumulative reward against N", _rewards),
    "d": ("Figure 8d: share of time of each participant, as published", _shares),
}

"""The pictures of the LinUCB-DS figures, drawn from their rows alone.  A door to matplotlib."""

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

_TITLES = {
    "6": "Figure 6: time of a run on MovieLens against N, d and K",
    "7": "Figure 7: work of each participant, and cumulative reward",
}
_COLOURS = dict(zip(("Comp", "P", "DO", "DC"), ("C0", "C1", "C2", "C3")))


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a figure."""
    canvas = plt.figure(figsize=(11, 7), layout="constrained")
    bits = next(row["bits"] for row in rows if row.get("bits"))
    canvas.suptitle(f"{_TITLES[figure]}; Paillier's keys have {bits} bits", fontsize=11)
    _DRAWERS[figure](canvas, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=110)
    plt.close(canvas)


def _times(canvas: Figure, rows: Rows) -> None:
    """A row of panels for each policy: N, d, K."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    panels = canvas.subplots(len(policies), 3, squeeze=False)
    for line, policy in zip(panels, policies):
        for axes, varied in zip(line, ("N", "d", "K")):
            some = [row for row in rows if row["policy"] == policy and row["varied"] == varied]
            _against(axes, some, varied)
            if some:
                axes.set_title(f"{policy}, {_fixed(some, varied)}", fontsize=9)
            else:
                axes.axis("off")
    handles, labels = panels[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)


def _against(axes: Axes, rows: Rows, varied: str) -> None:
    for mode in dict.fromkeys(row["mode"] for row in rows):
        some = sorted((row for row in rows if row["mode"] == mode), key=lambda row: int(row[varied]))
        axes.plot([row[varied] for row in some], [row["seconds"] for row in some], "o-", markersize=3, label=mode)
    axes.set(xlabel=varied if varied != "K" else "K, the arms", ylabel="seconds", yscale="log")


def _fixed(rows: Rows, varied: str) -> str:
    row = rows[0]
    spectral = len({row["d"] for row in rows}) > 1 and varied == "K"
    same = [f"{name} = {row[name]}" for name in ("N", "d", "K") if name != varied and not (spectral and name == "d")]
    return ", ".join([*same, *(["d = K"] if spectral else [])])


def _shares_and_rewards(canvas: Figure, rows: Rows) -> None:
    panels = canvas.subplots(1, 3, width_ratios=(1.2, 1, 1))
    worked = [row for row in rows if row["panel"] == "work"]
    _shares(panels[0], worked)
    for axes, policy in zip(panels[1:], dict.fromkeys(row["policy"] for row in worked)):
        some = [row for row in rows if row["panel"] == "reward" and row["policy"] == policy]
        _rewards(axes, some)
        axes.set_title(f"{policy}, K = {some[0]['K']}, {len({row['user'] for row in some})} users", fontsize=9)


def _shares(axes: Axes, rows: Rows) -> None:
    bars = list(dict.fromkeys((row["policy"], row["K"]) for row in rows))
    place, left = np.arange(len(bars)), np.zeros(len(bars))
    for role, colour in _COLOURS.items():
        share = np.array([
            next(100.0 * row["share"] for row in rows if (row["policy"], row["K"]) == bar and row["role"] == role)
            for bar in bars
        ])  # fmt: skip
        axes.bar(place, share, bottom=left, color=colour, label=f"{role}: {share.min():.1f} to {share.max():.1f} %")
        left += share
    axes.set_xticks(place, [f"{policy.removesuffix('-DS')}\nK = {arms}" for policy, arms in bars], fontsize=8)
    axes.set(ylabel="% of the processors' time, keys aside")
    axes.set_title(f"as published, N = {rows[0]['N']}", fontsize=9)
    axes.legend(fontsize=8, loc="lower left")


def _rewards(axes: Axes, rows: Rows) -> None:
    pulls = sorted({row["N"] for row in rows})
    for column, label, style in (
        ("reward", "told to DC", "o-"), ("float64", "float64", "x:"), ("best", "best arm, on average", "k:"),
        ("random", "random arms, on average", "k--"),
    ):  # fmt: skip
        mean = [np.mean([row[column] for row in rows if row["N"] == n]) for n in pulls]
        axes.plot(pulls, mean, style, markersize=4, linewidth=1.0, label=label)
    axes.set(xlabel="N", ylabel="cumulative reward, mean over users")
    axes.legend(fontsize=8)


_DRAWERS: dict[str, Callable[[Figure, Rows], None]] = {"6": _times, "7": _shares_and_rewards}

"""The pictures of the figures of the contextual bandit, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ..run.picture import picture
from .style import SMALL, band, each, lines, mean_line, of
from .units import Rows


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a figure."""
    with picture(path, 7, 4.2, dpi=130) as canvas:
        axes = canvas.subplots()
        title, drawer = _DRAWERS[figure]
        drawer(axes, rows)
        axes.set_title(title, fontsize=10)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=SMALL)


def _one(axes: Axes, rows: Rows) -> None:
    for eps in sorted(each(rows, "eps")):
        some = of(rows, eps=eps)
        band(axes, some, "step", "reward", f"eps = {eps:g}")
        mean_line(axes, some, "step", "twin_reward", None, ":", color="black", linewidth=0.8)
    axes.plot([], [], ":", color="black", label="plaintext twin")
    axes.set(xlabel="step", ylabel="average reward so far", xscale="log")


def _against_eta(by: str, label: str, axes: Axes, rows: Rows) -> None:
    for one in sorted(each(rows, by)):
        some = of(rows, **{by: one})
        finite = [row for row in some if row["eta"] != "inf"]
        band(axes, finite, "eta", "reward", label.format(one), marker="o", markersize=3)
        greedy = np.mean([row["reward"] for row in of(some, eta="inf")])
        axes.axhline(float(greedy), linestyle="--", linewidth=0.8, color=axes.lines[-1].get_color())
    axes.set(xlabel="eta of a step (dashed: no exploration, eta infinite)", ylabel="average reward")


def _three(axes: Axes, rows: Rows) -> None:
    lines(axes, rows, "parties", "arms", "milliseconds", "N = {}")
    axes.set(xlabel="arms", ylabel="ms a step", xscale="log", yscale="log")


def _four(axes: Axes, rows: Rows) -> None:
    some = sorted(rows, key=lambda row: int(row["parties"]))
    axes.plot([row["parties"] for row in some], [row["milliseconds"] for row in some], "o-", label="10 arms")
    axes.set(xlabel="parties", ylabel="ms a step", ylim=(0, None))


def _six(axes: Axes, rows: Rows) -> None:
    steps, middle, low, high = (
        np.array([float(row[name]) for row in rows]) for name in ("step", "advantage", "lower", "upper")
    )
    axes.errorbar(steps, middle, [middle - low, high - middle], fmt="o-", markersize=3, capsize=2, label="Yeom et al.")
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set(xlabel="step of the checkpoint", ylabel="advantage, TPR - FPR")


def _seven(axes: Axes, rows: Rows) -> None:
    for truncation in sorted(each(rows, "truncation")):
        band(
            axes,
            of(rows, truncation=truncation),
            "bits",
            "reward",
            f"{truncation} truncation",
            marker="o",
            markersize=3,
        )
    _twin(axes, rows, "bits", "fraction bits")


def _eight(axes: Axes, rows: Rows) -> None:
    band(axes, rows, "newton", "reward", "published reciprocal", marker="o", markersize=3)
    _twin(axes, rows, "newton", "Newton iterations")


def _twin(axes: Axes, rows: Rows, by: str, name: str) -> None:
    mean_line(axes, rows, by, "twin_reward", "plaintext twin", ":", color="black")
    axes.set(xlabel=name, ylabel="average reward")


def _table(axes: Axes, rows: Rows) -> None:
    axes.axis("off")
    names = list(rows[0])
    table = axes.table([[f"{v:,.0f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows],
                       colLabels=names, loc="center")  # fmt: skip
    table.scale(1.0, 1.6)


_DRAWERS: dict[str, tuple[str, Callable[[Axes, Rows], None]]] = {
    "1": ("Figure 1: reward over time for four eps", _one),
    "2": ("Figure 2: reward against privacy, for three lengths of a run", partial(_against_eta, "steps", "T = {:,}")),
    "3": ("Figure 3: time of a step against arms", _three),
    "4": ("Figure 4: time of a step against parties", _four),
    "5": ("Figure 5: reward against privacy, for several numbers of arms", partial(_against_eta, "arms", "{} arms")),
    "6": ("Figure 6: membership inference during training, 95 % intervals", _six),
    "7": ("Figure 7: reward against fraction bits, two truncations", _seven),
    "8": ("Figure 8: reward against Newton iterations of the reciprocal", _eight),
    "table1": ("Table 1: a step, published and recast", _table),
}

"""The pictures of the figures, drawn from their rows alone.  A door to matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from .units import Rows

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a figure."""
    canvas, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    title, drawer = _DRAWERS[figure]
    drawer(axes, rows)
    axes.set_title(title, fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        axes.legend(handles, labels, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=130)
    plt.close(canvas)


def _over_runs(rows: Rows, by: str, value: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each `by`, and the mean and standard deviation of `value` over the runs there."""
    keys = sorted({float(row[by]) for row in rows})
    columns = [np.array([float(row[value]) for row in rows if float(row[by]) == key]) for key in keys]
    return np.array(keys), np.array([c.mean() for c in columns]), np.array([c.std() for c in columns])


def _band(axes: Axes, rows: Rows, by: str, value: str, label: str, style: str = "-", **more: Any) -> None:
    x, mean, spread = _over_runs(rows, by, value)
    (line,) = axes.plot(x, mean, style, label=label, **more)
    axes.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, linewidth=0)


def _one(axes: Axes, rows: Rows) -> None:
    for eps in sorted({row["eps"] for row in rows}):
        some = [row for row in rows if row["eps"] == eps]
        _band(axes, some, "step", "reward", f"eps = {eps:g}")
        x, twin, _ = _over_runs(some, "step", "twin_reward")
        axes.plot(x, twin, ":", color="black", linewidth=0.8)
    axes.plot([], [], ":", color="black", label="plaintext twin")
    axes.set(xlabel="step", ylabel="average reward so far", xscale="log")


def _two(axes: Axes, rows: Rows) -> None:
    for length in sorted({row["steps"] for row in rows}):
        some = [row for row in rows if row["steps"] == length]
        _against_eta(axes, some, f"T = {length:,}")


def _five(axes: Axes, rows: Rows) -> None:
    for arms in sorted({row["arms"] for row in rows}):
        _against_eta(axes, [row for row in rows if row["arms"] == arms], f"{arms} arms")


def _against_eta(axes: Axes, rows: Rows, label: str) -> None:
    finite = [row for row in rows if row["eta"] != "inf"]
    _band(axes, finite, "eta", "reward", label, marker="o", markersize=3)
    greedy = np.mean([row["reward"] for row in rows if row["eta"] == "inf"])
    axes.axhline(float(greedy), linestyle="--", linewidth=0.8, color=axes.lines[-1].get_color())
    axes.set(xlabel="eta of a step (dashed: no exploration, eta infinite)", ylabel="average reward")


def _three(axes: Axes, rows: Rows) -> None:
    for parties in sorted({row["parties"] for row in rows}):
        some = sorted((row for row in rows if row["parties"] == parties), key=lambda row: int(row["arms"]))
        times = [row["milliseconds"] for row in some]
        axes.plot([row["arms"] for row in some], times, "o-", label=f"N = {parties}")
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
    for truncation in sorted({row["truncation"] for row in rows}):
        some = [row for row in rows if row["truncation"] == truncation]
        _band(axes, some, "bits", "reward", f"{truncation} truncation", marker="o", markersize=3)
    x, twin, _ = _over_runs(rows, "bits", "twin_reward")
    axes.plot(x, twin, ":", color="black", label="plaintext twin")
    axes.set(xlabel="fraction bits", ylabel="average reward")


def _eight(axes: Axes, rows: Rows) -> None:
    _band(axes, rows, "newton", "reward", "published reciprocal", marker="o", markersize=3)
    x, twin, _ = _over_runs(rows, "newton", "twin_reward")
    axes.plot(x, twin, ":", color="black", label="plaintext twin")
    axes.set(xlabel="Newton iterations", ylabel="average reward")


def _table(axes: Axes, rows: Rows) -> None:
    axes.axis("off")
    names = list(rows[0])
    table = axes.table([[f"{v:,.0f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows],
                       colLabels=names, loc="center")  # fmt: skip
    table.scale(1.0, 1.6)


_DRAWERS: dict[str, tuple[str, Callable[[Axes, Rows], None]]] = {
    "1": ("Figure 1: reward over time for four eps", _one),
    "2": ("Figure 2: reward against privacy, for three lengths of a run", _two),
    "3": ("Figure 3: time of a step against arms", _three),
    "4": ("Figure 4: time of a step against parties", _four),
    "5": ("Figure 5: reward against privacy, for several numbers of arms", _five),
    "6": ("Figure 6: membership inference during training, 95 % intervals", _six),
    "7": ("Figure 7: reward against fraction bits, two truncations", _seven),
    "8": ("Figure 8: reward against Newton iterations of the reciprocal", _eight),
    "table1": ("Table 1: a step, published and recast", _table),
}

"""The pictures of the figures of the contextual bandit, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from .style import GREY, PALETTE, PANEL, SMALL, TWIN, band, each, legend, lines, mean_line, of, page
from .units import Rows


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the picture of a figure."""
    title, drawer = _DRAWERS[figure]
    with page(path, 7, 4.6, title) as canvas:
        axes = canvas.subplots()
        drawer(axes, rows)
        legend(canvas, axes)


def _one(axes: Axes, rows: Rows) -> None:
    secure = [row for row in rows if row.get("reward") is not None]
    for eps in sorted(each(rows, "eps")):
        if secure:
            band(axes, of(secure, eps=eps), "step", "reward", f"eps = {eps:g}")
            mean_line(axes, of(rows, eps=eps), "step", "twin_reward", None, **TWIN)
        else:
            band(axes, of(rows, eps=eps), "step", "twin_reward", f"eps = {eps:g}")
    if secure:
        axes.plot([], [], label="plaintext twin", **TWIN)
    else:
        axes.set_title("played by the plaintext twin", fontsize=PANEL)
    axes.set(xlabel="step", ylabel="average reward so far", xscale="log")


def _two(axes: Axes, rows: Rows) -> None:
    _against_eta("steps", "T = {:,}", axes, rows)
    arms = rows[0]["arms"]
    sharper = axes.secondary_xaxis(
        "top", functions=(lambda eta: np.log(np.maximum(np.exp(eta) - arms + 1.0, 1e-9)),
                          lambda eta: np.log(np.exp(eta) + arms - 1.0))
    )  # fmt: skip
    sharper.spines["top"].set_visible(True)
    sharper.set_xlabel("the sharper eta, log(A / eps - A + 1)", fontsize=SMALL)
    sharper.set_xticks([1, 2, 4, 6, 8])


def _against_eta(by: str, label: str, axes: Axes, rows: Rows) -> None:
    for one in sorted(each(rows, by)):
        some = of(rows, **{by: one})
        finite = [row for row in some if row["eta"] != "inf"]
        band(axes, finite, "eta", "reward", label.format(one), marker="o", markersize=3)
        greedy = np.mean([row["reward"] for row in of(some, eta="inf")])
        axes.axhline(float(greedy), linestyle="--", linewidth=0.8, color=axes.lines[-1].get_color())
    axes.set(xlabel="eta = log(A / eps) of a step (dashed: no exploration, eta infinite)", ylabel="average reward")


def _three(axes: Axes, rows: Rows) -> None:
    lines(axes, rows, "parties", "arms", "milliseconds", "N = {}")
    axes.set(xlabel="arms", ylabel="ms a step", ylim=(0, None))


def _four(axes: Axes, rows: Rows) -> None:
    lines(axes, rows, "arms", "parties", "milliseconds", "{} arms")
    axes.set(xlabel="parties", ylabel="ms a step", ylim=(0, None))


def _six(axes: Axes, rows: Rows) -> None:
    ways = (("advantage_same_samples", "-", "counted on the same"), ("advantage", ":", "counted apart"))
    for colour, eps in zip(PALETTE, sorted(each(rows, "eps"))):
        for column, style, _ in ways:
            percent = [{**row, column: 100.0 * row[column]} for row in of(rows, eps=eps)]
            mean_line(axes, percent, "step", column, None, style, color=colour, marker="o", markersize=3)
        axes.plot([], [], color=colour, label=f"eps = {eps:g}")
    for _, style, name in ways:
        axes.plot([], [], style, color=GREY, label=name)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set(xlabel="step of the checkpoint", ylabel="advantage, %", xscale="log")


def _seven(axes: Axes, rows: Rows) -> None:
    for truncation in sorted(each(rows, "truncation")):
        some = of(rows, truncation=truncation)
        band(axes, some, "bits", "reward", f"{truncation} truncation", marker="o", markersize=3)
    _twin(axes, rows, "bits", "fraction bits")


def _eight(axes: Axes, rows: Rows) -> None:
    band(axes, rows, "newton", "reward", "published reciprocal", marker="o", markersize=3)
    _twin(axes, rows, "newton", "Newton iterations")


def _twin(axes: Axes, rows: Rows, by: str, name: str) -> None:
    mean_line(axes, rows, by, "twin_reward", "plaintext twin", **TWIN)
    axes.set(xlabel=name, ylabel="average reward")


def _slower(axes: Axes, rows: Rows) -> None:
    """Table 1 as bars: times slower than plain PyTorch."""
    names = [f"{row['operation']}\n{row['as']}" for row in rows]
    place = np.arange(len(rows))
    sides = [("times_slower", "here"), ("paper_times_slower", "the paper")]
    if all(row["crypten_times_slower"] for row in rows):
        sides.append(("crypten_times_slower", "CrypTen 0.4.1"))
    for number, (column, name) in enumerate(sides):
        axes.bar(place + 0.27 * (number - 1), [row[column] for row in rows], 0.25, label=name)
    axes.set_xticks(place, names, fontsize=SMALL - 1)
    axes.set(ylabel="times slower than plain PyTorch", yscale="log")


_DRAWERS: dict[str, tuple[str, Callable[[Axes, Rows], None]]] = {
    "1": ("Figure 1: reward over time for four eps", _one),
    "2": ("Figure 2: reward against privacy, for three lengths of a run", _two),
    "3": ("Figure 3: time of a step against arms", _three),
    "4": ("Figure 4: time of a step against parties", _four),
    "5": ("Figure 5: reward against privacy, for several numbers of arms", partial(_against_eta, "arms", "{} arms")),
    "6": ("Figure 6: membership inference during training", _six),
    "7": ("Figure 7: reward against fraction bits, two truncations", _seven),
    "8": ("Figure 8: reward against Newton iterations of the reciprocal", _eight),
    "table1": ("Table 1: operations, two parties, 100 arms", _slower),
}

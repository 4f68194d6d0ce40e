"""The pictures of HELBA's figures, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..bench.helba import PAPER
from .style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PANEL,
    PINK,
    RED,
    SKY,
    SMALL,
    TWIN,
    band,
    each,
    legend,
    lines,
    mean_line,
    of,
    page,
)
from .units import Rows

_COLOURS = {"OFUL": BLUE, "RSOFUL": RED, "RSOFUL-TR": GREEN, "HELBA": PINK, "HELBA, on ciphertexts": SKY}
_SHARES = "HELBA, on shares"  # on top of HELBA, whose arms it pulls


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the picture of a figure."""
    title, drawer = _DRAWERS[figure]
    with page(path, 7 if figure in ("1", "time", "table1") else 11, 4.6, title) as canvas:
        drawer(canvas, rows)


def _regret(canvas: Figure, rows: Rows) -> None:
    axes = canvas.subplots()
    runs = each(rows, "run")
    for policy in each(rows, "policy"):
        some = of(rows, policy=policy)
        own = each(some, "run")
        name = policy if len(own) == len(runs) else f"{policy}, run {own[0]} alone"
        how: dict[str, Any] = TWIN if policy == _SHARES else {"color": _COLOURS[policy]}
        mean_line(axes, some, "t", "regret", name, **how)
    axes.set(xlabel="t", ylabel="cumulative regret", ylim=(0, None))
    axes.set_title(f"means of {len(runs)} runs", fontsize=PANEL)
    legend(canvas, axes, ncols=3)


def _by_rule(canvas: Figure, rows: Rows) -> None:
    """A panel for each problem: the mean, and two standard errors."""
    problems = each(rows, "problem")
    panels = canvas.subplots(1, len(problems), squeeze=False, sharey=True)[0]
    for axes, problem in zip(panels, problems):
        some = of(rows, problem=problem)
        rules = each(some, "rule")
        for place, rule in enumerate(rules):
            regret = np.array([row["regret"] for row in of(some, rule=rule)])
            updates = np.mean([row["updates"] for row in of(some, rule=rule)])
            axes.errorbar(place, regret.mean(), 2.0 * regret.std() / len(regret) ** 0.5, fmt="o", capsize=3, color=BLUE)
            axes.annotate(f" {updates:.0f}", (place, regret.mean()), fontsize=SMALL)
        axes.set_xticks(range(len(rules)), rules, fontsize=SMALL)
        axes.set(ylabel="regret")
        axes.set_title(f"{problem}, T = {some[0]['T']:,}; beside each point its updates", fontsize=PANEL)
    panels[0].set_ylim(bottom=0)


def _updates(canvas: Figure, rows: Rows) -> None:
    left, right = canvas.subplots(1, 2)
    for policy in each(rows, "policy"):
        some = of(rows, policy=policy)
        if policy != "OFUL":
            band(left, some, "T", "updates", policy, "o-", markersize=3, color=_COLOURS[policy])
        band(right, some, "T", "regret", policy, "o-", markersize=3, color=_COLOURS[policy])
    left.set(xlabel="T", xscale="log", ylabel="updates; OFUL has T")
    right.set(xlabel="T", xscale="log", yscale="log", ylabel="regret")
    reach = np.array(sorted(each(rows, "T")), float)
    right.plot(reach, np.sqrt(reach), "k:", label="sqrt(T)")
    legend(canvas, right, ncols=5)


def _time(canvas: Figure, rows: Rows) -> None:
    axes = canvas.subplots()
    colours = {"on shares": BLUE, "dealing": ORANGE, "in the clear": GREY}
    lines(axes, rows, "what", "T", "seconds", markersize=3, colours=colours)
    axes.plot(*PAPER, "k*", label="the paper, encrypted")
    axes.set(xlabel="T", ylabel="seconds", xscale="log", yscale="log")
    places = sorted(each(rows, "T"))
    axes.set_xticks(places, [f"{place:,}" for place in places])
    axes.minorticks_off()
    legend(canvas, axes)


def _security(canvas: Figure, rows: Rows) -> None:
    axes = canvas.subplots()
    first = rows[0]["cpu_seconds_per_step"]
    for place, row in enumerate(rows):
        spent = row["cpu_seconds_per_step"]
        axes.bar(place, spent, 0.5, color=BLUE)
        said = f"{spent:.1f} s, x {spent / first:.2f}\nN = {row['degree']:,}"
        axes.annotate(said, (place, spent), ha="center", va="bottom", fontsize=SMALL)
    axes.set_xticks(range(len(rows)), [f"{row['security']} bits" for row in rows], fontsize=PANEL)
    axes.set(ylabel="seconds of the processor, a step", ylim=(0, 1.25 * max(r["cpu_seconds_per_step"] for r in rows)))


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "1": ("HELBA, Figure 1: regret in the paper's problem", _regret),
    "batches": ("Regret by what ends a batch", _by_rule),
    "updates": ("Updates and regret, new features at each step, d = 2, K = 2", _updates),
    "time": ("Time of a run of the paper's problem, two parties and the users on one machine", _time),
    "table1": ("Time of a step on ciphertexts against the level of security", _security),
}

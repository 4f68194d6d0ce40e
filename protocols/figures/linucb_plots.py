"""The pictures of the LinUCB-DS figures, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..run.picture import picture
from .style import PANEL, SMALL, each, legend, lines, mean_line, of, stacked
from .units import Rows

_ROLES = ("Comp", "P", "DO", "DC")


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the PNG of a figure."""
    title, drawer = _DRAWERS[figure]
    with picture(path, 11, 7, dpi=110) as canvas:
        bits = next(row["bits"] for row in rows if row.get("bits"))
        canvas.suptitle(f"{title}; Paillier's keys have {bits} bits", fontsize=11)
        drawer(canvas, rows)


def _times(canvas: Figure, rows: Rows) -> None:
    """A row of panels for each policy: N, d, K."""
    policies = each(rows, "policy")
    panels = canvas.subplots(len(policies), 3, squeeze=False)
    for line, policy in zip(panels, policies):
        for axes, varied in zip(line, ("N", "d", "K")):
            some = of(rows, policy=policy, varied=varied)
            lines(axes, some, "mode", varied, "seconds", markersize=3)
            axes.set(xlabel=varied if varied != "K" else "K, the arms", ylabel="seconds", yscale="log")
            if some:
                axes.set_title(f"{policy}, {_fixed(some, varied)}", fontsize=PANEL)
            else:
                axes.axis("off")
    legend(canvas, panels[0][0])


def _fixed(rows: Rows, varied: str) -> str:
    row = rows[0]
    spectral = len({row["d"] for row in rows}) > 1 and varied == "K"
    same = [f"{name} = {row[name]}" for name in ("N", "d", "K") if name != varied and not (spectral and name == "d")]
    return ", ".join([*same, *(["d = K"] if spectral else [])])


def _shares_and_rewards(canvas: Figure, rows: Rows) -> None:
    panels = canvas.subplots(1, 3, width_ratios=(1.2, 1, 1))
    worked = of(rows, panel="work")
    _shares(panels[0], worked)
    for axes, policy in zip(panels[1:], each(worked, "policy")):
        some = of(rows, panel="reward", policy=policy)
        _rewards(axes, some)
        axes.set_title(f"{policy}, K = {some[0]['K']}, {len(each(some, 'user'))} users", fontsize=PANEL)


def _shares(axes: Axes, rows: Rows) -> None:
    bars = stacked(axes, rows, ("policy", "K"), "role", _ROLES, "{part}: {least:.1f} to {most:.1f} %")
    names = [f"{policy.removesuffix('-DS')}\nK = {arms}" for policy, arms in bars]
    axes.set_xticks(range(len(bars)), names, fontsize=SMALL)
    axes.set(ylabel="% of the processors' time, keys aside")
    axes.set_title(f"as published, N = {rows[0]['N']}", fontsize=PANEL)
    axes.legend(fontsize=SMALL, loc="lower left")


def _rewards(axes: Axes, rows: Rows) -> None:
    for column, label, style in (
        ("reward", "told to DC", "o-"), ("float64", "float64", "x:"), ("best", "best arm, on average", "k:"),
        ("random", "random arms, on average", "k--"),
    ):  # fmt: skip
        mean_line(axes, rows, "N", column, label, style, markersize=4, linewidth=1.0)
    axes.set(xlabel="N", ylabel="cumulative reward, mean over users")
    axes.legend(fontsize=SMALL)


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "6": ("Figure 6: time of a run on MovieLens against N, d and K", _times),
    "7": ("Figure 7: work of each participant, and cumulative reward", _shares_and_rewards),
}

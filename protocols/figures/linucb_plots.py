"""The pictures of the LinUCB-DS figures, drawn from their rows alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PANEL,
    PINK,
    RED,
    SMALL,
    TWIN,
    each,
    legend,
    lines,
    mean_line,
    mean_of,
    of,
    page,
    stacked,
)
from .units import Rows

_PARTS = {"decryptions": BLUE, "fresh r^n": ORANGE, "indices": RED, "estimate": GREEN, "the rest": GREY}
_STEPS = {"decryptions": "4.i, decryptions", "indices": "3.ii, indices", "estimate": "3.i, in the clear"}
_POLICIES = {"LinUCB-DS": BLUE, "SpectralUCB-DS": RED}
_MODES = {"classic": RED, "mpc, arms shown": BLUE, "mpc, arms hidden": GREEN, "plaintext": GREY}
_ROLES = {"Comp": BLUE, "P": ORANGE, "DO": GREEN, "DC": PINK}
_STYLES = ("o-", "s--")  # on one core, and on all


def draw(figure: str, rows: Rows, path: Path) -> None:
    """Write the picture of a figure."""
    title, drawer = _DRAWERS[figure]
    bits = next(row["bits"] for row in rows if row.get("bits"))
    wide = figure in ("modes", "work")
    with page(path, 11 if wide else 7, 7 if figure == "modes" else 4.6, f"{title}; keys of {bits} bits") as canvas:
        drawer(canvas, rows)


def _cores(canvas: Figure, rows: Rows) -> None:
    """A bar for each number of cores, means over runs."""
    axes, cores = canvas.subplots(), sorted(each(rows, "cores"))
    bars = [
        {_STEPS.get(part, part): mean_of(of(rows, cores=count, part=part), "seconds") for part in _PARTS}
        for count in cores
    ]
    stacked(axes, bars, {_STEPS.get(part, part): colour for part, colour in _PARTS.items()})
    axes.set_xticks(range(len(cores)), [str(count) for count in cores])
    axes.set(xlabel="cores", ylabel="seconds")
    row = rows[0]
    axes.set_title(
        f"K = {row['K']}, d = {row['d']}, N = {row['N']}; mean of {len(each(rows, 'run'))} runs", fontsize=PANEL
    )
    legend(canvas, axes, ncols=3)


def _against_arms(canvas: Figure, rows: Rows) -> None:
    """A line for each policy, on one core and on all."""
    axes = canvas.subplots()
    for policy in each(rows, "policy"):
        for style, cores in zip(_STYLES, sorted(each(rows, "cores"))):
            whole: dict[tuple[int, int], float] = {}
            for row in of(rows, policy=policy, cores=cores):
                whole[row["K"], row["run"]] = whole.get((row["K"], row["run"]), 0.0) + row["seconds"]
            some = [{"K": arms, "seconds": seconds} for (arms, _), seconds in whole.items()]
            name = f"{policy}, {cores} core{'s' * (cores > 1)}"
            mean_line(axes, some, "K", "seconds", name, style, color=_POLICIES[policy], markersize=4)
    pulls = each(rows, "N")
    axes.set(xlabel="K", ylabel="seconds", ylim=(0, None))
    axes.set_title(f"d = K / 10, N = {pulls[0]}" if len(pulls) == 1 else "K = N = d", fontsize=PANEL)
    legend(canvas, axes, ncols=2)


def _times(canvas: Figure, rows: Rows) -> None:
    """A row of panels for each policy: N, d, K."""
    policies = each(rows, "policy")
    panels = canvas.subplots(len(policies), 3, squeeze=False, sharey=True)
    for line, policy in zip(panels, policies):
        for axes, varied in zip(line, ("N", "d", "K")):
            some = of(rows, policy=policy, varied=varied)
            lines(axes, some, "mode", varied, "seconds", markersize=3, colours=_MODES)
            axes.set(xlabel=varied if varied != "K" else "K, the arms", yscale="log")
            if some:
                axes.set_title(f"{policy}, {_fixed(some, varied)}", fontsize=PANEL)
            else:
                axes.axis("off")
        line[0].set_ylabel("seconds")
    legend(canvas, panels[0][0])


def _fixed(rows: Rows, varied: str) -> str:
    row = rows[0]
    spectral = len({row["d"] for row in rows}) > 1 and varied == "K"
    same = [f"{name} = {row[name]}" for name in ("N", "d", "K") if name != varied and not (spectral and name == "d")]
    return ", ".join([*same, *(["d = K"] if spectral else [])])


def _shares_and_rewards(canvas: Figure, rows: Rows) -> None:
    left, *others = canvas.subplots(1, 3, width_ratios=(1.2, 1, 1))
    others[1].sharey(others[0])
    others[0].set_ylabel("less than the best arm brings")
    worked = of(rows, panel="work")
    _shares(left, worked)
    for axes, policy in zip(others, each(worked, "policy")):
        some = of(rows, panel="reward", policy=policy)
        _rewards(axes, some)
        axes.set_title(f"{policy}, K = {some[0]['K']}, {len(each(some, 'user'))} users", fontsize=PANEL)
    legend(canvas, left, *others)


def _shares(axes: Axes, rows: Rows) -> None:
    bars = list(dict.fromkeys((row["policy"], row["K"]) for row in rows))
    shares = [{row["role"]: 100.0 * row["share"] for row in of(rows, policy=policy, K=arms)} for policy, arms in bars]
    stacked(axes, shares, _ROLES)
    names = [f"{policy.removesuffix('-DS')}\nK = {arms}" for policy, arms in bars]
    axes.set_xticks(range(len(bars)), names, fontsize=SMALL)
    axes.set(ylabel="% of the processors' time, keys aside")
    axes.set_title(f"as published, N = {rows[0]['N']}", fontsize=PANEL)


def _rewards(axes: Axes, rows: Rows) -> None:
    """Beside what always the best arm would have brought: on a scale from 0 all lie on one line."""
    lost = [{**row, **{name: row["best"] - row[name] for name in ("reward", "float64", "random")}} for row in rows]
    mean_line(axes, lost, "N", "random", "random arms, on average", "--", color=GREY)
    mean_line(axes, lost, "N", "reward", "as told to DC", "o-", color=BLUE, markersize=4)
    mean_line(axes, lost, "N", "float64", "float64", **TWIN)
    axes.set(xlabel="N")


_DRAWERS: dict[str, tuple[str, Callable[[Figure, Rows], None]]] = {
    "6a": ("Figure 6a: time of a run as published against cores", _cores),
    "6b": ("Figure 6b: time of a run as published against cores", _cores),
    "6c": ("Figure 6c: time of a run as published against K", _against_arms),
    "7": ("Figure 7: time of both policies as published against K", _against_arms),
    "115s": ("The run that took the paper 115 s", _cores),
    "modes": ("Time of a run on MovieLens against N, d and K", _times),
    "work": ("Work of each participant, and cumulative reward", _shares_and_rewards),
}

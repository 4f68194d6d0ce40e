"""Pictures of attacks.  A door to matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import matplotlib

from bandits.attacks import Row

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def advantages(rows: Sequence[Row], title: str, path: Path) -> None:
    """Advantage against steps with its interval, a line for each adversary, a panel for each attack."""
    attacks = [(name, list(found)) for name, found in groupby(rows, key=lambda row: row.attack)]
    figure, panels = plt.subplots(
        1, len(attacks), figsize=(4.5 * len(attacks), 4.5), layout="constrained", squeeze=False
    )
    for axes, (name, found) in zip(panels[0], attacks, strict=True):
        for knows, line in groupby(found, key=lambda row: row.knows):
            points = list(line)
            values = [100 * point.advantage.value for point in points]
            below = [100 * (point.advantage.value - point.advantage.lower) for point in points]
            above = [100 * (point.advantage.upper - point.advantage.value) for point in points]
            steps = [point.step for point in points]
            axes.errorbar(steps, values, [below, above], marker="o", markersize=3, capsize=2, label=knows)
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set(xlabel="step", ylabel="advantage, %", title=name)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="small")
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)

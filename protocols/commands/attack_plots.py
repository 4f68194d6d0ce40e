"""Pictures of attacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from bandits.attacks import Row

from ..run.picture import picture


def advantages(rows: Sequence[Row], title: str, path: Path) -> None:
    """Advantage against steps with its interval, a line for each adversary, a panel for each attack."""
    attacks = [(name, list(found)) for name, found in groupby(rows, key=lambda row: row.attack)]
    with picture(path, 4.5 * len(attacks), 4.5) as canvas:
        panels = canvas.subplots(1, len(attacks), squeeze=False)
        for axes, (name, found) in zip(panels[0], attacks, strict=True):
            for knows, line in groupby(found, key=lambda row: row.knows):
                points = [(row.step, row.advantage) for row in line]
                values = [100 * found.value for _, found in points]
                below = [100 * (found.value - found.lower) for _, found in points]
                above = [100 * (found.upper - found.value) for _, found in points]
                steps = [step for step, _ in points]
                axes.errorbar(steps, values, [below, above], marker="o", markersize=3, capsize=2, label=knows)
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.set(xlabel="step", ylabel="advantage, %", title=name)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="small")
        canvas.suptitle(title)

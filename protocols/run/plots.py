"""Reward curves of a run.  Knows numbers; no result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .picture import picture


def curves(rows: Sequence[tuple[np.ndarray, str, str]], *, x: str, y: str, title: str, path: Path) -> None:
    """Each row a curve from step 1 on: values, label, style; a single value is a point at the last step."""
    steps = np.arange(1, max(len(values) for values, _, _ in rows) + 1)
    with picture(path, 7, 4) as canvas:
        axes = canvas.subplots()
        for values, label, style in rows:
            width, at = 0.8 if style.startswith("k") else 1.5, steps[-1:] if len(values) == 1 < len(steps) else steps
            axes.plot(at, values, style, label=label, linewidth=width)
        axes.set(xlabel=x, ylabel=y, title=title)
        axes.legend(fontsize=8)


def paid_so_far(
    rewards: np.ndarray, told: float, *, best: float, mean: float, title: str, path: Path
) -> None:  # fmt: skip
    """Cumulative reward of a reference in the clear; what the best arm and random arms pay on average; what DC learned.

    Rewards of the run itself are nobody's to see: the reference plays with the same coins.
    """
    pulls = np.arange(1, len(rewards) + 1)
    rows = [
        (np.cumsum(rewards), "reference, in the clear", "-"),
        (pulls * best, "always the best arm, on average", "k:"),
        (pulls * mean, "random arms, on average", "k--"),
        (np.array([told]), "told to DC", "o"),
    ]
    curves(rows, x="pull", y="cumulative reward", title=title, path=path)

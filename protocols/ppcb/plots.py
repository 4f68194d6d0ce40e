"""Pictures of a run.  A door to matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from .run import Run

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def reward_curve(run: Run, path: Path) -> None:
    """Average reward so far against steps: the private run, its plaintext twin below it, and what needs no context."""
    steps = np.arange(1, run.steps + 1)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    curves = [(run.twin_rewards, "plaintext twin", "C0--"), (run.rewards, "private", "C1-")]
    curves += [(run.baselines[name], name, style) for name, style in zip(sorted(run.baselines), ("k-.", "k:"))]
    for rewards, label, style in curves:
        if rewards is not None:
            mean = (rewards.cumsum(axis=0) / steps[:, None]).mean(axis=1)
            axes.plot(steps, mean, style, label=label, linewidth=0.7 if style.startswith("k") else 1.5)
    title = f"{run.settings.policy.value}, eps = {run.settings.eps:g}, {run.parties} parties"
    axes.set(xlabel="step", ylabel="average reward so far", title=title)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)

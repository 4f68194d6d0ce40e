"""Pictures of a run.  A door to matplotlib.

Rewards are nobody's to see: what is drawn is the reference, which plays with the same coins in the clear, and the one
number that the protocol tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from bandits.linear_problem import LinearProblem

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def reward_curve(problem: LinearProblem, rewards: Sequence[float], told: float, title: str, path: Path) -> None:
    """Cumulative reward against pulls: of the reference, the best arm and random arms; and what DC learned."""
    pulls = np.arange(1, len(rewards) + 1)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(pulls, np.cumsum(rewards), label="reference, in the clear")
    axes.plot(pulls, pulls * problem.best, ":", color="black", linewidth=0.8, label="always the best arm, on average")
    mean = float((problem.arms @ problem.theta).mean())
    axes.plot(pulls, pulls * mean, "--", color="black", linewidth=0.8, label="random arms, on average")
    axes.plot([len(rewards)], [told], "o", label="told to DC")
    axes.set(xlabel="pull", ylabel="cumulative reward", title=title)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)

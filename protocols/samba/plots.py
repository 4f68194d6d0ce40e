"""Pictures of a run.  A door to matplotlib.

Rewards are each owner's own: what is drawn is the reference, which plays with the same coins in the clear, and the one
number that DC learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from bandits.samba import BernoulliArms

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def reward_curve(arms: BernoulliArms, pulled: Sequence[int], seed: bytes, title: str, path: Path) -> None:
    """Cumulative reward against pulls: of the reference, of the best arm and of random arms; and what DC learned."""
    rewards = [arms.reward(seed, int(arm), t) for t, arm in enumerate(pulled, start=1)]
    pulls, total = np.arange(1, len(rewards) + 1), np.cumsum(rewards)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(pulls, total, label="reference, in the clear")
    axes.plot(
        pulls, pulls * arms.means.max(), ":", color="black", linewidth=0.8, label="always the best arm, on average"
    )
    axes.plot(pulls, pulls * arms.means.mean(), "--", color="black", linewidth=0.8, label="random arms, on average")
    axes.plot(pulls[-1:], total[-1:], "o", label="told to DC")
    axes.set(xlabel="pull", ylabel="cumulative reward", title=title)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)

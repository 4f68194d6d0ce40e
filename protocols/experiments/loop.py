"""Evaluate a policy on an environment: choose, be paid, learn.  Knows what a policy can be asked; no system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandits.environments import Environment
from mpc.errors import ConfigError

from .policies import Playable, playable


@dataclass(frozen=True)
class Evaluated:
    """What a policy did.  arms, rewards: (steps,).  regret: (steps,), what the best arm pays more on average, summed.

    best: the same of always the best arm of each context, on average: what a step could be paid.
    """

    arms: np.ndarray = field(repr=False)
    rewards: np.ndarray = field(repr=False)
    regret: np.ndarray = field(repr=False)
    best: float

    @property
    def average_reward(self) -> float:
        """Per step."""
        return float(self.rewards.mean())

    def __repr__(self) -> str:
        steps, regret = len(self.arms), float(self.regret[-1])
        return f"Evaluated(steps={steps}, average_reward={self.average_reward:.4f}, regret={regret:.2f})"


def evaluate(
    policy: Any, environment: Environment, *, steps: int, seed: int = 0, batch: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Evaluated:  # fmt: skip
    """Play so many steps of an episode of the environment, which the seed draws: alike for every policy.

    policy: a `PrivateContextualBandit` with all its parties here, an `EncryptedLinearBandit`, a plaintext policy of
    `bandits`, or whatever has `choose` and `paid` as a `Playable` has.  It goes on learning.
    batch: contexts that are decided on, and learned from, together.  progress: told how many steps are done.
    """
    if steps < 1 or batch < 1:
        raise ConfigError(f"at least 1 step is played in batches of at least 1, not {steps} in batches of {batch}")
    player: Playable = playable(policy, environment.arms, seed)
    episode = environment.episode(steps, seed)
    arms = np.empty(steps, np.int64)
    for start in range(0, steps, batch):
        rows = np.arange(start, min(start + batch, steps))
        arms[rows] = player.choose(episode.contexts[rows])
        player.paid(episode.contexts[rows], arms[rows], episode.outcomes[rows, arms[rows]])
        if progress is not None:
            progress(int(rows[-1]) + 1)
    at, means = np.arange(steps), episode.means
    best = means.max(axis=1)
    return Evaluated(arms, episode.outcomes[at, arms], (best - means[at, arms]).cumsum(), float(best.mean()))

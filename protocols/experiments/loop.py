"""Evaluate a policy on an environment: choose, be paid, learn; or have a system play it whole.  Knows no system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandits.environments import Episode, Episodic
from mpc.errors import ConfigError

from ..run.choices import whole_number
from .named import make
from .policies import Playable, playable
from .whole import Whole


@dataclass(frozen=True)
class Evaluated:
    """What a policy did.  arms, rewards: (steps,).  regret: (steps,), what the best arm pays more on average, summed.

    best: the same of always the best arm of each context, on average: what a step could be paid.
    run: of a system that played it whole, its own result: what it cost, its ledger, its reference.
    """

    arms: np.ndarray = field(repr=False)
    rewards: np.ndarray = field(repr=False)
    regret: np.ndarray = field(repr=False)
    best: float
    run: Any = field(default=None, repr=False)

    @property
    def average_reward(self) -> float:
        """Per step."""
        return float(self.rewards.mean())

    def __repr__(self) -> str:
        steps, regret = len(self.arms), float(self.regret[-1])
        return f"Evaluated(steps={steps}, average_reward={self.average_reward:.4f}, regret={regret:.2f})"


def evaluate(
    policy: Any, environment: Episodic, *, steps: int, seed: int = 0, batch: int = 1, how: str = "",
    progress: Callable[[int], object] | None = None,
) -> Evaluated:  # fmt: skip
    """Play so many steps of an episode of the environment, which the seed draws: alike for every policy.

    policy: a name of `POLICIES`; a `PrivateContextualBandit` with all its parties here, an `EncryptedLinearBandit`, a
    plaintext policy of `bandits`, or whatever has `choose` and `paid` as a `Playable` has, which goes on learning.
    batch: contexts that are decided on, and learned from, together.  how: of a name, as `How` has it; the usual way if
    nothing is said.  progress: told how many steps are done.
    """
    steps, batch, seed = whole_number(steps, "steps", 1), whole_number(batch, "batch", 1), whole_number(seed, "seed", 0)
    if isinstance(policy, str):
        policy = make(policy, environment, steps=steps, seed=seed, how=how)
    elif how:
        raise ConfigError(f"how={how!r} is of policies by name: leave it out, an object is played arm by arm")
    episode, run = environment.episode(steps, seed), None
    if isinstance(policy, Whole):
        arms, run = policy.play(environment, steps, seed, batch, progress)
    else:
        arms = _arm_by_arm(playable(policy, environment, seed), episode, batch, progress)
    at, means = np.arange(steps), episode.means
    best = means.max(axis=1)
    return Evaluated(arms, episode.outcomes[at, arms], (best - means[at, arms]).cumsum(), float(best.mean()), run)


def _arm_by_arm(player: Playable, episode: Episode, batch: int, progress: Callable[[int], object] | None) -> np.ndarray:
    steps = len(episode)
    arms = np.empty(steps, np.int64)
    for start in range(0, steps, batch):
        rows = np.arange(start, min(start + batch, steps))
        arms[rows] = player.choose(episode.contexts[rows])
        if outside := [arm for arm in arms[rows].tolist() if not 0 <= arm < episode.outcomes.shape[1]]:
            raise ConfigError(f"the policy chose arm {outside[0]} of {episode.outcomes.shape[1]}, counted from 0")
        player.paid(episode.contexts[rows], arms[rows], episode.outcomes[rows, arms[rows]])
        if progress is not None:
            progress(int(rows[-1]) + 1)
    return arms

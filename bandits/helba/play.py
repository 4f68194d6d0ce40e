"""One loop for these policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.oful import gap, pick

from .policies import Policy
from .problem import Problem


class Played(NamedTuple):
    """By step: arms, how far the two best indices were apart, and whether a batch ended.  regret: of all steps."""

    arms: np.ndarray
    gaps: np.ndarray
    ends: np.ndarray
    regret: float


def play(policy: Policy, problem: Problem, ties: np.ndarray | None = None) -> Played:
    """Choose, be paid, learn.  ties: (T, K) ranks; the largest wins among equal indices, by default the first arm's."""
    arms, gaps, ends = [], [], []
    first = np.arange(problem.arms, 0, -1)
    for step, (x, rewards) in enumerate(zip(problem.features, problem.rewards)):
        indices = policy.indices(x).tolist()
        arm = pick(indices, first if ties is None else ties[step])
        arms.append(arm)
        gaps.append(gap(indices))
        ends.append(policy.learn(x[arm], float(rewards[arm])))
    pulled = np.array(arms)
    return Played(pulled, np.array(gaps), np.array(ends), float(problem.lost(pulled).sum()))

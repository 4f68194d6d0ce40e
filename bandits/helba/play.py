"""One loop for these policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.oful import gap

from .policies import Policy
from .problem import Problem


class Played(NamedTuple):
    """By step: arms, how far the two best indices were apart, and whether a batch ended.  regret: of all steps."""

    arms: np.ndarray
    gaps: np.ndarray
    ends: np.ndarray
    regret: float


def play(policy: Policy, problem: Problem, like: np.ndarray | None = None, *, near: float = 0.0) -> Played:
    """Choose, be paid, learn.  The first of equal indices is pulled.

    like: (T,) arms of another run.  Where that arm's index is at most `near` below the largest, it is pulled here as
    well: a run with other roundings is this one as long as it breaks near ties alone.
    """
    arms, gaps, ends = [], [], []
    for step, (x, rewards) in enumerate(zip(problem.features, problem.rewards)):
        indices = policy.indices(x)
        arm = int(indices.argmax())
        if like is not None and indices[arm] - indices[like[step]] <= near:
            arm = int(like[step])
        arms.append(arm)
        gaps.append(gap(indices.tolist()))
        ends.append(policy.learn(x[arm], float(rewards[arm])))
    pulled = np.array(arms)
    return Played(pulled, np.array(gaps), np.array(ends), float(problem.lost(pulled).sum()))

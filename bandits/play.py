"""One loop for every plaintext policy.  Knows policies and episodes; yields flat records, plots nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .environments import Episode
from .linear import Choice, LinearBandit


class Record(NamedTuple):
    """One step of all replicas: (replicas,) arms and rewards, and how far apart the two largest ranks were."""

    step: int
    arms: np.ndarray
    rewards: np.ndarray
    gaps: np.ndarray


def play(
    policy: LinearBandit, episodes: list[Episode], choices: Iterator[Choice], *, batch: int = 1, delay: int = 0
) -> Iterator[Record]:
    """Pull, be paid, learn; an episode for each replica.

    batch: contexts that are decided on, and learned from, together.  delay: how many decisions a reward is late.
    """
    replica = np.arange(len(episodes))[:, None]
    contexts = np.stack([episode.contexts for episode in episodes])
    outcomes = np.stack([episode.outcomes for episode in episodes])
    unpaid: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = deque()
    for first, choice in zip(range(0, contexts.shape[1] - batch + 1, batch), choices):
        steps = np.arange(first, first + batch)
        x = contexts[:, steps]
        scores = policy.scores(x, choice)
        arms = choice.pick(scores)
        rewards = outcomes[replica, steps, arms]
        unpaid.append((x, arms, rewards))
        if len(unpaid) > delay:
            policy.update(*unpaid.popleft())
        yield from (
            Record(*row) for row in zip(steps.tolist(), arms.T, rewards.T, gaps(choice.ranks(scores)).T, strict=True)
        )


def gaps(scores: np.ndarray) -> np.ndarray:
    """How far apart the two largest scores are."""
    if scores.shape[-1] == 1:
        return np.full(scores.shape[:-1], np.inf)
    top = np.partition(scores, -2, axis=-1)[..., -2:]
    return top[..., 1] - top[..., 0]

"""One loop for every plaintext policy.  Knows policies and episodes; yields flat records, plots nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .environments import Episode
from .linear import Choice, LinearBandit


class Record(NamedTuple):
    """One step of all replicas: (replicas,) arms and rewards, and how far apart the two largest scores were."""

    step: int
    arms: np.ndarray
    rewards: np.ndarray
    gaps: np.ndarray


def play(policy: LinearBandit, episodes: list[Episode], choices: Iterator[Choice]) -> Iterator[Record]:
    """Pull, be paid, learn; an episode for each replica."""
    replica = np.arange(len(episodes))
    contexts = np.stack([episode.contexts for episode in episodes], axis=1)
    outcomes = np.stack([episode.outcomes for episode in episodes], axis=1)
    for step, choice in zip(range(len(contexts)), choices):
        scores = policy.scores(contexts[step])
        arms = choice.pick(scores)
        rewards = outcomes[step, replica, arms]
        policy.update(contexts[step], arms, rewards)
        yield Record(step, arms, rewards, _gaps(scores))


def _gaps(scores: np.ndarray) -> np.ndarray:
    if scores.shape[-1] == 1:
        return np.full(scores.shape[:-1], np.inf)
    top = np.partition(scores, -2, axis=-1)[..., -2:]
    return top[..., 1] - top[..., 0]

"""What happens outside the computation: contexts come, the puller acts, and the payer sees what comes of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from bandits.environments import Episode
from mpc.client import ClientProgram, Receive, Send
from mpc.errors import ConfigError, RangeError

from .play import split
from .settings import Settings, Truncation

_COPIES = 4  # of contexts and outcomes: the episodes', those by decision, the twin's, and what is between them
_PER_STEP = 1500  # bytes of a step's arms, rewards and records


def check_memory(settings: Settings, steps: int, *, processes: int = 1) -> None:
    """ConfigError where the episodes of so many steps would not fit, in each of `processes` on this machine."""
    each = _PER_STEP + 8 * _COPIES * settings.replicas * (settings.dim + settings.arms)
    wanted, free = processes * steps * each, _free_memory()
    if wanted > free:
        raise ConfigError(
            f"{steps:,} steps of {settings.replicas:,} replicas take about {wanted / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free: about {free // (processes * each):,} steps fit, or fewer --replicas"
        )


class World:
    """The episodes of all replicas, decision by decision: contexts and outcomes are (decisions, R, B, ...)."""

    def __init__(self, episodes: Sequence[Episode], settings: Settings) -> None:
        self.settings = settings
        self.contexts = _by_decision([episode.contexts for episode in episodes], settings.batch)
        self.outcomes = _by_decision([episode.outcomes for episode in episodes], settings.batch)
        self.arms: list[np.ndarray] = []
        self.rewards: list[np.ndarray] = []
        self._paid = 0.0

    def __len__(self) -> int:
        return len(self.contexts)

    def check_bound(self, parties: int) -> None:
        """RangeError where a context of any step lies beyond its owner's bound, which each owner enforces as well."""
        given = self.settings
        for owner, block in split(self.contexts, parties).items():
            norm = float(np.linalg.norm(block, axis=-1).max(initial=0.0))
            if not norm <= given.bound * (1.0 + 2.0**-given.fraction_bits):
                raise RangeError(
                    f"a block of party {owner} has norm {norm:.6g}, declared is {given.bound:g}: scale it or declare "
                    "more"
                )

    @property
    def average_reward(self) -> float:
        """So far, over all replicas."""
        return self._paid / max(1, sum(rewards.size for rewards in self.rewards[-1:]) * len(self.rewards))

    def act(self, arms: np.ndarray) -> None:
        """The puller pulls (R, B) arms."""
        check_arms(arms, self.settings)
        self.rewards.append(pulled(self.outcomes[len(self.rewards)], arms))
        self.arms.append(arms)
        self._paid += float(self.rewards[-1].sum())

    def puller(self) -> ClientProgram:
        """p': learns the arms, and acts."""
        while True:
            arms = yield Receive((self.settings.replicas, self.settings.batch), 0)
            self.act(arms)

    def payer(self, done: int = 0) -> ClientProgram:
        """p'': shares the rewards of the decision that is due, `done` were made before; before the first, nothing."""
        given = self.settings
        for due in itertools.count(done - given.delay):
            rewards = self.rewards[due] if due >= 0 else np.zeros((given.replicas, given.batch))
            yield Send(rewards, given.fraction_bits, bound=1.0)


def pulled(outcomes: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """What (..., A) outcomes pay for (...) arms; nothing for an arm that does not exist."""
    exists = (arms >= 0) & (arms < outcomes.shape[-1])
    return np.where(exists, np.take_along_axis(outcomes, np.where(exists, arms, 0)[..., None], axis=-1)[..., 0], 0.0)


def check_arms(arms: np.ndarray, settings: Settings) -> None:
    """The puller's own look at what it was told: published truncation may lose a run's numbers, exact may not."""
    if settings.truncation is Truncation.EXACT and not ((arms >= 0) & (arms < settings.arms)).all():
        raise RangeError(f"the puller was told an arm beyond {settings.arms - 1}: a context or reward left its range")


def by_step(rows: Sequence[np.ndarray]) -> np.ndarray:
    """(decisions, R, B) as (steps, R): a step is one context of each replica."""
    stacked = np.stack(rows)
    return stacked.swapaxes(1, 2).reshape(-1, stacked.shape[1])


def _free_memory() -> int:
    """Bytes that this machine, or the container around it, still has."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), free)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / name).read_text() for name in ("memory.max", "memory.current"))
        free = min(free, int(limit) - int(used))
    return free


def _by_decision(rows: Sequence[np.ndarray], batch: int) -> np.ndarray:
    stacked = np.stack(rows)  # (R, steps, ...)
    whole = stacked.shape[1] // batch
    cut = stacked[:, : whole * batch].reshape(len(rows), whole, batch, *stacked.shape[2:])
    return np.ascontiguousarray(cut.swapaxes(0, 1))

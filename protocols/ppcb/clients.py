"""What happens outside the computation: contexts come, the puller acts, and the payer sees what comes of it.

puller   learns the arms, and acts: notes them, and tells the payer's side of the world
payer    sees what came of the arm, and shares the reward
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bandits.environments import Episode
from mpc.client import ClientProgram, Receive, Send
from mpc.errors import ConfigError, RangeError

from ..run.program import Desk
from .player import split
from .settings import Settings, Truncation

_COPIES = 4  # of contexts and outcomes: the episodes', those by decision, the twin's, and what is between them
_PER_STEP = 1500  # bytes of a step's arms, rewards and records


def check_memory(settings: Settings, steps: int) -> None:
    """ConfigError where the episodes of so many steps would not fit."""
    each = _PER_STEP + 8 * _COPIES * settings.replicas * (settings.dim + settings.arms)
    wanted, free = steps * each, _free_memory()
    if wanted > free:
        raise ConfigError(
            f"{steps:,} steps of {settings.replicas:,} replicas take about {wanted / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free: about {free // each:,} steps fit, or fewer --replicas"
        )


class World:
    """The episodes of all replicas, decision by decision: contexts and outcomes are (decisions, R, B, ...)."""

    def __init__(self, episodes: Sequence[Episode], settings: Settings) -> None:
        self.settings, self.episodes = settings, list(episodes)
        self.contexts = _by_decision([episode.contexts for episode in episodes], settings.batch)
        self.outcomes = _by_decision([episode.outcomes for episode in episodes], settings.batch)

    def __len__(self) -> int:
        return len(self.contexts)

    def check_ranges(self, parties: int) -> None:
        """RangeError where a context lies beyond its owner's bound, or a reward outside the range, at any step.

        Each owner, and the payer, enforces its own as well.
        """
        given = self.settings
        for owner, block in split(self.contexts, parties, given.widths).items():
            norm = float(np.linalg.norm(block, axis=-1).max(initial=0.0))
            if not norm <= given.bound * (1.0 + 2.0**-given.fraction_bits):
                raise RangeError(
                    f"a block of party {owner} has norm {{}}, declared is {given.bound:g}: scale it or declare more",
                    own=f"{norm:.6g}",
                )
        check_rewards(self.outcomes, given)


def puller(settings: Settings, decisions: int, desk: Desk) -> ClientProgram:
    """p': learns the arms, and acts."""
    desk.tell_last()
    for _ in range(desk.start, decisions):
        arms = yield Receive((settings.replicas, settings.batch), 0)
        check_arms(arms, settings)
        desk.note(arms)
        desk.tell(arms)


def payer(
    outcomes: np.ndarray | None, settings: Settings, decisions: int, desk: Desk, paid: Tally | None = None
) -> ClientProgram:
    """p'': shares the rewards of the decision that is due; before the first, nothing.

    outcomes: what every arm would have paid; None where the rewards themselves are heard, each when it is due: so one
    may come `delay` decisions late, and of the last ones none is waited for.
    """
    if outcomes is None:
        yield from _paid_outside(settings, decisions, desk)
        return
    check_rewards(outcomes, settings)
    shape, bound = (settings.replicas, settings.batch), settings.reward
    before = [np.zeros(shape)] * settings.delay
    before += [pulled(*pair) for pair in zip(outcomes, desk.noted(shape))]
    unpaid = deque(before[desk.start :])  # of the last `delay` decisions
    for at in range(desk.start, decisions):
        if settings.delay:
            yield Send(unpaid.popleft(), settings.fraction_bits, bound=bound)
        rewards = pulled(outcomes[at], desk.hear(shape))
        unpaid.append(rewards)
        if paid is not None:
            paid.add(rewards)
        if not settings.delay:
            yield Send(unpaid.popleft(), settings.fraction_bits, bound=bound)


def _paid_outside(settings: Settings, decisions: int, desk: Desk) -> ClientProgram:
    shape = settings.replicas, settings.batch
    desk.hear_from(settings.delay, shape)
    for at in range(desk.start, decisions):
        rewards = np.zeros(shape)
        if at >= settings.delay:
            rewards = desk.hear(shape, partial(check_rewards, settings=settings))
        yield Send(rewards, settings.fraction_bits, bound=settings.reward)


@dataclass
class Tally:
    """What was paid, where the payer is in the process that wants to know."""

    count: int = 0
    total: float = field(default=0.0, repr=False)

    def add(self, rewards: np.ndarray) -> None:
        """Some more."""
        self.count += rewards.size
        self.total += float(rewards.sum())

    @property
    def average(self) -> float:
        """So far, over all replicas."""
        return self.total / max(1, self.count)


def pulled(outcomes: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """What (..., A) outcomes pay for (...) arms; nothing for an arm that does not exist."""
    exists = (arms >= 0) & (arms < outcomes.shape[-1])
    return np.where(exists, np.take_along_axis(outcomes, np.where(exists, arms, 0)[..., None], axis=-1)[..., 0], 0.0)


def check_rewards(outcomes: np.ndarray, settings: Settings) -> None:
    """RangeError where a reward lies outside the declared range, for which the words have room."""
    low, high = settings.reward_range
    wrong = outcomes[~((outcomes >= low) & (outcomes <= high))]
    if wrong.size:
        raise RangeError(
            f"a reward is {{}}, declared is {low:g} to {high:g}: scale rewards, or declare more with --reward-range",
            own=f"{wrong.flat[0]:.6g}",
        )


def check_arms(arms: np.ndarray, settings: Settings) -> None:
    """The puller's own look at what it was told: published truncation may lose a run's numbers, exact may not."""
    if settings.truncation is Truncation.EXACT and not ((arms >= 0) & (arms < settings.arms)).all():
        raise RangeError(f"the puller was told an arm beyond {settings.arms - 1}: a context or reward left its range")


def by_step(rows: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """(decisions, R, B) as (steps, R): a step is one context of each replica."""
    stacked = np.stack(list(rows))
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

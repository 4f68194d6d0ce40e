"""What a run gave, and how it compares with its plaintext twin.  Knows no share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bandits.environments import Episode
from bandits.linear import Choice, LinearBandit
from bandits.linucb import LinUCB
from bandits.play import play
from bandits.thompson import ThompsonSampling
from mpc.ledger import Entry
from mpc.meter import Cost

from .clients import World, by_step
from .settings import Policy, Settings


@dataclass(frozen=True)
class Difference:
    """Where a replica first pulled another arm than its twin, and how close the twin's two best scores were there."""

    replica: int
    step: int
    gap: float


@dataclass(frozen=True)
class Run:
    """What a run gave: (steps, replicas) arms and rewards, the twin's where coins are known, costs and the ledger.

    baselines: (steps, replicas) rewards of what needs no context, by name.
    further_arms: those that the puller learned beside `arms`, of steps that were played again or were lost.
    arms_per_context: how many it learned about one context, at most.
    """

    settings: Settings
    parties: int
    arms: np.ndarray
    rewards: np.ndarray
    twin_arms: np.ndarray | None
    twin_rewards: np.ndarray | None
    differences: tuple[Difference, ...]
    cost: Cost
    ledger: tuple[Entry, ...]
    seconds: float
    offline_bytes: int
    offline_seconds: float
    baselines: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    further_arms: int = 0
    arms_per_context: int = 1
    state: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # clear words, in simulation

    @property
    def steps(self) -> int:
        return len(self.arms)

    @property
    def regressions(self) -> np.ndarray:
        """[P_a; w_a'] in the clear, (replicas, arms, dim + 1, dim), of a simulated recast."""
        return self.state["table"] * 2.0**-self.settings.state_bits


Compared = tuple[np.ndarray, np.ndarray, "np.ndarray | None", "np.ndarray | None", tuple[Difference, ...]]
"""Arms and rewards, (steps, replicas), those of the twin, and where the two first differ."""


def twin_of(settings: Settings) -> LinearBandit:
    """The plaintext policy that these settings make private."""
    size = settings.replicas, settings.arms, settings.dim
    if settings.policy is Policy.LINUCB:
        return LinUCB(*size, ridge=settings.ridge, alpha=settings.alpha)
    if settings.policy is Policy.THOMPSON:
        return ThompsonSampling(*size, ridge=settings.ridge, alpha=settings.alpha)
    return LinearBandit(*size, ridge=settings.ridge)


def beside_twin(settings: Settings, episodes: Sequence[Episode], arms: np.ndarray, coins: Iterator[Choice]) -> Compared:
    """Arms and rewards of a run and of its twin by step, and where the two first differ.

    arms: (decisions, R, B).
    """
    world = World(episodes, settings)
    for pulled in arms:
        world.act(pulled)
    records = list(play(twin_of(settings), list(episodes), coins, batch=settings.batch, delay=settings.delay))
    twin_arms, rewards, gaps = (np.stack(column) for column in list(zip(*records, strict=True))[1:])
    own = by_step(world.arms)
    return own, by_step(world.rewards), twin_arms, rewards, tuple(_first_differences(own, twin_arms, gaps))


def compared_with_nothing(settings: Settings, episodes: Sequence[Episode], arms: np.ndarray) -> Compared:
    """Arms and rewards of a run whose coins nobody here knows."""
    world = World(episodes, settings)
    for pulled in arms:
        world.act(pulled)
    return by_step(world.arms), by_step(world.rewards), None, None, ()


def baselines_of(episodes: Sequence[Episode], steps: int) -> dict[str, np.ndarray]:
    """(steps, replicas) rewards of uniform arms, on average, and of the one arm that would have paid most."""
    outcomes = [episode.outcomes[:steps] for episode in episodes]
    best = [rows[:, rows.sum(axis=0).argmax()] for rows in outcomes]
    uniform = [rows.mean(axis=1) for rows in outcomes]
    return {"uniform arms": np.stack(uniform, axis=1), "best fixed arm": np.stack(best, axis=1)}


def _first_differences(arms: np.ndarray, twin: np.ndarray, gaps: np.ndarray) -> Iterator[Difference]:
    for replica in range(arms.shape[1]):
        at = np.nonzero(arms[:, replica] != twin[:, replica])[0]
        if at.size:
            yield Difference(replica, int(at[0]), float(gaps[at[0], replica]))

"""A whole run in one process: owners, puller and payer, replicas side by side, and the plaintext twin beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bandits.environments import Environment, Episode
from bandits.linear import Choice, LinearBandit
from bandits.play import play
from mpc.client import ClientProgram, Receive, Send
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.session import Session
from mpc.share import Share

from .program import PAYER, PULLER, Settings, State, share_block, step
from .witness import WitnessDealer

Progress = Callable[[int, float], None]
"""Told after each step how many are done and the average reward so far."""


@dataclass(frozen=True)
class Difference:
    """Where a replica first pulled another arm than its twin, and how close the twin's two best scores were there."""

    replica: int
    step: int
    gap: float


@dataclass(frozen=True)
class Run:
    """What a run gave: (steps, replicas) arms and rewards, the twin's rewards, costs and the ledger."""

    settings: Settings
    parties: int
    arms: np.ndarray
    rewards: np.ndarray
    twin_rewards: np.ndarray
    differences: tuple[Difference, ...]
    cost: Cost
    ledger: tuple[Entry, ...]
    seconds: float
    offline_bytes: int
    offline_seconds: float
    state: np.ndarray | None = field(default=None, repr=False)  # (replicas, arms, dim + 1, dim), in simulation

    @property
    def steps(self) -> int:
        return len(self.arms)


class World:
    """What happens outside the computation: the puller acts, and the payer sees what comes of it."""

    def __init__(self, episodes: list[Episode]) -> None:
        self.contexts = np.stack([episode.contexts for episode in episodes], axis=1)
        self._outcomes = np.stack([episode.outcomes for episode in episodes], axis=1)
        self.arms: list[np.ndarray] = []
        self.rewards: list[np.ndarray] = []
        self._paid = 0.0

    @property
    def average_reward(self) -> float:
        """So far, over all replicas."""
        return self._paid / (len(self.rewards) * self.rewards[-1].size)

    def act(self, arms: np.ndarray) -> None:
        """The puller pulls one arm in each replica."""
        replica = np.arange(len(arms))
        self.arms.append(arms)
        self.rewards.append(self._outcomes[len(self.rewards), replica, arms])
        self._paid += float(self.rewards[-1].sum())

    def puller(self, replicas: int) -> ClientProgram:
        """p': learns the arms, and acts."""
        while True:
            arms = yield Receive((replicas,), 0)
            self.act(arms)

    def payer(self, scale: int) -> ClientProgram:
        """p'': shares the reward of what was pulled last."""
        while True:
            yield Send(self.rewards[-1], scale, bound=1.0)


def blocks(dim: int, parties: int) -> list[slice]:
    """Which features each owner holds: neighbouring blocks, as equal as they can be."""
    ends = np.cumsum([len(part) for part in np.array_split(np.arange(dim), parties)])
    return [slice(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends)]


def share_contexts(session: Session, given: Mapping[int, np.ndarray], settings: Settings) -> Share:
    """[x] from the owners' blocks, of which this process has its own; each owner enforces the declared bound."""
    parts = [
        share_block(
            session,
            given.get(owner),
            owner=owner,
            width=part.stop - part.start,
            settings=settings,
            bound=settings.bound,
        )
        for owner, part in enumerate(blocks(settings.dim, session.parties))
    ]
    return Share(session, np.concatenate([part.words for part in parts], axis=-1), settings.fraction_bits)


def split(contexts: np.ndarray, parties: int) -> dict[int, np.ndarray]:
    """Each owner's features of (..., dim) contexts."""
    return {owner: contexts[..., part] for owner, part in enumerate(blocks(contexts.shape[-1], parties))}


def simulate(
    environment: Environment,
    settings: Settings,
    *,
    parties: int,
    steps: int,
    seed: int,
    progress: Progress | None = None,
    dealer: WitnessDealer | None = None,
) -> Run:
    """Play `steps` steps of all replicas, privately and in the clear, with the same contexts, coins and outcomes.

    dealer: one with keys of its own, for a run that can be repeated; a fresh one otherwise.
    """
    episodes = [environment.episode(steps, seed + replica) for replica in range(settings.replicas)]
    world, dealer = World(episodes), dealer or WitnessDealer(parties)
    clients = {PULLER: world.puller(settings.replicas), PAYER: world.payer(settings.state_bits)}
    session = Session.simulate(parties, dealer, clients=clients)
    state = State.start(session, settings)
    for done in range(1, steps + 1):
        session.run(
            step(session, state, share_contexts(session, split(world.contexts[done - 1], parties), settings), settings)
        )
        if progress is not None:
            progress(done, world.average_reward)
    seconds = session.meter.total.seconds - dealer.seconds
    compared = beside_twin(settings, episodes, np.stack(world.arms), list(dealer.choices))
    return Run(
        settings, parties, *compared, session.meter.total, tuple(session.ledger), seconds, dealer.dealt_bytes,
        dealer.seconds, _joined(state.table),
    )  # fmt: skip


def beside_twin(
    settings: Settings, episodes: list[Episode], arms: np.ndarray, choices: list[Choice]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Difference, ...]]:
    """Arms and rewards of a run, its twin's rewards, and where the two first differ."""
    world = World(episodes)
    for pulled in arms:
        world.act(pulled)
    twin = LinearBandit(settings.replicas, settings.arms, settings.dim, ridge=settings.ridge)
    records = list(play(twin, episodes, iter(choices)))
    twin_arms, gaps = np.stack([r.arms for r in records]), np.stack([r.gaps for r in records])
    twin_rewards = np.stack([record.rewards for record in records])
    return arms, np.stack(world.rewards), twin_rewards, tuple(_first_differences(arms, twin_arms, gaps))


def _first_differences(arms: np.ndarray, twin: np.ndarray, gaps: np.ndarray) -> Iterator[Difference]:
    for replica in range(arms.shape[1]):
        at = np.nonzero(arms[:, replica] != twin[:, replica])[0]
        if at.size:
            yield Difference(replica, int(at[0]), float(gaps[at[0], replica]))


def _joined(table: Share) -> np.ndarray:
    """P and w in the clear: the process hosts all parties, and the checks of a simulation look at the state."""
    return table.words.sum(axis=0, dtype=np.uint64).view(np.int64) * 2.0**-table.scale

"""A run of the bandit: what it asks of `protocols.run`, and what it gave, beside its plaintext twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bandits.environments import Episode, Episodic
from bandits.linear import Choice, LinearBandit
from bandits.linucb import LinUCB
from bandits.play import play
from bandits.thompson import ThompsonSampling
from mpc.client import ClientProgram
from mpc.errors import ConfigError
from mpc.ledger import Entry
from mpc.session import Session

from ..run.program import (
    Arrays,
    Brings,
    Counted,
    Desk,
    Ended,
    Facts,
    Fresh,
    Program,
    Role,
    home_of,
    party_name,
)
from .clients import Tally, World, by_step, check_memory, payer, pulled, puller
from .dealt_coins import choices
from .player import Owners, feature_blocks, split
from .program import PAYER, PULLER, check_rows
from .settings import Policy, Settings, Variant


class Bandit(Program["Run"]):
    """The private contextual bandit on an environment: owners of the features are the computing parties.

    world: contexts and outcomes of all steps; None in a role.  data: the environment's name.
    """

    name = "ppcb"
    partial = lasting = recoins = True
    roles = (Role(PULLER, notes="arms.bin"), Role(PAYER))

    def __init__(
        self, settings: Settings, parties: int, steps: int, *, seed: int = 0, data: str = "", world: World | None = None
    ) -> None:
        super().__init__(parties, steps // settings.batch)
        self.settings, self.steps, self.seed, self.data, self._world = settings, steps, seed, data, world
        self.cycle = max(1, settings.refresh or 0)
        self.noted = settings.replicas, settings.batch
        self.paid = Tally()  # where all roles are in this process
        self.options = ""  # those of a command line that made these settings

    @classmethod
    def on(cls, environment: Episodic, settings: Settings, *, parties: int, steps: int, seed: int) -> Bandit:
        """The bandit on an episode of the environment for each replica; replica r is seeded by seed + r."""
        if steps % settings.batch:
            whole = -(-steps // settings.batch) * settings.batch
            raise ConfigError(f"{steps} steps are no whole number of batches of {settings.batch}: play {whole}")
        settings = settings.for_run(parties, steps)
        check_memory(settings, steps)
        world = World(episodes_of(environment, settings, steps, seed), settings)
        world.check_ranges(parties)
        return cls(settings, parties, steps, seed=seed, data=environment.name, world=world)

    @property
    def world(self) -> World:
        """Contexts and outcomes, of whoever starts the run."""
        assert self._world is not None, "a role has its own part of the world"
        return self._world

    def public(self) -> dict[str, Any]:
        """Settings and the run's length."""
        return {"settings": self.settings.as_json(), "parties": self.parties, "steps": self.steps}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Bandit:
        """As a role knows it."""
        return cls(Settings.from_json(given["settings"]), given["parties"], given["steps"])

    def facts(self) -> Facts:
        """What a user gave is compared first, then what follows."""
        given = {"steps": self.steps, "seed": self.seed, "data": self.data, "parties": self.parties}
        return {**given, **self.settings.as_json(), **given, "inputs": self.inputs}

    def blank(self) -> Bandit:
        """Contexts of zeros and the least reward, for one decision."""
        given = replace(self.settings, owners=self.parties)
        least = np.full((given.batch, given.arms), given.reward_range[0])
        nothing = Episode(np.zeros((given.batch, given.dim)), least)
        return Bandit(given, self.parties, given.batch, world=World([nothing] * given.replicas, given))

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """Each owner has its features of every step, the payer what every arm would have paid."""
        blocks = split(self.world.contexts, self.parties, self.settings.widths)
        own: dict[str, Arrays] = {home_of(party): {"features": block} for party, block in blocks.items()}
        return {**own, PAYER: {"outcomes": self.world.outcomes}}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Owners:
        """The owners that this process hosts."""
        features = {party: own[party]["features"] for party in session.hosted}
        return Owners(session, self.settings, features, done=done, kept=kept)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """The puller learns arms, the payer knows rewards."""
        if role == PULLER:
            return puller(self.settings, self.decisions, desk)
        return payer(own.get("outcomes"), self.settings, self.decisions, desk, self.paid)

    def brings(self, role: str) -> Brings:
        """An owner its features, in the order of the parties; the puller and the payer meet the world."""
        blocks = feature_blocks(self.settings.dim, self.parties, self.settings.widths)
        widths = {party_name(party): block.stop - block.start for party, block in enumerate(blocks)}
        return Brings(widths.get(role, 0), self.steps * self.settings.replicas, "context")

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """A row for each context; with replicas, those of a context follow each other."""
        if role in (each.name for each in self.roles):
            return {}
        given = self.settings
        wanted = self.steps * given.replicas
        rows = np.zeros((wanted, 0)) if rows is None else rows[:wanted]
        check_rows(rows, given)
        shape = self.decisions, given.batch, given.replicas, rows.shape[1]
        return {"features": np.ascontiguousarray(rows.reshape(shape).swapaxes(1, 2))}

    def once_a_cycle(self, player: Any) -> None:
        """The refresh."""
        player.refresh()

    def result(self, ended: Ended) -> Run:
        """Arms and rewards, beside the twin's where the coins are known."""
        if not ended.done:
            raise ConfigError("stopped before the first step: there is nothing to report")
        given, arms, coins = self.settings, ended.notes[: ended.done], None
        if ended.coins is not None:
            blocks = range(-(-ended.done // ended.coins.per_block))
            coins = choices(ended.coins.key, ended.items, blocks, given, steps=ended.coins.per_block)
        hosted = len(next(iter(ended.parties.values()))) == self.parties
        further = ended.again * given.replicas * given.batch
        return Run(
            given, self.parties, self.data, *compared(given, self.world, arms, coins), ended,
            baselines_of(self.world.episodes, ended.done * given.batch), further, ended.most,
            {name: _joined(words) for name, words in ended.parties.items() if hosted and "unpaid" not in name},
        )  # fmt: skip

    @property
    def purpose(self) -> tuple[str, str]:
        """Said where material does not fit."""
        cure = f"masked offline plan ppcb {self.options} --steps {self.steps} -o plan.json".replace("  ", " ")
        return f"{self.steps:,} steps, {chosen_for(self.settings)}", cure


@dataclass(frozen=True)
class Difference:
    """Where a replica first pulled another arm than its twin, and how close the twin's two best scores were there."""

    replica: int
    step: int
    gap: float


@dataclass(frozen=True)
class Run(Counted):
    """What a run gave: (steps, replicas) arms and rewards, and the twin's where coins are known.

    baselines: (steps, replicas) rewards of what needs no context, by name.
    further_arms: those that the puller learned beside `arms`, of steps that were played again or were lost.
    arms_per_context: how many it learned about one context, at most.
    state: clear words of what all parties hold, of a simulation.
    """

    settings: Settings
    parties: int
    data: str
    arms: np.ndarray
    rewards: np.ndarray
    twin_arms: np.ndarray | None
    twin_rewards: np.ndarray | None
    differences: tuple[Difference, ...]
    ended: Ended
    baselines: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    further_arms: int = 0
    arms_per_context: int = 1
    state: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def steps(self) -> int:
        return len(self.arms)

    @property
    def ledger(self) -> tuple[Entry, ...]:
        """What the session disclosed; and beside it, what was disclosed of steps that are not in this result."""
        if not self.further_arms:
            return self.ended.ledger
        why = "of a step that was played again, or is not in this result"
        return (*self.ended.ledger, Entry(PULLER, "arm", self.further_arms, why))

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


def compared(settings: Settings, world: World, arms: np.ndarray, coins: Iterator[Choice] | None) -> Compared:
    """Arms and rewards of a run by step, those of its twin, and where the two first differ.

    arms: (decisions, R, B).  coins: None where nobody here knows them, so that no twin is played.
    """
    own = by_step(arms)
    rewards = by_step([pulled(*pair) for pair in zip(world.outcomes, arms)])
    if coins is None:
        return own, rewards, None, None, ()
    records = list(play(twin_of(settings), world.episodes, coins, batch=settings.batch, delay=settings.delay))
    twin_arms, twin_rewards, gaps = (np.stack(column) for column in list(zip(*records, strict=True))[1:])
    return own, rewards, twin_arms, twin_rewards, tuple(_first_differences(own, twin_arms, gaps))


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


def episodes_of(environment: Episodic, settings: Settings, steps: int, seed: int) -> list[Episode]:
    """An episode for each replica; replica r is seeded by seed + r."""
    return [environment.episode(steps, seed + replica) for replica in range(settings.replicas)]


def chosen_for(settings: Settings) -> str:
    """What a run's length led to, in words."""
    if settings.variant is Variant.PUBLISHED:
        return f"{settings.fraction_bits} fraction bits"
    refresh = f"a refresh every {settings.refresh:,} decisions" if settings.refresh else "no refresh"
    return f"{settings.state_bits} state bits and {refresh}"


def _joined(words: np.ndarray) -> np.ndarray:
    """The clear words behind the shares of all parties, which a simulation hosts: checks look at the state."""
    return words.sum(axis=0, dtype=np.uint64).view(np.int64)

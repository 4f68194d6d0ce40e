"""A run on shares: what it asks of `protocols.run`, and what it reached beside the reference with the same coins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bandits.coins import Coins
from bandits.fixed_point import play_fixed, rounded
from bandits.linear_problem import LinearProblem
from bandits.oful import OFUL, play
from mpc.client import ClientProgram
from mpc.correlations import (
    Correlation,
    LineMask,
    LookupMask,
    ProductMask,
    SignTables,
    SquareMask,
    TruncationMask,
)
from mpc.session import Session

from ...run.program import Arrays, Brings, Counted, Desk, Ended, Facts, Fresh, Player, Program, Role, fingerprint
from ..problems import completed
from .clients import customer, owner
from .dealt_coins import own_coins, replayed
from .player import HiddenArms, ShownArms
from .settings import Settings
from .shown import CUSTOMER, OWNER


class Outsourced(Program["Run"]):
    """LinUCB or SpectralUCB on shares.

    seed: of the first arm and the noise that all parties may know.  problem: where theta is known; None in a role.
    """

    name, unit, ending = "linucb-ds", "pull", True
    roles = (Role(OWNER), Role(CUSTOMER, patient=True))

    def __init__(self, settings: Settings, parties: int, seed: int, problem: LinearProblem | None = None) -> None:
        super().__init__(parties, settings.budget)
        self.settings, self.seed, self._problem = settings, seed, problem
        self.idle = 0 if settings.hide else 1  # where arms are shown, the first one is drawn by all alike

    @property
    def problem(self) -> LinearProblem:
        """Arms and theta, of whoever starts the run."""
        assert self._problem is not None, "a role knows no theta"
        return self._problem

    def public(self) -> dict[str, Any]:
        """Settings, and the seed that all parties may know."""
        return {"settings": self.settings.as_json(), "parties": self.parties, "seed": self.seed}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Outsourced:
        """As a role knows it."""
        return cls(Settings.from_json(given["settings"]), given["parties"], given["seed"])

    def facts(self) -> Facts:
        """What arguments name comes first, and what follows from it, such as rounded arms, last."""
        given = self.settings.as_json()
        named = {name: given[name] for name in ("budget", "hide", "kind", "sum_bits")}
        constants = dict(given["constants"])
        eigenvalues = constants.pop("eigenvalues", None)
        theta = fingerprint(rounded(self.problem, self.settings.scales).theta)
        return {
            "parties": self.parties, "seed": self.seed, **named, "noise-kind": given["noise"], **constants,
            "arms": fingerprint(self.settings.arms), "theta": theta, "eigenvalues": eigenvalues,
            "scales": given["scales"],
        }  # fmt: skip

    def blank(self) -> Outsourced:
        """A theta of zeros, and a pull that draws."""
        problem = replace(self.problem, theta=np.zeros(self.settings.dim))
        settings = replace(self.settings, budget=max(self.settings.budget, self.idle + 1))
        return Outsourced(settings, self.parties, 0, problem)

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """DO has theta."""
        return {OWNER: {"theta": rounded(self.problem, self.settings.scales).theta}}

    def player(
        self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int
    ) -> ShownArms | HiddenArms:
        """Arms and noise follow from the seed where they are shown; else nobody knows them."""
        if self.settings.hide:
            return HiddenArms(session, self.settings, done=done, kept=kept)
        coins = own_coins(self.settings, self.seed)
        return ShownArms(session, self.settings, first=coins.first, noise=coins.noise, kept=kept)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """DO shares theta, DC learns the sum."""
        if role == CUSTOMER:
            return customer()
        return owner(own["theta"] if own else np.zeros(self.settings.dim), self.settings, shared=desk.start > 0)

    def brings(self, role: str) -> Brings:
        """DO has theta, or on a graph what each node pays on average: one row."""
        return Brings(self.settings.dim, 1, "theta") if role == OWNER else Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """As it is shared."""
        if rows is None:
            return {}
        return {"theta": rounded(completed(self.problem, rows[0]), self.settings.scales).theta}

    def told(self, role: str, left: Any) -> Facts:
        """DC's sum."""
        return {"cumulative_reward": left * self.settings.unit} if role == CUSTOMER else {}

    def result(self, ended: Ended) -> Run:
        """Arms where they are shown, and the sum as DC learned it."""
        reference = difference = None
        if ended.coins is not None:
            coins = replayed(self.settings, self.seed, ended.coins.key, ended.items)
            reference = Reference.of(self.problem, self.settings, coins)
        known = ended.parties["arms"].tolist() if "arms" in ended.parties else None
        if known is not None and reference is not None:
            difference = first_difference(known, reference)
        arms = None if self.settings.hide else known
        return Run(self.settings, self.parties, arms, ended.left[CUSTOMER], reference, difference, ended)

    @property
    def purpose(self) -> tuple[str, str]:
        """Said where material does not fit."""
        shown = "arms hidden" if self.settings.hide else "arms shown"
        words = f"{self.decisions:,} pulls of {self.settings.count} arms in {self.settings.dim} dimensions, {shown}"
        return words, super().purpose[1]


@dataclass(frozen=True)
class Difference:
    """Where a run first pulled another arm than its reference; gap: between the reference's two best indices there."""

    step: int
    gap: float


@dataclass(frozen=True)
class Reference:
    """arms, rewards: of the reference, by pull.  gaps: between its two best indices, by pull.  word: the sum, in units.

    Exact integers where arms are shown: `word` is what the run must reveal.  Where they are hidden, float64 on the same
    rounded problem.
    """

    arms: list[int]
    rewards: list[float]
    gaps: list[float]
    word: int

    @classmethod
    def of(cls, problem: LinearProblem, settings: Settings, coins: Coins) -> Reference:
        """Play it."""
        if not settings.hide:
            run = play_fixed(problem, coins, settings.scales)
            rewards = [math.ldexp(pull.reward, -settings.scales.reward) for pull in run.pulls]
            return cls(run.arms, rewards, [pull.gap for pull in run.pulls], nearest(run.total, settings))
        exact = rounded(problem, settings.scales)
        pulls = list(play(OFUL(exact.arms, exact.exploration), exact, coins))
        rewards = [pull.reward for pull in pulls]
        word = math.floor(math.fsum(rewards) / settings.unit + 0.5)
        return cls([pull.arm for pull in pulls], rewards, [pull.gap for pull in pulls], word)


@dataclass(frozen=True)
class Run(Counted):
    """A run that reached its end.

    arms: None where nobody may know them.  word: the sum of rewards in units, as its customer learned it.
    reference: None where the coins are the dealer's alone.
    """

    settings: Settings
    parties: int
    arms: list[int] | None
    word: int
    reference: Reference | None
    difference: Difference | None
    ended: Ended

    @property
    def cumulative_reward(self) -> float:
        """The sum of rewards."""
        return self.word * self.settings.unit

    @property
    def reference_reward(self) -> float | None:
        """The reference's sum, rounded alike."""
        return None if self.reference is None else self.reference.word * self.settings.unit

    @property
    def operations(self) -> dict[str, int]:
        """Counts of the whole run: what each pull drew but passed over counts once, at the end."""
        draws, ending = self.settings.budget - (0 if self.settings.hide else 1), self.settings.ending
        end, pull = counted(ending), counted(self.ended.items[len(ending) :])
        return {
            **{name: draws * count + end[name] for name, count in pull.items()},
            "rounds": self.cost.rounds, "client_hops": self.cost.client_hops,
            "sent_bytes_per_party": self.cost.sent_bytes, "dealt_bytes": self.offline_bytes,
        }  # fmt: skip


def pulled(player: Player) -> list[int]:
    """The arms, also where no role may know them: of one that hosts all parties."""
    assert isinstance(player, (ShownArms, HiddenArms))
    return list(player.arms)


def counted(items: Sequence[Correlation]) -> dict[str, int]:
    """Elementary secure operations that these items are for."""
    counts: Counter[str] = Counter(comparisons=0, products=0, truncations=0, lookups=0)
    for item in items:
        if isinstance(item, SignTables):
            counts["comparisons"] += math.prod(item.shape)
        elif isinstance(item, ProductMask):
            counts["products"] += math.prod(item.op.shape(item.x, item.y))
        elif isinstance(item, SquareMask):
            counts["products"] += math.prod(item.shape)
        elif isinstance(item, TruncationMask):
            counts["truncations"] += math.prod(item.shape)
        elif isinstance(item, (LookupMask, LineMask)):
            counts["lookups"] += math.prod(item.shape)
    return dict(counts)


def nearest(word: int, settings: Settings) -> int:
    """The sum in units behind its word of `scales.reward` fraction bits, a tie upwards: as `ops.round_off`."""
    return (word + (1 << (settings.dropped - 1))) >> settings.dropped


def first_difference(arms: Sequence[int], reference: Reference) -> Difference | None:
    """Where two runs part, if they do."""
    parted = np.nonzero(np.asarray(arms) != np.asarray(reference.arms))[0]
    return Difference(int(parted[0]), reference.gaps[parted[0]]) if parted.size else None

"""What a run on shares reached, beside the reference that played with the same coins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandits.coins import Coins
from bandits.fixed_point import play_fixed, rounded
from bandits.linear_problem import LinearProblem
from bandits.oful import OFUL, play
from mpc.correlations import (
    Correlation,
    LineMask,
    LookupMask,
    ProductMask,
    SignTables,
    SquareMask,
    TruncationMask,
)
from mpc.ledger import Entry
from mpc.meter import Cost

from .settings import Settings


@dataclass(frozen=True)
class Difference:
    """Where a run first pulled another arm than its reference; gap: between the reference's two best indices there."""

    step: int
    gap: float


@dataclass(frozen=True)
class Reference:
    """arms, rewards: of the reference, by pull.  total: the sum.  gaps: between its two best indices, by pull.

    Exact integers where arms are shown: `word` is the sum that the run must reveal.  Where they are hidden, float64 on
    the same rounded problem.
    """

    arms: list[int]
    rewards: list[float]
    gaps: list[float]
    total: float
    word: int | None

    @classmethod
    def of(cls, problem: LinearProblem, settings: Settings, coins: Coins) -> Reference:
        """Play it."""
        if not settings.hide:
            run = play_fixed(problem, coins, settings.scales)
            rewards = [math.ldexp(pull.reward, -settings.scales.reward) for pull in run.pulls]
            return cls(run.arms, rewards, [pull.gap for pull in run.pulls], run.cumulative_reward, run.total)
        exact = rounded(problem, settings.scales)
        pulls = list(play(OFUL(exact.arms, exact.exploration), exact, coins))
        rewards = [pull.reward for pull in pulls]
        return cls([pull.arm for pull in pulls], rewards, [pull.gap for pull in pulls], math.fsum(rewards), None)


@dataclass(frozen=True)
class Run:
    """A run that reached its end.

    arms: None where nobody may know them.  word: the sum of rewards as its customer learned it.  reference: None where
    the coins are the dealer's alone.  items: what a pull draws.
    """

    settings: Settings
    parties: int
    arms: list[int] | None
    word: int
    reference: Reference | None
    difference: Difference | None
    cost: Cost
    ledger: tuple[Entry, ...]
    seconds: float
    items: tuple[Correlation, ...]
    offline_bytes: int
    offline_seconds: float

    @property
    def cumulative_reward(self) -> float:
        """The sum of rewards."""
        return math.ldexp(self.word, -self.settings.scales.reward)

    @property
    def operations(self) -> dict[str, int]:
        """Counts of the whole run."""
        draws = self.settings.budget - (0 if self.settings.hide else 1)
        counts = {name: draws * count for name, count in counted(self.items).items()}
        return {
            **counts, "rounds": self.cost.rounds, "client_messages": self.cost.client_hops,
            "sent_bytes_per_party": self.cost.sent_bytes, "dealt_bytes": self.offline_bytes,
        }  # fmt: skip


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


def first_difference(arms: Sequence[int], reference: Reference) -> Difference | None:
    """Where two runs part, if they do."""
    parted = np.nonzero(np.asarray(arms) != np.asarray(reference.arms))[0]
    return Difference(int(parted[0]), reference.gaps[parted[0]]) if parted.size else None

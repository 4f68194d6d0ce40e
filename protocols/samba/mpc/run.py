"""What a run on shares reached, beside the plaintext policy that played with the same coins and rewards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bandits.samba import BernoulliArms, Coins, play
from mpc.correlations import Correlation
from mpc.ledger import Entry
from mpc.meter import Cost

from .settings import Settings


@dataclass(frozen=True)
class Game:
    """pulled: (N,) the arm of each step.  pulls: (K,) n.  sums: (K,) s."""

    pulled: np.ndarray
    pulls: np.ndarray
    sums: np.ndarray

    @property
    def total(self) -> int:
        """The cumulative reward."""
        return int(self.sums.sum())

    @classmethod
    def of(cls, states: Sequence[Mapping[str, np.ndarray]], budget: int) -> Game:
        """What all owners together know, as `Owners.state` has it; no one of them does."""
        numbers, pulls, sums, steps = (
            np.concatenate([state[name] for state in states]) for name in ("numbers", "pulls", "sums", "steps")
        )
        pulled = np.full(budget, -1)
        pulled[steps - 1] = np.repeat(numbers, pulls)
        return cls(pulled, pulls, sums)

    @classmethod
    def reference(
        cls, settings: Settings, arms: BernoulliArms, coins: Coins, reward_seed: bytes,
        progress: Callable[[int], None] | None = None,
    ) -> Game:  # fmt: skip
        """One player who sees everything."""
        policy = settings.reference()
        pulled = np.empty(settings.budget, np.int64)
        for pull in play(policy, arms, settings.budget, coins, reward_seed):
            pulled[pull.t - 1] = pull.arm
            if progress is not None:
                progress(pull.t)
        return cls(pulled, policy.pulls, policy.sums)

    def equals(self, other: Game) -> bool:
        """The same pulls, step by step, and the same (s_i, n_i)."""
        return all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self.pulled, other.pulled), (self.pulls, other.pulls), (self.sums, other.sums))
        )


@dataclass(frozen=True)
class Run:
    """A run that reached its end.

    total: the sum as the customer learned it.  reference: None where the coins are the dealer's alone.
    cost, seconds: of the steps that chose.  items: what such a step draws.
    """

    settings: Settings
    parties: int
    total: int
    game: Game
    reference: Game | None
    cost: Cost
    ledger: tuple[Entry, ...]
    seconds: float
    items: tuple[Correlation, ...]
    offline_bytes: int
    offline_seconds: float

    @property
    def equal(self) -> bool | None:
        """Whether it pulled as the reference did, and the customer learned its sum; None without one."""
        if self.reference is None:
            return None
        return self.game.equals(self.reference) and self.total == self.reference.total

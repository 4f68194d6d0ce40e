"""A whole game of one player in the clear: what the protocols must agree with, pull for pull."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .coins import Coins
from .errors import SambaError
from .policy import Policy
from .rewards import Arms


class Pull(NamedTuple):
    """One step, counted from 1."""

    t: int
    arm: int
    reward: int


@dataclass(frozen=True)
class Played:
    """pulls: (K,) n.  sums: (K,) s.  arms: (N,), the pulled one of each step."""

    pulls: np.ndarray
    sums: np.ndarray
    arms: np.ndarray

    @property
    def total(self) -> int:
        """The cumulative reward."""
        return int(self.sums.sum())

    def equals(self, other: Played) -> bool:
        """The same pulls, step by step, and the same (s_i, n_i)."""
        pairs = (self.pulls, other.pulls), (self.sums, other.sums), (self.arms, other.arms)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def play(policy: Policy, arms: Arms, budget: int, coins: Coins, reward_seed: bytes) -> Iterator[Pull]:
    """N pulls; the policy learns on the way."""
    check_budget(budget, len(arms))
    if policy.arms != len(arms):
        raise SambaError(f"the policy has {policy.arms} arms and the game {len(arms)}: give both the same number")
    for t in range(1, budget + 1):
        arm = policy.pull(t, coins)
        paid = arms.reward(reward_seed, arm, t)
        policy.update(arm, paid)
        yield Pull(t, arm, paid)


def run(
    policy: Policy, arms: Arms, budget: int, coins: Coins, reward_seed: bytes,
    watch: Callable[[int], object] | None = None,
) -> Played:  # fmt: skip
    """The whole game at once.  watch: told how many pulls are done."""
    pulled = np.empty(budget, np.int64)
    for pull in play(policy, arms, budget, coins, reward_seed):
        pulled[pull.t - 1] = pull.arm
        if watch is not None:
            watch(pull.t)
    return Played(policy.pulls, policy.sums, pulled)


def check_budget(budget: int, arms: int) -> None:
    """N >= K."""
    if budget < arms:
        raise SambaError(
            f"a budget of {budget} pulls for {arms} arms: each arm is pulled once first, so give at least {arms}"
        )

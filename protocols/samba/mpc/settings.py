"""What all participants of a run on shares agree on beforehand.  Knows no mean of an arm."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bandits.samba import Policy, SambaError, by_name, check_budget
from mpc import ops
from mpc.errors import ConfigError

from ...run.choices import whole_number
from ...run.program import digest
from ..owners import SCORE_BITS, LocalPolicy, Select, owners_name, require_local
from ..policies import local_policy

WEIGHT_BITS = COIN_BITS = 31  # of the sum of all weights, and of the coin that points into it: 62 bits together
CHANCE_BITS = WEIGHT_BITS - 1  # fraction bits of a weight: probabilities add up to 1
MOST_HOSTS = 10  # if nobody says how many
MOST_PAIRS = 64  # arms that are compared all at once; more meet in a tournament


def hosts_of(arms: int, processes: bool) -> int:
    """In how many processes the owners play if nobody says it."""
    return min(arms, MOST_HOSTS) if processes else 1


@dataclass(frozen=True)
class Settings:
    """policy: a name.  arms: K.  budget: N.  hosts: processes that play the owners, in blocks of neighbours.

    eps, tau, beta: each counts for the policy that has it.
    """

    policy: str
    arms: int
    budget: int
    hosts: int = 1
    eps: float = 0.1
    tau: float = 0.06
    beta: float = 0.1

    def __post_init__(self) -> None:
        for name in ("arms", "budget", "hosts"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        require_local(self.local)
        try:
            check_budget(self.budget, self.arms)
            self.reference()
        except SambaError as error:
            raise ConfigError(str(error)) from error
        if not 1 <= self.hosts <= self.arms:
            raise ConfigError(f"{self.arms} owners play in 1 to {self.arms} processes, not in {self.hosts}")
        for iteration, select in enumerate(self.local.selects, start=1):
            if select is Select.LARGEST:
                ops.Keys(self.arms, self.score_bits(iteration))

    @cached_property
    def local(self) -> LocalPolicy:
        """The policy as owners play it; softmax is a race, since no word holds its weights."""
        return local_policy(self.policy, eps=self.eps, tau=self.tau, beta=self.beta, race=True)

    def reference(self) -> Policy:
        """The policy as one player plays it who sees everything."""
        return by_name(
            self.policy, self.arms, eps=self.eps, tau=self.tau, beta=self.beta, race=True, weight_bits=CHANCE_BITS
        )

    @property
    def steps(self) -> int:
        """N - K: steps that choose an arm; before them each arm is pulled once."""
        return self.budget - self.arms

    @property
    def tournament(self) -> bool:
        """Whether an argmax has two levels."""
        return self.arms > MOST_PAIRS

    @cached_property
    def group(self) -> int:
        """Arms that meet first in a tournament: as many as make the fewest comparisons."""

        def comparisons(size: int) -> int:
            groups = -(-self.arms // size)
            return groups * math.comb(size, 2) + math.comb(groups, 2)

        return min(range(1, self.arms + 1), key=comparisons)

    def fraction_bits(self, iteration: int) -> int:
        """Of the words that owners share."""
        return SCORE_BITS if self.local.selects[iteration - 1] is Select.LARGEST else CHANCE_BITS

    def score_bits(self, iteration: int) -> int:
        """Bits of a word, sign included."""
        return self.local.word_bits(self.budget, iteration, self.fraction_bits(iteration)) + 1

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The owners of each host."""
        ends = np.cumsum([len(part) for part in np.array_split(np.arange(self.arms), self.hosts)]).tolist()
        return tuple(range(start, end) for start, end in zip([0, *ends], ends))

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return tuple(owners_name(block) for block in self.blocks)

    @cached_property
    def digest(self) -> str:
        """Of all that participants must agree on."""
        return digest(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """What `Settings(**given)` takes."""
        return asdict(self)

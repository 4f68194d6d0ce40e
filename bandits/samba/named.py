"""The six policies by name.  As owners play them, on shares and as published: `protocols/samba/policies.py`."""

from __future__ import annotations

from .epsilon_decreasing import EpsilonDecreasing
from .epsilon_greedy import EpsilonGreedy
from .errors import SambaError
from .policy import Policy
from .pursuit import Pursuit
from .softmax import Softmax
from .thompson import Thompson
from .ucb import UCB
from .words import SCORE_BITS

NAMES = ("epsilon-greedy", "epsilon-decreasing", "ucb", "thompson", "softmax", "pursuit")


def by_name(
    name: str, arms: int, *, eps: float = 0.1, tau: float = 0.06, beta: float = 0.1, race: bool = False,
    weight_bits: int = SCORE_BITS,
) -> Policy:  # fmt: skip
    """The policy called `name`; each parameter counts for the policy that has it.

    race: softmax as a race.  weight_bits: fraction bits of pursuit's probabilities.
    """
    match name:
        case "epsilon-greedy":
            return EpsilonGreedy(arms, eps)
        case "epsilon-decreasing":
            return EpsilonDecreasing(arms)
        case "ucb":
            return UCB(arms)
        case "thompson":
            return Thompson(arms)
        case "softmax":
            return Softmax(arms, tau, race=race)
        case "pursuit":
            return Pursuit(arms, beta, bits=weight_bits)
    raise SambaError(f"there is no policy {name!r}: choose one of {', '.join(NAMES)}")

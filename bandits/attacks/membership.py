"""Membership inference on a contextual bandit: which attacks there are, and one call for all of them.

The bandit is the plaintext twin of the private one: it pulls the same arms, so whoever sees them learns the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ..environments import Environment
from ..linear import LinearBandit
from .game import Learner, Plan, Row, Watch
from .sequence import sequence
from .shadow import shadow
from .yeom import yeom


class Attack(Enum):
    """What the adversary goes by."""

    YEOM = "yeom"
    SHADOW = "shadow"
    SEQUENCE = "sequence"


_ATTACKS: dict[Attack, Callable[[Environment, Plan, Learner, Watch], list[Row]]] = {
    Attack.YEOM: yeom,
    Attack.SHADOW: shadow,
    Attack.SEQUENCE: sequence,
}


def attack_at_checkpoints(
    environment: Environment,
    attack: Attack,
    *,
    eps: float,
    steps: int,
    checkpoints: int,
    runs: int,
    seed: int,
    learner: Learner | None = None,
    watch: Watch | None = None,
) -> list[Row]:
    """How well the attack does against epsilon-greedy after steps / checkpoints steps, after twice as many, and so on.

    runs: independent bandits for YEOM, targets for SHADOW, streams for SEQUENCE.  learner: an epsilon-greedy linear
    bandit unless given.  watch: is told how many of the steps are done.
    """
    plan = Plan(eps, steps, checkpoints, runs, seed)

    def linear(replicas: int) -> LinearBandit:
        return LinearBandit(replicas, environment.arms, environment.dim)

    return _ATTACKS[attack](environment, plan, learner or linear, watch or (lambda done: None))

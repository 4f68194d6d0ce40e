"""Which participant is given what, and what it then plays, in this process or in one of its own.

DO    has  arms, constants, theta
DC    has  the budget
P     has  the seed of its coins, and a number of cores
Comp  has  the latter
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from bandits.coins import Noise
from bandits.fixed_point import Scales
from bandits.linear_problem import LinearProblem, ProblemError

from ...published.drive import Play, Watch
from ...published.participant import Cast, Published
from ..constants import as_json, from_json
from .messages import Role
from .roles import Outcome, comparator, data_customer, data_owner, puller

ROLES = tuple(Role)
"""By node."""

CALLS = [
    (Role.COMP, Role.P), (Role.DO, Role.P), (Role.DO, Role.COMP), (Role.DC, Role.P), (Role.DC, Role.COMP),
]  # fmt: skip


def cast_of(
    problem: LinearProblem, scales: Scales, *, budget: int, seed: int, noise: Noise, bits: int, insecure: bool,
    cores: int = 1,
) -> Cast:  # fmt: skip
    """To each its own; DO and DC have nothing to say to each other."""
    common = {"bits": bits, "insecure": insecure}
    own: dict[Role, dict[str, Any]] = {
        Role.P: {"seed": seed, "noise": noise.value, "cores": cores},
        Role.COMP: {"cores": cores},
        Role.DO: {
            "arms": problem.arms.tolist(), "theta": problem.theta.tolist(), **as_json(problem.exploration),
            "scales": asdict(scales),
        },
        Role.DC: {"budget": budget},
    }  # fmt: skip
    return Cast({role: {**common, **own[role]} for role in ROLES}, CALLS, patient=Role.DC)


def play_of(
    node: int, given: dict[str, Any], watch: Watch | None, seen: Callable[[list[int]], None] | None = None
) -> Play[Outcome]:  # fmt: skip
    """What a node plays.  seen: is told the lists that Comp decrypts."""
    role, bits, insecure = ROLES[node], given["bits"], given["insecure"]
    if role is Role.DC:
        return data_customer(given["budget"], bits, insecure=insecure)
    if role is Role.COMP:
        return comparator(bits, insecure=insecure, cores=given["cores"], seen=seen)
    if role is Role.P:
        return puller(given["seed"], bits, noise=Noise(given["noise"]), cores=given["cores"], watch=watch)
    problem = LinearProblem(np.array(given["arms"]), np.array(given["theta"]), from_json(given))
    return data_owner(problem, Scales(**given["scales"]), bits)


PUBLISHED = Published(f"{__name__}:PUBLISHED", "linucb-ds", Outcome, ProblemError, play_of)

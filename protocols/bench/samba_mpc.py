"""A step of SAMBA on shares: the half of `scripts/bench samba` that is not the published protocol.

Two computing parties and one host that plays all owners, each a process on loopback, with DC beside them.  Material is
dealt before the clock starts; what it cost stands in columns of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandits.samba import BernoulliArms

from ..run.launch import Processes, launch
from ..run.rehearsal import rehearse
from ..samba.mpc.run import Federation
from ..samba.mpc.settings import Settings
from .measure import dealt, time_dealing

PARTIES = 2
GOALS = {10: 2.5, 100: 6.0}  # arms -> milliseconds a step that shares have to stay below


def even_arms(arms: int) -> BernoulliArms:
    """Arms that are not too easy to tell apart."""
    return BernoulliArms(np.linspace(0.1, 0.5, arms))


@dataclass(frozen=True)
class Row:
    """A policy at a number of arms; milliseconds, rounds and bytes are of one step that chooses."""

    policy: str
    arms: int
    steps: int
    parties: int
    hosts: int
    milliseconds: float
    rounds: float
    opened_bytes: float
    offline_milliseconds: float
    offline_bytes: int


def measure(policy: str, arms: int, steps: int = 400, *, parties: int = PARTIES, hosts: int = 1) -> Row:
    """Play `steps` steps behind the first K pulls, from material."""
    settings = Settings(policy, arms, arms + steps, hosts)
    program = Federation(settings, parties, 1, even_arms(arms))
    plan = rehearse(program).plan
    with dealt(plan, steps) as folder:
        run = launch(program, Processes(material=folder / "material"))
    return Row(
        policy, arms, steps, parties, hosts, 1e3 * run.seconds / steps, run.cost.rounds / steps,
        run.cost.opened_bytes / steps, time_dealing(plan) / 1e3, plan.step_bytes,
    )  # fmt: skip


def missed(rows: list[Row]) -> list[str]:
    """The goals that these rows did not reach; that against classic needs the other half's rows."""
    return [
        f"on shares, {row.policy} with {row.arms} arms: {row.milliseconds:.2f} ms a step, the goal is {goal:g}"
        for row in rows
        if (goal := GOALS.get(row.arms)) is not None and row.milliseconds > goal
    ]

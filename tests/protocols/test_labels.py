"""Every program on shares says what its rounds were spent on: the labels that a role's page of numbers shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from bandits.helba import Constants, toy
from bandits.samba import BernoulliArms
from mpc.meter import Cost
from protocols.helba.command import Helba
from protocols.helba.run import Encrypted
from protocols.linucb_ds.mpc.run import Outsourced
from protocols.linucb_ds.mpc.settings import Settings as LinearSettings
from protocols.linucb_ds.problems import made_up
from protocols.ppcb.run import Bandit
from protocols.ppcb.settings import Settings
from protocols.run.program import Program
from protocols.run.simulate import Simulation
from protocols.samba.command import Samba
from protocols.samba.mpc.run import Federation

from .machines import Machines

STEPS = 5


def ppcb(_: Path) -> Program[Any]:
    return Bandit.on(synthetic_linear(3, 4, seed=5), Settings(3, 4, eps=0.2), parties=2, steps=STEPS, seed=5)


def samba(home: Path) -> Program[Any]:
    options = {"policy": "epsilon-greedy", "eps": 0.5, "arms": 3, "budget": STEPS}
    settings = Machines(home, Samba(), options).program.settings
    return Federation(settings, 2, 1, BernoulliArms(np.array([0.2, 0.9, 0.5])))


def linucb(hide: bool) -> Callable[[Path], Program[Any]]:
    problem = made_up("linucb-ds", arms=5, dim=3, seed=4)
    return lambda _: Outsourced(LinearSettings.of(problem, STEPS, hide=hide), 2, 9, problem)


def helba(home: Path) -> Program[Any]:
    settings = Machines(home, Helba(), {"steps": STEPS}).program.settings
    return Encrypted(settings, 2, problem=toy(Constants(), STEPS, 3, arms=2))


APART = {
    "ppcb": (ppcb, {"decide", "tell", "learn"}),
    "samba": (samba, {"select", "total"}),
    "linucb-ds": (linucb(False), {"theta", "select", "total"}),
    "linucb-ds, hidden arms": (linucb(True), {"theta", "select", "learn", "total"}),
}
"""Programs whose labels follow one another."""


def spent(program: Program[Any]) -> tuple[dict[str, Cost], Cost]:
    simulation = Simulation(program, seed=3)
    while not simulation.finished:
        simulation.turn()
    simulation.ended()
    return simulation.session.meter.labels(), simulation.session.meter.total


@pytest.mark.parametrize("name", APART)
def test_labels_share_out_all_rounds_and_bytes(name: str, tmp_path: Path) -> None:
    made, labels = APART[name]
    by_label, total = spent(made(tmp_path))
    assert by_label.keys() == labels
    for what in ("rounds", "sent_bytes", "client_hops"):
        assert sum(getattr(cost, what) for cost in by_label.values()) == getattr(total, what) > 0, what
    assert all(cost.seconds > 0 for cost in by_label.values())


def test_helba_learns_within_its_decisions(tmp_path: Path) -> None:
    """The last step is learned from while the next is decided, so the rounds of one are the other's as well."""
    by_label, total = spent(helba(tmp_path))
    assert by_label.keys() == {"decide", "learn", "pay"}
    assert by_label["decide"].rounds + by_label["pay"].rounds == total.rounds > by_label["learn"].rounds > 0
    assert all(cost.seconds > 0 for cost in by_label.values())

"""What the tests of SAMBA on shares lean on: arms and runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.samba import NAMES, BernoulliArms
from protocols.samba.mpc.run import Run
from protocols.samba.mpc.settings import Settings
from protocols.samba.mpc.simulate import Simulation, simulate

POLICIES = NAMES


def rising(arms: int) -> BernoulliArms:
    """Means from 0.1 to 0.9."""
    return BernoulliArms(np.linspace(0.1, 0.9, arms))


def alike(arms: int, mean: float) -> BernoulliArms:
    """The same mean everywhere: scores tie."""
    return BernoulliArms(np.full(arms, mean))


def played(arms: BernoulliArms, policy: str, budget: int, *, seed: int = 1, parties: int = 2, **more: Any) -> Run:
    return simulate(arms, Settings(policy, len(arms), budget, **more), parties=parties, seed=seed)


def simulation(policy: str, arms: int, budget: int, *, seed: int = 1, parties: int = 2, **more: Any) -> Simulation:
    listener = more.pop("listener", None)
    settings = Settings(policy, arms, budget, **more)
    return Simulation(rising(arms), settings, parties=parties, seed=seed, listener=listener)


def agrees(run: Run) -> None:
    """Every pull, every (s_i, n_i) and the sum are the reference's; all that a run counts fits together."""
    game, budget = run.game, run.settings.budget
    assert run.reference is not None
    assert game.pulled.tolist() == run.reference.pulled.tolist()
    assert game.pulls.tolist() == run.reference.pulls.tolist()
    assert game.sums.tolist() == run.reference.sums.tolist()
    assert run.equal and run.total == game.total == run.reference.total
    assert game.pulls.sum() == budget and game.pulled[: run.settings.arms].tolist() == list(range(run.settings.arms))
    assert (game.sums <= game.pulls).all()

"""What the tests of SAMBA on shares lean on: arms and runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba import NAMES, BernoulliArms
from offline import Plan
from protocols.run import simulate as run_simulate
from protocols.run.folder import Keep
from protocols.run.launch import Prepared, Processes, launch, prepare
from protocols.run.rehearsal import rehearse
from protocols.run.simulate import Simulation
from protocols.samba.mpc.run import Federation, Run
from protocols.samba.mpc.settings import Settings

POLICIES = NAMES
Say = Callable[[str], None]


def said_to_stderr(line: str) -> None:
    """As a command does."""
    print(line, file=sys.stderr, flush=True)


def rising(arms: int) -> BernoulliArms:
    """Means from 0.1 to 0.9."""
    return BernoulliArms(np.linspace(0.1, 0.9, arms))


def alike(arms: int, mean: float) -> BernoulliArms:
    """The same mean everywhere: scores tie."""
    return BernoulliArms(np.full(arms, mean))


def simulate(
    arms: BernoulliArms, settings: Settings, *, parties: int, seed: int, keep: Keep | None = None,
    progress: Callable[[int], bool | None] | None = None,
) -> Run:  # fmt: skip
    return run_simulate.simulate(Federation(settings, parties, seed, arms), seed=seed, keep=keep, watch=progress)


def launched(
    arms: BernoulliArms, settings: Settings, *, parties: int = 2, seed: int = 5, keep: Keep | None = None,
    say: Say = said_to_stderr, scratch: Path | None = None, **how: Any,
) -> Run:  # fmt: skip
    program, processes = Federation(settings, parties, seed, arms), Processes(**{"timeout": 20.0, **how})
    return launch(program, processes, keep=keep, say=say, scratch=scratch)


def prepared(
    arms: BernoulliArms, settings: Settings, keep: Keep, folder: Path, *, material: Path | None = None,
    say: Say = lambda _: None,
) -> Prepared:  # fmt: skip
    """A launch of two parties up to its first message."""
    folder.mkdir(exist_ok=True)
    return prepare(Federation(settings, 2, 5, arms), Processes(material=material), keep, folder, say=say)


def plan_of(settings: Settings, parties: int) -> Plan:
    return rehearse(Federation(settings, parties, 0, rising(settings.arms))).plan


def played(arms: BernoulliArms, policy: str, budget: int, *, seed: int = 1, parties: int = 2, **more: Any) -> Run:
    return simulate(arms, Settings(policy, len(arms), budget, **more), parties=parties, seed=seed)


def simulation(policy: str, arms: int, budget: int, *, seed: int = 1, parties: int = 2, **more: Any) -> Simulation[Run]:
    listener = more.pop("listener", None)
    settings = Settings(policy, arms, budget, **more)
    return Simulation(Federation(settings, parties, seed, rising(arms)), seed=seed, listener=listener)


def agrees(run: Run) -> None:
    """Every pull, every (s_i, n_i) and the sum are the reference's; all that a run counts fits together."""
    game, budget = run.game, run.settings.budget
    assert run.reference is not None
    assert game.arms.tolist() == run.reference.arms.tolist()
    assert game.pulls.tolist() == run.reference.pulls.tolist()
    assert game.sums.tolist() == run.reference.sums.tolist()
    assert run.equal and run.total == game.total == run.reference.total
    assert game.pulls.sum() == budget and game.arms[: run.settings.arms].tolist() == list(range(run.settings.arms))
    assert (game.sums <= game.pulls).all()

"""A run on shares with a process for each computing party, DO, DC and the dealer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bandits.fixed_point import rounded
from bandits.linear_problem import LinearProblem
from mpc.launch import launch
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.prg import fresh_key
from offline import Plan

from ..commands.dealing import dealer_beside
from .mpc_coins import replayed
from .mpc_result import Reference, Run, first_difference
from .mpc_roles import Task, draws_of
from .mpc_settings import Settings
from .mpc_shown import CUSTOMER, OWNER
from .mpc_simulate import plan_of

_PATIENCE = 0.05  # seconds a pull: DC hears nothing before the end


@dataclass(frozen=True)
class Launch:
    """How to launch a run.  material: stores to draw from, else a dealer is started.

    timeout: seconds until a silent peer is lost, or 50 ms a pull, if that is more.
    """

    parties: int
    seed: int
    timeout: float = 60.0
    material: Path | None = None
    session: str = "local"


def launched(problem: LinearProblem, settings: Settings, how: Launch, scratch: Path) -> Run:
    """Play the whole budget."""
    plan = plan_of(settings, how.parties)
    settings.save(scratch / "settings.json")
    np.save(scratch / "theta.npy", rounded(problem, settings.scales).theta)
    (scratch / "theta.npy").chmod(0o600)
    material = None if how.material is None else str(how.material)
    Task(how.seed, material, how.session).save(scratch)
    coins = scratch / "coin.key"
    with open(os.open(coins, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(fresh_key())
    command = [sys.executable, "-m", "protocols.linucb_ds.mpc_roles"]
    clients = {role: [*command, role, str(scratch)] for role in (OWNER, CUSTOMER)}
    with _dealing(plan, settings, how, scratch, coins) as environment:
        launch(
            [*command, "computing party", str(scratch)], how.parties, clients=clients, environment=environment,
            timeout=max(how.timeout, _PATIENCE * settings.budget),
        )  # fmt: skip
    return _read(problem, settings, how, plan, scratch, None if how.material else coins)


@contextmanager
def _dealing(plan: Plan, settings: Settings, how: Launch, scratch: Path, coins: Path) -> Iterator[dict[str, str]]:
    if how.material is not None:
        yield {}
        return
    with dealer_beside(plan, draws_of(settings), scratch, coins=coins) as environment:
        yield environment


def _read(
    problem: LinearProblem, settings: Settings, how: Launch, plan: Plan, scratch: Path, coins: Path | None
) -> Run:
    """What the roles were left with, beside the reference where the coins are known."""
    kept = json.loads((scratch / "party-0.json").read_text())
    (word,) = json.loads((scratch / "DC.json").read_text())
    cost, arms = Cost(**kept["cost"]), kept["arms"]
    reference = None
    if coins is not None:
        reference = Reference.of(problem, settings, replayed(settings, how.seed, coins.read_bytes(), plan.items))
    dealt = scratch / "dealer.json"
    told = json.loads(dealt.read_text()) if dealt.exists() else {"seconds": 0.0}
    difference = first_difference(arms, reference) if arms is not None and reference is not None else None
    return Run(
        settings, how.parties, arms, word, reference, difference, cost, tuple(Entry(**row) for row in kept["ledger"]),
        kept["seconds"], plan.items, plan.step_bytes * draws_of(settings), told["seconds"],
    )  # fmt: skip

"""A run on shares with a process for each computing party, DO, DC and the dealer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bandits.fixed_point import rounded
from bandits.linear_problem import LinearProblem
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.prg import fresh_key
from offline import Plan

from ...ppcb.planning import check_material
from ...run.checkpoint import checkpoints, forget_beyond
from ...run.keeping import Keep, Stopped
from ...run.sources import dealer_beside
from ...run.stopping import stoppable
from .checkpoint import COIN_KEY, RUN, check, facts_with_theta, forget, latest_of_all, missing, private_file, read_run
from .replay import replayed
from .roles import Task, draws_of, first_block
from .run import Reference, Run, first_difference
from .settings import Settings
from .shown import CUSTOMER, OWNER
from .simulate import plan_of

_PATIENCE = 0.05  # seconds a pull: DC hears nothing before the end


@dataclass(frozen=True)
class Launch:
    """How to launch a run.

    timeout: seconds until a silent peer is lost, or 50 ms a pull, if that is more.  material: stores to draw from, else
    a dealer is started.  keep: where the parties keep what a run goes on from, if they are to.
    """

    parties: int
    seed: int
    timeout: float = 60.0
    material: Path | None = None
    session: str = "local"
    keep: Keep | None = None


def launched(problem: LinearProblem, settings: Settings, how: Launch, scratch: Path) -> Run:
    """Play the whole budget, or what is left of it.

    With a place to keep it, the first Ctrl-C lets all parties keep the same pull, and ends in `Stopped`; a second one
    ends at once, as the first does where nothing is kept.
    """
    plan = plan_of(settings, how.parties)
    start, coins = _prepared(problem, settings, how, scratch, plan)
    settings.save(scratch / "settings.json")
    np.save(scratch / "theta.npy", rounded(problem, settings.scales).theta)
    (scratch / "theta.npy").chmod(0o600)
    material = None if how.material is None else str(how.material)
    home, every = (None, 1) if how.keep is None else (str(how.keep.folder), how.keep.every)
    Task(how.seed, material, how.session, home, every, start).save(scratch)
    command = own_command("protocols.linucb_ds.mpc.roles")
    clients = {role: [*command, role, str(scratch)] for role in (OWNER, CUSTOMER)}
    stops = nullcontext() if how.keep is None else stoppable(scratch, how.parties)
    try:
        with stops, _dealing(plan, settings, start, scratch, coins) as environment:
            launch(
                [*command, "computing party", str(scratch)], how.parties, clients=clients, environment=environment,
                timeout=max(how.timeout, _PATIENCE * settings.budget),
            )  # fmt: skip
    except (KeyboardInterrupt, ConfigError) as error:
        if how.keep is None:
            raise
        if not (done := latest_of_all(how.keep.folder, how.parties)):
            if not any(checkpoints(home) for home in how.keep.folder.glob("party-*")):
                forget(how.keep.folder)
            raise
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(done) from None
        raise ConfigError(f"{error}; all parties kept pull {done:,}: --resume goes on from there") from error
    if how.keep is not None and not (scratch / "DC.json").exists():
        raise Stopped(latest_of_all(how.keep.folder, how.parties))
    run = _read(problem, settings, how, plan, scratch, start, coins)
    if how.keep is not None:
        forget(how.keep.folder)
    return run


def _prepared(
    problem: LinearProblem, settings: Settings, how: Launch, scratch: Path, plan: Plan
) -> tuple[int, Path | None]:
    """How many pulls were made before, and the file of the dealer's coins, if there is a dealer.

    What can be found wrong before the first message is found here; only then is what an earlier run kept removed.
    """
    facts = facts_with_theta(problem, settings, how.parties, how.seed)
    start, folder = 0, scratch
    if how.keep is not None:
        folder = how.keep.folder
        if how.keep.resume:
            start = latest_of_all(folder, how.parties)
            check(read_run(folder), facts)
            if not start:
                raise missing(folder)
            if how.material is None and not (folder / COIN_KEY).is_file():
                raise ConfigError(f"{folder} holds no {COIN_KEY}, so the run cannot go on with its coins: start anew")
    if how.material is not None:
        shown = "arms hidden" if settings.hide else "arms shown"
        check_material(
            how.material, how.session, plan, draws_of(settings, start),
            run=f"{settings.budget:,} pulls of {settings.count} arms in {settings.dim} dimensions, {shown}",
            cure="masked offline plan linucb-ds ..., with the options of this run, -o plan.json",
        )  # fmt: skip
    for party in range(how.parties if start else 0):
        forget_beyond(folder / f"party-{party}", start)
    if how.keep is not None and not start:
        forget(folder)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        private_file(folder / RUN, json.dumps(facts).encode())
    coins = folder / COIN_KEY
    if how.material is None and not start:
        private_file(coins, fresh_key())
    return start, None if how.material else coins


@contextmanager
def _dealing(
    plan: Plan, settings: Settings, start: int, scratch: Path, coins: Path | None
) -> Iterator[dict[str, str]]:  # fmt: skip
    if coins is None:
        yield {}
        return
    steps, first = draws_of(settings, start), first_block(settings, start)
    with dealer_beside(plan, steps, scratch, coins=coins, first=first) as environment:
        yield environment


def _read(
    problem: LinearProblem, settings: Settings, how: Launch, plan: Plan, scratch: Path, start: int, coins: Path | None
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
    whole = draws_of(settings) / draws_of(settings, start)  # of a run that went on, the part before was not timed
    difference = first_difference(arms, reference) if arms is not None and reference is not None else None
    return Run(
        settings, how.parties, arms, word, reference, difference, cost, tuple(Entry(**row) for row in kept["ledger"]),
        kept["seconds"], plan.items, plan.step_bytes * draws_of(settings), whole * told["seconds"],
    )  # fmt: skip

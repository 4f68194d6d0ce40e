"""A run with a process for each owner, the puller, the payer and the dealer: prepares, watches, and reads the end."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandits.environments import Environment, Episode
from mpc.correlations import Correlation
from mpc.errors import ConfigError
from mpc.launch import launch
from mpc.meter import Cost
from mpc.prg import fresh_key
from mpc.session import Session
from offline import Plan, Recorder

from ..commands.dealing import dealer_beside
from .checkpoint import Checkpoint, checkpoint_at, checkpoints
from .coins import choices
from .play import Play, split
from .program import PAYER, PULLER
from .roles import PIPE, Task, arms_of
from .run import Run, beside_twin, compared_with_nothing
from .settings import Settings
from .simulate import episodes_of, ledger_of
from .world import World, pulled

Watch = Callable[[int, float, Cost], None]
"""Told now and then: decisions made, the average reward so far, and what one decision costs."""


@dataclass(frozen=True)
class Launch:
    """How to launch a run.

    keep: where the roles keep what a run goes on from.  material: stores to draw from, else a dealer is started.
    """

    parties: int
    steps: int
    seed: int
    keep: Path
    every: int = 100
    resume: bool = False
    timeout: float = 60.0
    material: Path | None = None
    session: str = "local"


class Planned(NamedTuple):
    """turn: the items of one decision, and what it costs; the plan's step has more of them where a run refreshes."""

    plan: Plan
    turn: tuple[Correlation, ...]
    cost: Cost


def plan_of(settings: Settings, parties: int) -> Planned:
    """What one turn draws and costs, by a dry run; with a refresh, a plan's step is all turns up to one."""
    settings, recorder = replace(settings, owners=parties), Recorder(parties)
    cycle = settings.refresh or 0
    nothing = Episode(np.zeros((settings.batch, settings.dim)), np.zeros((settings.batch, settings.arms)))
    world = World([nothing] * settings.replicas, settings)
    session = Session.simulate(parties, recorder, clients={PULLER: world.puller(), PAYER: world.payer()})
    play = Play(session, replace(settings, refresh=cycle and 2), done=0)
    play.turn(split(world.contexts[0], parties))
    turn, cost = tuple(recorder.items), session.meter.total
    if not cycle:
        return Planned(Plan("ppcb", parties, turn), turn, cost)
    play.refresh()
    return Planned(Plan("ppcb", parties, turn * cycle + tuple(recorder.items[len(turn) :])), turn, cost)


def launched(
    environment: Environment, settings: Settings, how: Launch, scratch: Path, *, watch: Watch | None = None
) -> Run:
    """Play a run, or what is left of it; after Ctrl-C, what was reached."""
    settings = settings.for_run(how.parties, how.steps)
    task = prepared(environment, settings, how)
    episodes = episodes_of(environment, settings, how.steps, how.seed)
    world = World(episodes, settings)
    for party, block in split(world.contexts, how.parties).items():
        np.save(scratch / f"block-{party}.npy", block)
    np.save(scratch / "outcomes.npy", world.outcomes)
    task.save(scratch)
    os.mkfifo(scratch / PIPE)
    planned = plan_of(settings, how.parties)
    command = [sys.executable, "-m", "protocols.ppcb.roles"]
    clients = {role: [*command, role, str(scratch)] for role in (PULLER, PAYER)}
    owners = [*command, "owner", str(scratch)]
    blocks = -(-(task.decisions - task.start) // max(1, settings.refresh or 0))
    interrupted = None
    try:
        with _watched(task, world.outcomes, planned.cost, watch):
            if how.material is not None:
                launch(owners, how.parties, clients=clients, timeout=how.timeout)
            elif blocks:
                first = task.start // max(1, settings.refresh or 0)
                with dealer_beside(planned.plan, blocks, scratch, coins=_coin_file(how), first=first) as environment_:
                    launch(owners, how.parties, clients=clients, environment=environment_, timeout=how.timeout)
    except KeyboardInterrupt as stop:
        interrupted = stop
    done = _common(settings, how)
    if not done:
        raise interrupted or ConfigError(f"no party kept anything in {how.keep}")
    return result_of(settings, how, replace(task, start=done), episodes, planned, scratch)


def prepared(environment: Environment, settings: Settings, how: Launch) -> Task:
    """The task of a run, or of what is left of it, with `keep` made ready for it."""
    if how.steps % settings.batch:
        whole = -(-how.steps // settings.batch) * settings.batch
        raise ConfigError(f"{how.steps} steps are no whole number of batches of {settings.batch}: play {whole}")
    cycle = max(1, settings.refresh or 0)
    every = -(-max(1, how.every) // cycle) * cycle
    facts = {"steps": how.steps, "seed": how.seed, "data": environment.name, "parties": how.parties}
    decisions = how.steps // settings.batch
    task = Task(settings, how.parties, decisions, 0, every, how.keep, facts, how.material, how.session)
    if how.resume:
        start = _common(settings, how)
        if not start:
            raise ConfigError(f"there is no checkpoint of all parties in {how.keep}: run without --resume")
        for party in range(how.parties):
            kept = Checkpoint.load(checkpoint_at(how.keep / f"party-{party}", start))
            kept.check(settings=settings, **facts)
        if how.material is None and not (how.keep / "coin.key").is_file():
            raise ConfigError(f"{how.keep} holds no coin.key, so the run cannot go on with its coins: start it anew")
        with (how.keep / "arms.bin").open("r+b") as log:
            log.truncate(8 * settings.replicas * settings.batch * start)
        return replace(task, start=start)
    how.keep.mkdir(parents=True, exist_ok=True)
    how.keep.chmod(0o700)
    for old in [*how.keep.glob("party-*/checkpoint-*.npz"), how.keep / "arms.bin", how.keep / "coin.key"]:
        old.unlink(missing_ok=True)
    return task


def _coin_file(how: Launch) -> Path:
    """The dealer's coin key, kept for the twin and for a run that goes on; fresh for a fresh run."""
    path = how.keep / "coin.key"
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(fresh_key())
    return path


def _common(settings: Settings, how: Launch) -> int:
    """The last decision that all parties have a checkpoint of, and the puller a note; 0 if there is none."""
    each = [
        {int(path.stem.split("-")[1]) for path in checkpoints(how.keep / f"party-{party}")}
        for party in range(how.parties)
    ]
    noted = len(arms_of(Task(settings, how.parties, 0, 0, 1, how.keep, {})))
    return max((done for done in set.intersection(*each) if done <= noted), default=0)


def result_of(
    settings: Settings, how: Launch, task: Task, episodes: Sequence[Episode], planned: Planned, scratch: Path
) -> Run:
    """What the roles kept, up to decision `task.start`, beside the twin where the coins are known."""
    arms = arms_of(task)[: task.start]
    facts = Checkpoint.load(checkpoint_at(how.keep / "party-0", task.start)).facts
    cost = Cost(**facts["cost"])
    cycle = max(1, settings.refresh or 0)
    turns = -(-task.start // cycle)
    if how.material is not None:
        compared, seconds = compared_with_nothing(settings, episodes, arms), 0.0
    else:
        coin_key = (how.keep / "coin.key").read_bytes()
        coins = choices(coin_key, planned.turn, range(turns), steps=cycle)
        compared = beside_twin(settings, episodes, arms, coins)
        dealt = scratch / "dealer.json"
        told = json.loads(dealt.read_text()) if dealt.exists() else {"blocks": 0, "seconds": 0.0}
        seconds = turns * told["seconds"] / max(1, told["blocks"])
    return Run(
        settings, how.parties, *compared, cost, ledger_of(facts["ledger"]), cost.seconds,
        planned.plan.step_bytes * turns, seconds,
    )  # fmt: skip


@contextmanager
def _watched(task: Task, outcomes: np.ndarray, turn: Cost, watch: Watch | None) -> Iterator[None]:
    """Follow the puller's notes while the processes run."""
    over = threading.Event()

    def follow() -> None:
        while watch is not None and not over.wait(0.2):
            arms = arms_of(task)
            if len(arms):
                watch(len(arms), float(pulled(outcomes[: len(arms)], arms).mean()), turn)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join(1.0)

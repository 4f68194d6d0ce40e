"""A run with a process for each owner, the puller, the payer and the dealer: prepares, watches, and reads the end."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bandits.environments import Environment, Episode
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net.transport import check_timeout
from mpc.prg import fresh_key

from ..run.again import AGAIN, beyond, note_again
from ..run.checkpoint import Checkpoint, checkpoint_at, checkpoints, forget_beyond
from ..run.interrupt import Interrupt
from ..run.sources import dealer_beside
from ..run.stopping import ask_to_stop
from .clients import World, check_memory, pulled
from .planning import Planned, check_material, chosen_for, plan_of, plan_steps
from .play import split
from .program import PAYER, PULLER
from .replay import choices
from .roles import PIPE, Task, arms_of, role_of
from .run import Run, baselines_of, beside_twin, compared_with_nothing
from .settings import Settings
from .simulate import episodes_of, ledger_of

Watch = Callable[[int, float, Cost], None]
"""Told now and then: decisions made, the average reward so far, and what one decision costs."""
Say = Callable[[str], None]
"""Told, in a line, what whoever started the run should know at once."""


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
    options: str = ""


def launched(
    environment: Environment,
    settings: Settings,
    how: Launch,
    scratch: Path,
    *,
    watch: Watch | None = None,
    say: Say = lambda _: None,
) -> Run:
    """Play a run, or what is left of it; after Ctrl-C, what was reached.

    At the first Ctrl-C all owners keep a checkpoint after the same decision; a second one ends them at once.
    """
    settings = settings.for_run(how.parties, how.steps)
    check_memory(settings, how.steps)
    episodes = episodes_of(environment, settings, how.steps, how.seed)
    world = World(episodes, settings)
    task, planned = begun(environment, settings, how, world, say=say)
    for party, block in split(world.contexts, how.parties).items():
        np.save(scratch / f"block-{party}.npy", block)
    np.save(scratch / "outcomes.npy", world.outcomes)
    task.save(scratch)
    os.mkfifo(scratch / PIPE)
    command = own_command("protocols.ppcb.roles")
    clients = {role: [*command, role, str(scratch)] for role in (PULLER, PAYER)}
    owners = [*command, "owner", str(scratch)]
    blocks = plan_steps(settings, task.decisions - task.start)
    interrupted = None
    try:
        with Interrupt() as interrupt, _watched(task, world.outcomes, planned.cost, watch, scratch, interrupt, say):
            if blocks and how.material is not None:
                launch(owners, how.parties, clients=clients, timeout=how.timeout)
            elif blocks:
                first = plan_steps(settings, task.start)
                with dealer_beside(planned.plan, blocks, scratch, coins=_coin_file(how), first=first) as environment_:
                    launch(owners, how.parties, clients=clients, environment=environment_, timeout=how.timeout)
    except KeyboardInterrupt as stop:
        interrupted = stop
    done = _common(task)
    if not done:
        say(
            f"{len(arms_of(task)):,} decisions were made, and the first checkpoint comes after {task.every:,}: "
            f"{how.keep} holds nothing to go on from, only the arms that the puller learned"
        )
        raise interrupted or ConfigError(f"no party kept anything in {how.keep}")
    return result_of(settings, how, replace(task, start=done), episodes, planned, scratch)


def begun(
    environment: Environment, settings: Settings, how: Launch, world: World, *, say: Say = lambda _: None
) -> tuple[Task, Planned]:
    """The task of a run, or of what is left of it, and what it draws.

    What can be found wrong before the first message is found here; only then is what an earlier run kept removed.
    """
    check_timeout(how.timeout)
    task = _checked(environment, settings, how)
    world.check_bound(how.parties)
    planned = plan_of(settings, how.parties)
    if how.material is not None:
        steps = plan_steps(settings, task.decisions - task.start)
        cure = f"masked offline plan ppcb {how.options} --steps {how.steps} -o plan.json".replace("  ", " ")
        run = f"{how.steps:,} steps, {chosen_for(settings)}"
        check_material(how.material, how.session, planned.plan, steps, run=run, cure=cure)
    _make_ready(task, how, say)
    return task, planned


def prepared(environment: Environment, settings: Settings, how: Launch) -> Task:
    """The task of a run, or of what is left of it, with `keep` made ready for it."""
    task = _checked(environment, settings, how)
    _make_ready(task, how, lambda _: None)
    return task


def _checked(environment: Environment, settings: Settings, how: Launch) -> Task:
    """The task; changes nothing."""
    if how.steps % settings.batch:
        whole = -(-how.steps // settings.batch) * settings.batch
        raise ConfigError(f"{how.steps} steps are no whole number of batches of {settings.batch}: play {whole}")
    cycle = max(1, settings.refresh or 0)
    every = -(-max(1, how.every) // cycle) * cycle
    given = {"steps": how.steps, "seed": how.seed, "data": environment.name, "parties": how.parties}
    facts = {**given, "run": secrets.token_hex(8)}
    decisions = how.steps // settings.batch
    task = Task(settings, how.parties, decisions, 0, every, how.keep, facts, how.material, how.session)
    if not how.resume:
        return task
    homes = [how.keep / role_of(party) for party in range(how.parties)]
    found = [checkpoints(home)[-1:] for home in homes]
    if not any(found):
        if checkpoints(how.keep):
            raise ConfigError(f"the run in {how.keep} is a simulation: go on with 'masked run ppcb --resume'")
        raise ConfigError(f"there is no checkpoint of all parties in {how.keep}: run without --resume")
    first = Checkpoint.load(next(paths[0] for paths in found if paths))
    first.check(settings=settings.as_json(), **given)
    start = _common(task)
    if not start:
        stand = ", ".join(f"{home.name} at {paths[0].stem if paths else 'none'}" for home, paths in zip(homes, found))
        raise ConfigError(
            f"the parties and the puller's arms.bin in {how.keep} have no decision in common ({stand}): put back what "
            "is missing, or run without --resume"
        )
    for home in homes:
        kept = Checkpoint.load(checkpoint_at(home, start))
        if (kept.facts.get("role"), kept.facts.get("run")) != (home.name, first.facts.get("run")):
            whose = kept.facts.get("role", "an older version")
            raise ConfigError(
                f"{checkpoint_at(home, start)} is of {whose} of run {kept.facts.get('run')}, not of {home.name} of run "
                f"{first.facts.get('run')}: put its own back, or run without --resume"
            )
        kept.check(settings=settings.as_json(), **given)
    if how.material is None and not (how.keep / "coin.key").is_file():
        raise ConfigError(
            f"{how.keep} holds no coin.key, so no dealer can go on with its coins: give --material, or run without "
            "--resume"
        )
    return replace(task, start=start, facts={**facts, "run": first.facts["run"]})


def _make_ready(task: Task, how: Launch, say: Say) -> None:
    """Remove from `keep` what a new run would take for its own, or what comes after the checkpoint it goes on from."""
    keep, coin_key = task.keep, task.keep / "coin.key"
    if not task.start:
        keep.mkdir(parents=True, exist_ok=True)
        keep.chmod(0o700)
        for home in keep.glob("party-*"):
            forget_beyond(home, 0)
        for old in (keep / "arms.bin", keep / AGAIN, coin_key):
            old.unlink(missing_ok=True)
        return
    for home in keep.glob("party-*"):
        forget_beyond(home, task.start)
    if again := len(arms_of(task)) - task.start:
        note_again(keep, task.start, task.start + again)
        coins = "the same coins" if how.material is None else "other coins, of --material,"
        say(
            f"{again:,} decisions from {task.start:,} on are made again with {coins} and fresh masks: where the puller "
            "learns another arm it has two about that context, so their arms count twice"
        )
    if how.material is not None:
        coin_key.unlink(missing_ok=True)  # from here on it does not tell the coins of the whole run
    with (keep / "arms.bin").open("r+b") as log:
        log.truncate(8 * task.settings.replicas * task.settings.batch * task.start)


def _coin_file(how: Launch) -> Path:
    """The dealer's coin key, kept for the twin and for a run that goes on; fresh for a fresh run."""
    path = how.keep / "coin.key"
    if not path.exists():
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(fresh_key())
    return path


def _common(task: Task) -> int:
    """The last decision that all parties have a checkpoint of, and the puller a note; 0 if there is none."""
    each = [
        {int(path.stem.split("-")[1]) for path in checkpoints(task.keep / role_of(party))}
        for party in range(task.parties)
    ]
    noted = len(arms_of(task))
    return max((done for done in set.intersection(*each) if done <= noted), default=0)


def result_of(
    settings: Settings, how: Launch, task: Task, episodes: Sequence[Episode], planned: Planned, scratch: Path
) -> Run:
    """What the roles kept, up to decision `task.start`, beside the twin where the coins are known."""
    noted = arms_of(task)
    arms = noted[: task.start]
    facts = Checkpoint.load(checkpoint_at(how.keep / role_of(0), task.start)).facts
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
    further, most = beyond(how.keep, task.start, len(noted))
    further *= settings.replicas * settings.batch
    ledger = ledger_of(facts["ledger"])
    if further:
        ledger = (*ledger, Entry(PULLER, "arm", further, "of a step that was played again, or is not in this result"))
    return Run(
        settings, how.parties, *compared, cost, ledger, cost.seconds, planned.plan.step_bytes * turns, seconds,
        baselines_of(episodes, task.start * settings.batch), further, most,
    )  # fmt: skip


@contextmanager
def _watched(
    task: Task, outcomes: np.ndarray, turn: Cost, watch: Watch | None, scratch: Path, interrupt: Interrupt, say: Say
) -> Iterator[None]:
    """Follow the puller's notes while the processes run, and pass on the wish to stop."""
    over = threading.Event()

    def follow() -> None:
        while not over.wait(0.05 if watch is None else 0.2):
            if interrupt.asked:
                say("stopping after this decision, with a checkpoint; Ctrl-C again stops at once, without one")
                ask_to_stop(scratch, task.parties, max(1, task.settings.refresh or 0), over)
                return
            if watch is not None and len(arms := arms_of(task)):
                watch(len(arms), float(pulled(outcomes[: len(arms)], arms).mean()), turn)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join(1.0)

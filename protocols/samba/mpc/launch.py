"""A run on shares with a process for each computing party, each block of owners, DC and the dealer."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bandits.samba import BernoulliArms, Seeds
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net.transport import check_timeout
from mpc.prg import fresh_key
from offline import Plan

from ...ppcb.planning import check_material
from ...run.checkpoint import Checkpoint, checkpoint_at, forget_beyond
from ...run.keeping import Keep, Stopped
from ...run.sources import dealer_beside
from ...run.stopping import stoppable
from .checkpoint import (
    COIN_KEY,
    COINS,
    DEALER,
    MATERIAL,
    begin,
    check,
    facts_of,
    forget,
    kept_anything,
    latest_of_all,
    missing,
    read_coins,
    read_run,
    read_seeds,
)
from .clients import Host
from .program import CUSTOMER
from .replay import DealtCoins
from .roles import HOST, PARTY, Task
from .run import Game, Run
from .settings import Settings
from .simulate import check_arms, plan_of

_PATIENCE = 30 * 86400.0  # seconds that DC waits for the end of a run; whom the parties lose, they notice much sooner


@dataclass(frozen=True)
class Launch:
    """How to launch a run.

    seed: of what the arms pay; all other seeds are fresh.  keep: where the roles keep what a run goes on from, else in
    the run's own folder.  material: stores to draw from, else a dealer is started.
    """

    parties: int
    seed: int
    keep: Keep | None = None
    timeout: float = 60.0
    material: Path | None = None
    session: str = "local"


def launched(
    arms: BernoulliArms, settings: Settings, how: Launch, scratch: Path,
    reference: Callable[[int], None] | None = None,
) -> Run:  # fmt: skip
    """Play the whole budget, or what is left of it.

    With a place to keep it, the first Ctrl-C lets all roles keep the same pull, and ends in `Stopped`; a second one
    ends at once, as the first does where nothing is kept.
    """
    plan = plan_of(settings, how.parties)
    task = prepared(arms, settings, how, scratch)
    task.save(scratch)
    homes = task.homes(how.parties)
    command = own_command("protocols.samba.mpc.roles")
    clients = {role: [*command, HOST, str(scratch), str(at)] for at, role in enumerate(settings.roles)}
    clients[CUSTOMER] = [*command, CUSTOMER, str(scratch)]
    stops = nullcontext() if how.keep is None else stoppable(scratch, len(homes))
    try:
        with stops, _dealing(plan, task, scratch) as environment:
            launch(
                [*command, PARTY, str(scratch)], how.parties, clients=clients, environment=environment,
                timeout=_PATIENCE,
            )  # fmt: skip
    except (KeyboardInterrupt, ConfigError) as error:
        done = latest_of_all(homes) if how.keep is not None else 0
        if how.keep is None or not (task.start or kept_anything(homes)):
            forget(task.keep)
        if isinstance(error, KeyboardInterrupt):
            if done:
                raise Stopped(done) from None
            raise
        more = f"; all roles kept pull {done:,}: --resume goes on from there" if done else ""
        raise ConfigError(_with_roles(str(error), (*settings.roles, CUSTOMER)) + more) from error
    if not (scratch / f"{CUSTOMER}.json").exists():
        raise Stopped(latest_of_all(homes))
    run = _read(arms, task, how, plan, scratch, reference)
    forget(task.keep)
    return run


def prepared(arms: BernoulliArms, settings: Settings, how: Launch, scratch: Path) -> Task:
    """The task of a run, or of what is left of it, with `keep` made ready for it.

    What can be found wrong before the first message is found here; only then is what an earlier run kept removed.
    """
    check_arms(arms, settings)
    check_timeout(how.timeout)
    if how.material is not None and not how.material.is_dir():
        raise ConfigError(f"there is no material in {how.material}: deal it with 'masked offline deal'")
    keep = how.keep or Keep(scratch / "keep", every=settings.budget)
    task = Task(settings, keep.folder, 0, keep.every, how.timeout, how.material, how.session)
    coins = DEALER if how.material is None else MATERIAL
    facts = {**facts_of(arms, settings, how.parties, how.seed), COINS: coins}
    homes = task.homes(how.parties)
    if keep.resume:
        check(read_run(keep.folder), facts)
        if not (start := latest_of_all(homes)):
            raise missing(keep.folder)
        task = replace(task, start=start)
    if how.material is not None:
        check_material(
            how.material, how.session, plan_of(settings, how.parties), task.draws,
            run=f"{settings.policy}, {settings.budget:,} pulls of {settings.arms} arms",
            cure="masked offline plan samba ..., with the options of this run, -o plan.json",
        )  # fmt: skip
    if keep.resume:
        for home in homes:
            forget_beyond(home, task.start)
        if how.material is not None:
            print(
                f"pulls after {task.start:,} are made with other coins, of --material: those that were made before are "
                "made again, and what their arms paid and owners learned is not taken back",
                file=sys.stderr, flush=True,
            )  # fmt: skip
        return task
    seeds = Seeds.fresh()._replace(rewards=Seeds.of(how.seed).rewards)
    begin(keep.folder, facts, (fresh_key(), seeds) if how.material is None else None)
    for at, block in enumerate(settings.blocks):
        own = Host.simulated(settings, block, seeds, arms)
        own_seeds = {"common": seeds.common.hex(), "rewards": seeds.rewards.hex()}
        Checkpoint(0, own_seeds, {**own.state(), "means": arms.means[block.start : block.stop]}).save(task.host(at))
    return task


@contextmanager
def _dealing(plan: Plan, task: Task, scratch: Path) -> Iterator[dict[str, str]]:
    if task.material is not None:
        yield {}
        return
    first = max(0, task.start - task.settings.arms)
    with dealer_beside(plan, task.draws, scratch, coins=task.keep / COIN_KEY, first=first) as environment:
        yield environment


def _read(
    arms: BernoulliArms, task: Task, how: Launch, plan: Plan, scratch: Path, progress: Callable[[int], None] | None
) -> Run:
    """What the roles were left with, beside the reference where the coins are known."""
    settings = task.settings
    told = json.loads((scratch / "party-0.json").read_text())
    (total,) = json.loads((scratch / f"{CUSTOMER}.json").read_text())
    states = [Checkpoint.load(checkpoint_at(task.host(at), settings.budget)).arrays for at in range(settings.hosts)]
    reference, dealt = None, {"blocks": 0, "seconds": 0.0}
    if task.material is None:
        seeds = read_seeds(task.keep)
        coins = DealtCoins(read_coins(task.keep), plan.items, settings.arms, seeds)
        reference = Game.reference(settings, arms, coins, seeds.rewards, progress)
        dealt = json.loads((scratch / "dealer.json").read_text())
    cost = Cost(**told["cost"])
    return Run(
        settings, how.parties, total, Game.of(states, settings.budget), reference, cost,
        tuple(Entry(**row) for row in told["ledger"]), cost.seconds, plan.items, plan.step_bytes * settings.steps,
        settings.steps * dealt["seconds"] / max(1, dealt["blocks"]),
    )  # fmt: skip


def _with_roles(message: str, roles: tuple[str, ...]) -> str:
    """A message in which clients have their names instead of numbers."""

    def named(found: re.Match[str]) -> str:
        at = int(found[1])
        return roles[at] if at < len(roles) else found[0]

    return re.sub(r"\bclient (\d+)\b", named, message)

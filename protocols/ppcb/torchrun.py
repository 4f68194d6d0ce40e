"""A run whose processes torchrun started: rank p is owner p, then come the puller and the payer.

All ranks are on one machine and share the folder in which each keeps its own; material was dealt beforehand.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

from bandits.environments import Environment
from mpc.client import serve
from mpc.errors import ConfigError
from mpc.launch import Place, join, join_as_client

from .launched import Launch, plan_of, prepared, result_of
from .play import split
from .program import PAYER, PULLER
from .roles import PIPE, Task, owner, payer, puller
from .run import Run
from .settings import Settings
from .simulate import episodes_of
from .world import World

ROLES = (PULLER, PAYER)


def check_place(here: Place, parties: int) -> None:
    """ConfigError unless there is a rank for every role."""
    if here.parties != parties + len(ROLES):
        raise ConfigError(
            f"torchrun started {here.parties} processes: {parties} owners, the puller and the payer are "
            f"{parties + len(ROLES)}; use --nproc-per-node {parties + len(ROLES)}, or another --parties"
        )


def torchrun(environment: Environment, settings: Settings, how: Launch, here: Place) -> Run | None:
    """Play this process's role; rank 0 gives the run, from what the roles kept."""
    if how.material is None:
        raise ConfigError(
            "under torchrun material is dealt beforehand: 'masked offline plan ppcb', 'masked offline deal', and then "
            "--material DIR"
        )
    if how.resume:
        raise ConfigError("under torchrun a run starts anew: use 'masked launch ppcb --resume'")
    settings = settings.for_run(how.parties, how.steps)
    pipe = how.keep / f"{PIPE}-{os.getppid()}"  # torchrun is the parent of all ranks
    ready = pipe.with_suffix(".ready")
    episodes = episodes_of(environment, settings, how.steps, how.seed)
    world = World(episodes, settings)
    if here.node == 0:
        task = prepared(environment, settings, how)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        task.save(how.keep)
        ready.touch()
    deadline = time.monotonic() + how.timeout
    while not ready.exists():
        if time.monotonic() > deadline:
            raise ConfigError(f"rank 0 did not prepare {how.keep} within {how.timeout:g} s: start all ranks together")
        time.sleep(0.01)

    task = Task.load(how.keep)
    try:
        if here.node == how.parties:
            serve(join_as_client(clients=len(ROLES)), puller(task, pipe))
        elif here.node > how.parties:
            serve(join_as_client(clients=len(ROLES)), payer(world.outcomes, task, pipe))
        else:
            own = split(world.contexts, how.parties)[here.node]
            owner(own, task, here.node, join(how.timeout, clients=len(ROLES)))
    finally:
        if here.node == 0:
            for path in (pipe, ready, how.keep / "task.json"):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
    if here.node:
        return None
    done = replace(task, start=task.decisions)
    return result_of(settings, how, done, episodes, plan_of(settings, how.parties), Path())

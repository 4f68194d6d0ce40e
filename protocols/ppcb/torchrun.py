"""A run whose processes torchrun started: rank p is owner p, then come the puller and the payer.

All ranks are on one machine and share the folder in which each keeps its own; material was dealt beforehand.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bandits.environments import Environment
from mpc.client import serve
from mpc.errors import ConfigError, MaskedError
from mpc.launch import Place, join, join_as_client
from mpc.net.transport import check_timeout

from ..run.checkpoint import checkpoint_at
from ..run.folder import reserved
from .clients import World, check_memory
from .launched import Launch, begun, result_of
from .play import split
from .program import PAYER, PULLER
from .roles import PIPE, Task, arms_of, owner, payer, puller, role_of
from .run import Run
from .settings import Settings
from .simulate import episodes_of

ROLES = (PULLER, PAYER)
_SILENT = 10.0  # seconds in which rank 0 says what all ranks found, and torchrun ends them


def check_place(here: Place, parties: int) -> None:
    """ConfigError unless there is a rank for every role."""
    if here.parties != parties + len(ROLES):
        raise ConfigError(
            f"torchrun started {here.parties} processes: {parties} owners, the puller and the payer are "
            f"{parties + len(ROLES)}; use --nproc-per-node {parties + len(ROLES)}, or another --parties"
        )


@contextlib.contextmanager
def one_voice(here: Place | None) -> Iterator[None]:
    """Where all ranks find the same mistake, rank 0 says it, and torchrun ends the others before they do."""
    try:
        yield
    except MaskedError:
        if here is not None and here.node:
            with _ended_by_torchrun():
                time.sleep(_SILENT)
        raise


@contextlib.contextmanager
def _ended_by_torchrun() -> Iterator[None]:
    """A rank that is ended while it waits is no failure of its own: torchrun's report then shows the one there was."""
    try:
        yield
    except SystemExit:
        raise SystemExit(0) from None


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """What ends this rank goes into the file whose text torchrun's own report shows."""
    try:
        yield
    except MaskedError as error:
        if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
            said = {"py_callstack": f"error: {error}", "timestamp": str(int(time.time()))}
            with contextlib.suppress(OSError):
                Path(path).write_text(json.dumps({"message": {"message": f"error: {error}", "extraInfo": said}}))
        raise


def torchrun(environment: Environment, settings: Settings, how: Launch, here: Place, *, scratch: bool) -> Run | None:
    """Play this process's role; rank 0 gives the run, from what the roles kept.

    scratch: `how.keep` is for the time of the run only.
    """
    with one_voice(here):
        if how.material is None:
            raise ConfigError(
                "under torchrun material is dealt beforehand: 'masked offline plan ppcb', 'masked offline deal', and "
                "then --material DIR"
            )
        if how.resume:
            raise ConfigError("under torchrun a run starts anew: use 'masked launch ppcb --resume'")
        check_timeout(how.timeout)
        settings = settings.for_run(how.parties, how.steps)
        if not here.node:
            check_memory(settings, how.steps, processes=here.parties)
    episodes = episodes_of(environment, settings, how.steps, how.seed)
    world = World(episodes, settings)
    if here.node:
        with _ended_by_torchrun():
            task = _told(how)
        _play(world, task, how, here)
        return None
    with _fresh(how.keep) if scratch else reserved(how.keep):
        task, planned = begun(environment, settings, how, world)
        with _announced(task):
            _play(world, task, how, here)
            _await_others(task, how.timeout)
        return result_of(settings, how, replace(task, start=task.decisions), episodes, planned, Path())


def scratch_folder() -> Path:
    """A folder for the time of a run: the same path in all ranks that one torchrun started."""
    return Path(tempfile.gettempdir()) / f"masked-{os.getuid()}-{os.getppid()}-{os.environ.get('MASTER_PORT', '')}"


@contextlib.contextmanager
def _fresh(keep: Path) -> Iterator[None]:
    try:
        keep.mkdir(mode=0o700)
    except OSError as error:
        raise ConfigError(f"{keep} cannot be made ({error.strerror}): remove it, or set TMPDIR") from error
    try:
        yield
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def _play(world: World, task: Task, how: Launch, here: Place) -> None:
    pipe = _pipe(how.keep)
    if here.node == how.parties:
        serve(join_as_client(clients=len(ROLES)), puller(task, pipe))
    elif here.node > how.parties:
        serve(join_as_client(clients=len(ROLES)), payer(world.outcomes, task, pipe))
    else:
        own = split(world.contexts, how.parties)[here.node]
        owner(own, task, here.node, join(how.timeout, clients=len(ROLES)))


def _pipe(keep: Path) -> Path:
    return keep / f"{PIPE}-{os.getppid()}"


def _ready(keep: Path) -> Path:
    return _pipe(keep).with_suffix(".ready")


@contextlib.contextmanager
def _announced(task: Task) -> Iterator[None]:
    """Rank 0 lets the others begin, and clears away what is for the time of the run."""
    pipe, ready = _pipe(task.keep), _ready(task.keep)
    try:
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        task.save(task.keep)
        ready.touch()
        yield
    finally:
        for path in (pipe, ready, task.keep / "task.json"):
            path.unlink(missing_ok=True)


def _told(how: Launch) -> Task:
    """The task, once rank 0 has prepared it."""
    ready, deadline = _ready(how.keep), time.monotonic() + how.timeout
    while not ready.exists():
        if time.monotonic() > deadline:
            raise ConfigError(f"rank 0 did not prepare {how.keep} within {how.timeout:g} s: start all ranks together")
        time.sleep(0.01)
    if how.keep.stat().st_uid != os.getuid():
        raise ConfigError(f"{how.keep} belongs to another user: start all ranks as one, and name a folder with --out")
    return Task.load(how.keep)


def _await_others(task: Task, timeout: float) -> None:
    """Until the other roles have kept their last decision too: a fast rank 0 must not miss it."""
    last = [checkpoint_at(task.keep / role_of(party), task.decisions) for party in range(task.parties)]
    deadline = time.monotonic() + timeout
    while len(arms_of(task)) < task.decisions or not all(path.exists() for path in last):
        if time.monotonic() > deadline:
            raise ConfigError(
                f"not all roles kept their last decision in {task.keep} within {timeout:g} s: start again"
            )
        time.sleep(0.01)

"""A run with a process for each role and one for the dealer: prepares, starts, stops, and reads the end.

What a process is told, and how it finds its program: `role_process.Task`.  What is said of one that died:
`mpc.children`.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpc.errors import ConfigError
from mpc.files import write_new
from mpc.launch import launch as launch_processes
from mpc.launch import own_command
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net.transport import DEFAULT_TIMEOUT, check_timeout
from mpc.prg import fresh_key
from mpc.scratch import scratch_folder

from .checkpoint import checkpoints, common
from .dealer_process import REPORT, check_material, dealer_beside
from .folder import (
    COIN_KEY,
    OF_LAUNCHER,
    SEEDS_KEY,
    Keep,
    begin,
    check_free_for,
    drop_beyond,
    forget,
    go_on,
    homes,
    key_in,
    notes_in,
    of_run,
    reached,
)  # fmt: skip
from .notes import Notes, beyond, note_again
from .program import Coins, Ended, Program, home_of, private_path
from .progress import StepLines
from .rehearsal import Rehearsed, rehearse
from .role_process import ENDED, PARTY, PIPE, Task, kind_of, returned_path
from .stopping import Stopped, stoppable
from .tagged_file import put_back, writing

R = TypeVar("R")
Say = Callable[[str], None]
"""Told, in a line, what whoever started the run should know at once."""


@dataclass(frozen=True)
class Processes:
    """How a run's processes find what they need.

    timeout: seconds until a silent peer is lost.  material, session: stores to draw from, else a dealer is started.
    """

    timeout: float = DEFAULT_TIMEOUT
    material: Path | None = None
    session: str = "local"


@dataclass(frozen=True)
class Prepared:
    """A run that can start: what it draws, what the roles are told, and where it lies."""

    task: Task
    rehearsed: Rehearsed
    folder: Path


def launch(
    program: Program[R], how: Processes, *, keep: Keep | None = None, watch: Callable[[int], Any] | None = None,
    say: Say = lambda _: None, scratch: Path | None = None,
) -> R:  # fmt: skip
    """Play all decisions, or what is left of them.

    scratch: an empty folder for what the roles are given and end with; else one that is gone with the run.

    With a place to keep it, the first Ctrl-C lets all roles keep the same decision; a second one ends at once, as the
    first does where nothing is kept.  A run that was stopped gives what it reached, or is `Stopped` where a part of it
    results in nothing.  What it kept stays until `folder.settle`.
    """
    with scratch_folder() if scratch is None else nullcontext(scratch) as folder:
        kept = keep or Keep(folder / "keep", every=max(1, program.decisions))
        prepared = prepare(program, how, kept, folder, say=say)
        stops: AbstractContextManager[None] = nullcontext()
        if keep is not None or program.partial:
            nodes = len(homes(program, kept.folder))
            stops = stoppable(prepared.folder, nodes, program.cycle, say, program.unit)
        interrupted = None
        try:
            with stops, put_back(kept.folder, OF_LAUNCHER, say):
                _play(program, prepared, watch)
        except KeyboardInterrupt as stop:
            interrupted = stop
        except ConfigError as error:
            if (cured := _with_cure(error, program, kept, keep is not None)) is error:
                raise
            raise cured from error
        done = reached(program, kept.folder)
        if done < program.decisions and not (done and program.partial):
            raise _stopped(program, kept, done, interrupted, say, resumable=keep is not None)
        run = program.result(ended(program, prepared, done))
        if keep is None:
            forget(program, kept.folder)
        return run


def prepare(program: Program[Any], how: Processes, keep: Keep, folder: Path, *, say: Say = lambda _: None) -> Prepared:
    """Find out what can be wrong before the first message; only then remove what an earlier run kept."""
    check_timeout(how.timeout)
    if not keep.resume:
        check_free_for(program, keep)
    rehearsed, material = rehearse(program), how.material is not None
    run, start = go_on(program, keep.folder, material=material) if keep.resume else ("", 0)
    if how.material is not None and not rehearsed.plan.items:
        raise ConfigError(f"a {program.unit} of {program.name!r} draws nothing: leave out --material")
    if how.material is not None:
        words, cure = program.purpose
        check_material(how.material, how.session, rehearsed.plan, program.draws(start), run=words, cure=cure)
    if keep.resume:
        _say_again(program, keep.folder, start, material, say)
        drop_beyond(program, keep.folder, start, material=material)
    else:
        run = begin(program, keep.folder, material=material)
    every = -(-max(1, keep.every) // program.cycle) * program.cycle
    task = Task(
        kind_of(program), program.public(), run, start, every, keep.folder.absolute(), how.timeout,
        bool(rehearsed.plan.items), how.material, how.session,
    )  # fmt: skip
    task.save(folder)
    kept = {role.name for role in program.roles if role.home} if start else set()
    key = (key_in(keep.folder, SEEDS_KEY) or fresh_key()) if program.seeded else None
    for role, own in program.private(key).items():
        if role not in kept:  # a client that keeps its state goes on from that
            write_private(private_path(folder, role), own)
    if len(program.roles) > 1:
        os.mkfifo(folder / PIPE, 0o600)
    return Prepared(task, rehearsed, folder)


def ended(program: Program[Any], prepared: Prepared, done: int) -> Ended:
    """What the roles kept up to decision `done`, and what they were left with where that was the last one."""
    task, rehearsed, folder = prepared.task, prepared.rehearsed, prepared.folder
    party = of_run(task.keep / home_of(0), done, task.run)
    clients = {role.name: of_run(task.keep / role.home, done, task.run).arrays for role in program.roles if role.home}
    told = json.loads((folder / ENDED).read_text()) if (folder / ENDED).exists() else party.facts
    paths = {role.name: returned_path(folder, role.name) for role in program.roles}
    left = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
    words, again, most = np.zeros(0, np.int64), 0, 1
    if (notes := notes_in(program, task.keep)) is not None:
        words = notes.words()
        if len(words) < done:
            raise _notes_lost(notes, len(words), done, program.unit)
        again, most = beyond(task.keep, done, len(words))
    draws = program.draws(0, done)
    coins, dealt = None, {"blocks": 0, "seconds": 0.0}
    if task.material is None and (key := key_in(task.keep, COIN_KEY)) is not None:
        coins = Coins(key, program.cycle, key_in(task.keep, SEEDS_KEY))
        if (folder / REPORT).exists():
            dealt = json.loads((folder / REPORT).read_text())
    return Ended(
        done, Cost(**told["cost"]), Cost(**told.get("played", told["cost"])),
        tuple(Entry(**row) for row in told["ledger"]), told["seconds"], rehearsed.turn,
        rehearsed.plan.step_bytes * draws, draws * dealt["seconds"] / max(1, dealt["blocks"]), coins, party.arrays,
        clients, words[:done], left, again, most,
    )  # fmt: skip


def _play(program: Program[Any], prepared: Prepared, watch: Callable[[int], Any] | None) -> None:
    """Start all processes, and wait for their end."""
    task, folder = prepared.task, prepared.folder
    if task.start >= program.decisions and program.lasting:  # nothing follows the last decision
        return
    command = own_command("protocols.run.role_process", str(folder))
    clients = {role.name: [*command, role.name] for role in program.roles}
    with _dealing(program, prepared) as environment:
        launch_processes(
            [*command, PARTY], program.parties, clients=clients, own_environments=environment, timeout=task.timeout,
            output=StepLines.heard(watch), load=[task.kind[0]],
        )  # fmt: skip


@contextmanager
def _dealing(program: Program[Any], prepared: Prepared) -> Iterator[dict[int, dict[str, str]]]:
    """A dealer beside the run, where nothing was dealt before; gives what each party finds it by."""
    task = prepared.task
    if task.material is not None or not prepared.rehearsed.plan.items:
        yield {}
        return
    first, steps = program.block(task.start), program.draws(task.start)
    coins = task.keep / COIN_KEY
    with dealer_beside(prepared.rehearsed.plan, steps, prepared.folder, coins=coins, first=first) as environment:
        yield environment


def _with_cure(error: ConfigError, program: Program[Any], keep: Keep, resumable: bool) -> ConfigError:
    """What a role failed of, and where the run can go on from."""
    done = reached(program, keep.folder) if resumable else 0
    if not done:
        _forget_if_unplayed(program, keep)
        return error
    return ConfigError(f"{error}; all roles kept {program.unit} {done:,}: --resume goes on from there")


def _stopped(
    program: Program[Any], keep: Keep, done: int, interrupted: KeyboardInterrupt | None, say: Say, *, resumable: bool
) -> BaseException:
    """What a run that was stopped ends in."""
    if done and resumable:
        return Stopped(done)
    if (notes := notes_in(program, keep.folder)) is not None:
        noted, kept = len(notes.words()), max(common(homes(program, keep.folder)), default=0)
        if noted < kept and interrupted is None:
            return _notes_lost(notes, noted, kept, program.unit)
        say(
            f"{noted:,} {program.unit}s were made, and the first checkpoint comes after {keep.every:,}: "
            f"{keep.folder} holds nothing to go on from, only what the {notes.who} learned"
        )
    else:
        _forget_if_unplayed(program, keep)
    return interrupted or ConfigError(f"no role kept anything in {keep.folder}")


def _notes_lost(notes: Notes, noted: int, done: int, unit: str) -> ConfigError:
    """Parties wait for notes before they keep anything; here they have kept more than is noted."""
    return ConfigError(
        f"{notes.path} holds {noted:,} of {done:,} {unit}s: it was removed or cut at the end of the run, whose result "
        "is lost; run again with --overwrite"
    )


def _forget_if_unplayed(program: Program[Any], keep: Keep) -> None:
    """Where no role kept anything and none noted anything, there is nothing to put back or to count."""
    noted = program.notes is not None and (keep.folder / program.notes.notes).exists()
    if not noted and not any(checkpoints(home) for home in homes(program, keep.folder)):
        forget(program, keep.folder)


def _say_again(program: Program[Any], folder: Path, start: int, material: bool, say: Say) -> None:
    """Which decisions are about to be made again; where they are noted, they count twice."""
    coins = "other coins, of --material," if material else "the same coins"
    if (notes := notes_in(program, folder)) is None:
        if material:
            say(
                f"{program.unit}s after {start:,} are made with {coins} those that were made before as well: what "
                "roles learned of them is not taken back"
            )
        return
    if again := len(notes.words()) - start:
        note_again(folder, start, start + again)
        say(
            f"{again:,} {program.unit}s from {start:,} on are made again with {coins} and fresh masks: if a repeat "
            f"yields another value, the {notes.who} has seen two for that {program.unit}, so they count twice"
        )
    notes.cut(start)


def write_private(path: Path, own: Any) -> None:
    """What a role alone has, into a file that its user alone reads."""
    archive = io.BytesIO()
    np.savez(archive, **own)
    with writing(path):
        write_new(path, archive.getvalue())

"""A run whose processes torchrun started: rank p is computing party p, then come the clients.

All ranks are on one machine and share the folder in which each keeps its own; material was dealt beforehand.  Rank 0
makes the program and deals out its inputs; every rank then plays one role, as in a launch.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from mpc.errors import ConfigError, MaskedError
from mpc.launch import Place
from mpc.scratch import scratch_folder, scratch_path

from .exits import say
from .folder import OF_LAUNCHER, Keep, reached
from .launch import Processes, ended, prepare
from .program import Program
from .role_process import PARTY, play
from .tagged_file import put_back

R = TypeVar("R")
_SILENT = 10.0  # seconds in which rank 0 says what all ranks found, and torchrun ends them


def check_place(here: Place, parties: int, clients: Sequence[str]) -> None:
    """ConfigError unless there is a rank for every role."""
    wanted = parties + len(clients)
    if here.parties != wanted:
        raise ConfigError(
            f"torchrun started {here.parties} processes: {parties} computing parties and {', '.join(clients)} are "
            f"{wanted}; use --nproc-per-node {wanted}, or another --parties"
        )


@contextlib.contextmanager
def one_voice(here: Place | None) -> Iterator[None]:
    """Where all ranks find the same mistake, rank 0 says it, and torchrun ends the others before they do."""
    waits = here is not None and here.node
    try:
        with _ended_by_torchrun() if waits else contextlib.nullcontext():
            yield
    except MaskedError:
        if waits:
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
    """What ends this rank goes, without its value, into the file whose text torchrun's own report shows."""
    try:
        yield
    except MaskedError as error:
        if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
            words = f"error: {error.told}"
            said = {"py_callstack": words, "timestamp": str(int(time.time()))}
            with contextlib.suppress(OSError):
                Path(path).write_text(json.dumps({"message": {"message": words, "extraInfo": said}}))
        raise


def check_dealt(how: Processes, keep: Keep | None) -> None:
    """ConfigError where ranks would need a dealer, or something to go on from."""
    if how.material is None:
        raise ConfigError(
            "under torchrun material is dealt beforehand: 'masked offline plan', 'masked offline deal', and then "
            "--material DIR"
        )
    if keep is not None and keep.resume:
        raise ConfigError("under torchrun a run starts anew: use 'masked launch' with --resume")


def follow(how: Processes, here: Place, clients: Sequence[str]) -> None:
    """Play this rank's role, once rank 0 has prepared the run."""
    scratch, parties = scratch_path(_common()), here.parties - len(clients)
    with _ended_by_torchrun():
        _await_rank_0(scratch, how.timeout)
    play(scratch, PARTY if here.node < parties else clients[here.node - parties], clients=len(clients))
    os.close(os.open(_over(scratch, here.node), os.O_CREAT | os.O_WRONLY, 0o600))  # the last: rank 0 removes them all


def torchrun(program: Program[R], how: Processes, *, keep: Keep | None) -> R:
    """Rank 0: prepare the run, play party 0, and give the result, from what the roles kept.

    keep: None where what is kept is for the time of the run only.
    """
    with _fresh() as scratch:
        kept = keep or Keep(scratch / "keep", every=program.decisions)
        prepared = prepare(program, how, kept, scratch)
        _ready(scratch).touch()
        with put_back(kept.folder, OF_LAUNCHER, say):
            play(scratch, PARTY, clients=len(program.roles))
            _await_others(program, kept, scratch, how.timeout)
        return program.result(ended(program, prepared, program.decisions))


def _common() -> str:
    """The name of a folder for the time of a run: the same in all ranks that one torchrun started."""
    return f"{os.getuid()}-{os.getppid()}-{os.environ.get('MASTER_PORT', '')}"


@contextlib.contextmanager
def _fresh() -> Iterator[Path]:
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder(_common()))
        except OSError as error:
            where = scratch_path(_common())
            raise ConfigError(f"{where} cannot be made ({error.strerror}): remove it, or set TMPDIR") from error
        yield folder


def _ready(folder: Path) -> Path:
    return folder / "ready"


def _over(folder: Path, rank: int) -> Path:
    return folder / f"over-{rank}"


def _await_rank_0(folder: Path, timeout: float) -> None:
    """Until rank 0 has prepared the run."""
    deadline = time.monotonic() + timeout
    while not _ready(folder).exists():
        if time.monotonic() > deadline:
            raise ConfigError(f"rank 0 did not prepare {folder} within {timeout:g} s: start all ranks together")
        time.sleep(0.01)
    if folder.stat().st_uid != os.getuid():
        raise ConfigError(f"{folder} belongs to another user: start all ranks as one, or set TMPDIR")


def _await_others(program: Program[R], keep: Keep, scratch: Path, timeout: float) -> None:
    """Until the other ranks have kept all and touch nothing any more: a fast rank 0 must not miss it, or be in the way.

    What a rank keeps is seen before it has flushed the folder.
    """
    last = [_over(scratch, rank) for rank in range(1, program.parties + len(program.roles))]
    deadline = time.monotonic() + timeout
    while not all(path.exists() for path in last) or reached(program, keep.folder) < program.decisions:
        if time.monotonic() > deadline:
            raise ConfigError(
                f"not all roles kept their last {program.unit} in {keep.folder} within {timeout:g} s: start again"
            )
        time.sleep(0.01)

"""The folder of a run: locked, begun, gone on from, finished.  Knows which file is whose; not what lies in it.

    keep/run.json                     which run this is; of a launch alone, and no role reads it
    keep/coin.key                     the dealer's coins, where a dealer is beside the run
    keep/seeds.key                    what clients' own coins follow from, where they draw any; no role reads it
    keep/party-p/checkpoint-n.npz     a computing party after n decisions
    keep/HOME/checkpoint-n.npz        a client that keeps its state
    keep/NOTES, keep/again.json       what a client learned, and which decisions were made again
    keep/heard                        between machines, what the world outside told a client
    keep/told                         between machines, which decisions the world was told before
    keep/dealt                        between machines, of a dealer: there is nothing left for it to deal
    keep/checkpoint-n.npz             of a simulation: all roles
    keep/finished                     what the run came to is written; without it, what is kept is of an unfinished run

All of it is authenticated, under a key of the home where it lies: see `tagged_file`.  Keys and shares are
readable by their owner alone, and never leave the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.extras import require
from mpc.files import make_place
from mpc.lifeline import by_its_maker, to_the_end
from mpc.prg import fresh_key

from .checkpoint import Checkpoint, checkpoint_at, checkpoints, common, forget_all, forget_beyond
from .notes import AGAIN, Notes
from .program import Program, apart, home_of
from .tagged_file import HOME_KEY, read_kept, write_kept

COIN_KEY, SEEDS_KEY, RUN = "coin.key", "seeds.key", "run.json"
OF_LAUNCHER = HOME_KEY, RUN, COIN_KEY, SEEDS_KEY, AGAIN
CHECKPOINTS = "checkpoints"  # in --out, or in a role's own output.folder
HEARD, TOLD, COINS, DEALT, LEFT = "heard", "told", "coins", "dealt", "left"
_FINISHED = "finished"
_DISCARD = "put it back, or discard the run with --overwrite"
_DEALER, _MATERIAL = "a dealer beside the run", "material"
PICTURES = (".png", ".svg", ".pdf", ".jpg")


@dataclass(frozen=True)
class Keep:
    """folder: where checkpoints lie.  every: decisions between two.

    resume: go on from the last.  overwrite: discard what is there of a run that was not finished.  around: a folder
    above it, where runs lie whose results would take each other's place.
    """

    folder: Path
    every: int = 100
    resume: bool = False
    overwrite: bool = False
    around: Path | None = None


def homes(program: Program[Any], folder: Path) -> list[Path]:
    """Of all roles that keep checkpoints: computing parties, then clients."""
    names = [home_of(party) for party in range(program.parties)]
    return [folder / name for name in (*names, *(role.home for role in program.roles if role.home))]


def reached(program: Program[Any], folder: Path) -> int:
    """The last decision that all roles have kept, and all that write notes have noted; 0 if there is none."""
    done = common(homes(program, folder))
    if (notes := notes_in(program, folder)) is not None:
        noted = len(notes.words())
        done = {number for number in done if number <= noted}
    return max(done, default=0)


def notes_in(program: Program[Any], folder: Path) -> Notes | None:
    """What a client of this program writes down there."""
    role = program.notes
    return None if role is None else Notes(folder / role.notes, program.noted, who=role.name)


def check_free(keep: Keep, homes: Iterable[Path], notes: Path | None = None) -> None:
    """ConfigError where there is a run that was not finished, and nobody said to discard it.

    Of another program or mode as well, where both would write one result.
    """
    if keep.overwrite:
        return
    runs = _runs_in(keep.around or keep.folder)
    there = keep.folder in runs or any(checkpoints(home) for home in homes)
    noted = notes is not None and notes.exists() and notes.stat().st_size > 0
    if (there or noted) and not _is_finished(keep.folder):
        way = "go on with --resume, discard" if there else "there is no checkpoint to go on from, so discard"
        raise ConfigError(
            f"{keep.folder} holds a run that was not finished: {way} it with --overwrite, or choose another --out"
        )

    for place in runs:
        if place != keep.folder and not _is_finished(place):
            raise ConfigError(
                f"{place} holds another run that was not finished: end it with --resume, as it was begun, or choose "
                "another --out; --overwrite begins here all the same, and leaves that one where it is"
            )


def _runs_in(folder: Path) -> list[Path]:
    """Folders of runs that have a checkpoint, of whatever program."""
    kept = {path.parent for path in folder.rglob("checkpoint-*.npz")}
    return sorted({home.parent if (home.parent / RUN).is_file() else home for home in kept})


def _is_finished(folder: Path) -> bool:
    """Whether the run that was kept there came to its end; ConfigError where another's word for it lies there."""
    note = folder / _FINISHED
    return note.exists() and read_kept(note, cure=f"go on with --resume, or {_DISCARD}") == b""


def check_free_for(program: Program[Any], keep: Keep) -> None:
    """The same, of all that a run of this program would replace."""
    notes = None if program.notes is None else keep.folder / program.notes.notes
    check_free(keep, (keep.folder, *_homes_there(program, keep.folder)), notes)


def begin(program: Program[Any], folder: Path, *, material: bool) -> str:
    """Make the folder ready for a new launch; what an earlier run kept there goes.  Gives the run's name."""
    forget(program, folder)
    run = secrets.token_hex(8)
    facts = {"run": run, "coins": _MATERIAL if material else _DEALER, **program.facts()}
    write_kept(folder / RUN, json.dumps(facts).encode())
    for name in () if material else (COIN_KEY, *([SEEDS_KEY] if program.seeded else [])):
        write_kept(folder / name, fresh_key())
    return run


def go_on(program: Program[Any], folder: Path, *, material: bool) -> tuple[str, int]:
    """The name of the launch that is kept there, and after which decision it goes on; changes nothing.

    ConfigError with the cure where it is another run, or where a role's part is not there.
    """
    have = _read_run(program, folder)
    if (other := apart(have, program.facts())) is not None:
        raise other_run(other)
    _check_coins(program, folder, have["coins"], material=material)
    if not (start := reached(program, folder)):
        raise _nothing_in_common(program, folder)
    for home in homes(program, folder):
        of_run(home, start, have["run"])
    return have["run"], start


def of_run(home: Path, done: int, run: str) -> Checkpoint:
    """What a role of this run kept, or ConfigError where it is another's."""
    found = Checkpoint.load(checkpoint_at(home, done))
    if (found.facts.get("role"), found.facts.get("run")) != (home.name, run):
        raise other_owner(checkpoint_at(home, done), found, home.name, run)
    return found


def other_owner(path: Path, found: Checkpoint, role: str, run: str) -> ConfigError:
    """A checkpoint lies where another should."""
    whose = f"{found.facts.get('role')} of run {found.facts.get('run')}"
    return ConfigError(f"{path} is of {whose}, not of {role} of run {run}: {_DISCARD}")


def drop_beyond(program: Program[Any], folder: Path, start: int, *, material: bool) -> None:
    """Remove what comes after the decision that a run goes on from."""
    for home in homes(program, folder):
        forget_beyond(home, start)
    if material:  # from here on the key does not tell the coins of the whole run
        (folder / COIN_KEY).unlink(missing_ok=True)


def key_in(folder: Path, name: str) -> bytes | None:
    """A key that a launch kept."""
    path = folder / name
    return read_kept(path, cure=_DISCARD) if path.is_file() else None


def latest(program: Program[Any], folder: Path) -> Checkpoint:
    """The last checkpoint of a simulation, which is to be of this run."""
    if not (found := checkpoints(folder)):
        if (folder / RUN).exists() or any(folder.glob("party-*")):
            command = f"masked launch {program.name} --resume"
            raise ConfigError(f"the run in {folder} is one of processes: go on with '{command}'")
        raise no_checkpoint(folder)
    return Checkpoint.load(found[-1])


def forget(program: Program[Any], folder: Path) -> None:
    """Delete all that a run of this program kept; what else lies there stays."""
    notes = () if program.notes is None else (program.notes.notes,)
    clear(folder, _homes_there(program, folder), (*OF_LAUNCHER, *notes, HEARD, TOLD, COINS, DEALT, LEFT, _FINISHED))


def clear(folder: Path, homes: Sequence[Path], names: Iterable[str]) -> None:
    """Delete the checkpoints of these homes and of the folder, files of these names, and what is empty then.

    All of it, where a signal comes meanwhile, and last the key by which the rest is known.
    """
    with to_the_end():
        for home in homes:
            forget_all(home)
        for name in {*names} - {HOME_KEY}:
            for path in (folder / name, folder / f"{name}.new"):
                path.unlink(missing_ok=True)
        forget_all(folder)
        _remove_empty([*homes, folder])


def settle(program: Program[Any], folder: Path) -> None:
    """What the run came to is printed and written: forget what it kept, or note that it is of a finished one."""
    if not program.lasting:
        forget(program, folder)
    elif folder.exists():
        write_kept(folder / _FINISHED, b"")


def _homes_there(program: Program[Any], folder: Path) -> list[Path]:
    """Of computing parties, however many, and of this program's clients."""
    clients = [folder / role.home for role in program.roles if role.home]
    return list(dict.fromkeys([*folder.glob(f"{home_of(0)[:-1]}*"), *clients]))


def other_run(where: str) -> ConfigError:
    """What was kept belongs to another run."""
    return ConfigError(f"the checkpoint is of a run with {where}: give the arguments of that run, or another --out")


def _read_run(program: Program[Any], folder: Path) -> dict[str, Any]:
    if checkpoints(folder):
        raise ConfigError(f"the run in {folder} is a simulation: go on with 'masked run {program.name} --resume'")
    if not (folder / RUN).is_file():
        raise no_checkpoint(folder)
    have = json.loads(read_kept(folder / RUN, cure=_DISCARD))
    if not isinstance(have, dict) or not {"run", "coins"} <= have.keys():
        raise ConfigError(f"{folder / RUN} was written by another version: start the run again")
    return have


def _check_coins(program: Program[Any], folder: Path, coins: str, *, material: bool) -> None:
    if material and coins == _DEALER and not program.recoins:
        raise ConfigError("the run has the coins of its own dealer: go on without --material, or give another --out")
    if not material and coins == _MATERIAL:
        raise ConfigError(
            "the run has the coins of material that was dealt before: go on with --material, or give another --out"
        )
    for name in () if material else (COIN_KEY, *([SEEDS_KEY] if program.seeded else [])):
        if key_in(folder, name) is None:
            raise ConfigError(
                f"{folder} holds no {name}, so no dealer can go on with its coins: give --material, or discard the run "
                "with --overwrite"
            )


def _nothing_in_common(program: Program[Any], folder: Path) -> ConfigError:
    found = {home.name: checkpoints(home)[-1:] for home in homes(program, folder)}
    if not any(found.values()):
        return no_checkpoint(folder)
    stand = ", ".join(f"{name} at {paths[0].stem if paths else 'none'}" for name, paths in found.items())
    notes = "" if program.notes is None else f" and the {program.notes.name}'s {program.notes.notes}"
    return ConfigError(
        f"the roles{notes} in {folder} have no {program.unit} in common ({stand}): put back what is missing, or "
        "discard the run with --overwrite"
    )


def no_checkpoint(folder: Path) -> ConfigError:
    """Nothing is kept there to go on from."""
    out = next((place.parent for place in (folder, *folder.parents) if place.name == CHECKPOINTS), folder)
    return ConfigError(
        f"there is no checkpoint in {folder}: the run reached its end, or never started; run without --resume, and "
        f"with --out {out}"
    )


@contextlib.contextmanager
def reserved(keep: Path, option: str = "--out") -> Iterator[None]:
    """`keep` made, and locked for this process: two runs in one folder would undo each other.  option: says where.

    The lock is the kernel's, so it ends with the process, however that ends.  Folders in which nothing was kept are
    removed again.
    """
    missing = _missing(keep)
    try:
        make_place(keep)
        lock = _locked(keep / "lock", option)
    except OSError as error:
        raise _unusable(keep, error, option) from error
    finally:
        _remove_empty(missing)
    unlock = by_its_maker(partial((keep / "lock").unlink, missing_ok=True))
    try:
        yield
    finally:
        unlock()
        os.close(lock)
        _remove_empty(missing)


def check_picture(path: Path) -> None:
    """ConfigError unless a picture can be written there."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"a picture ends in {', '.join(PICTURES)}, not as {path.name!r} does: rename it in --plot")
    check_file(path, "--plot")
    require("matplotlib", "--plot")


def check_file(path: Path, option: str) -> None:
    """ConfigError unless a file can be written there, before anything is computed; the option says where."""
    missing = _missing(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise _unusable(path, error, option) from error
    finally:
        _remove_empty(missing)


def _locked(path: Path, option: str) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode(errors="replace")
            os.close(lock)
            raise ConfigError(
                f"process {holder} has a run in {path.parent}: wait for its end, or choose another {option}"
            ) from None
        except OSError:
            os.close(lock)
            raise
        if os.fstat(lock).st_nlink:  # else its holder has just removed it
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return lock
        os.close(lock)


def _missing(folder: Path) -> list[Path]:
    """It and those above it that are not there yet, the deepest first."""
    return [place for place in (folder, *folder.parents) if not place.exists()]


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _unusable(path: Path, error: OSError, option: str) -> ConfigError:
    return ConfigError(f"{path} cannot be written ({error.strerror}): choose a place that can be used for {option}")

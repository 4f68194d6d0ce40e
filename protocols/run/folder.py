"""The folder of a run: locked, begun, gone on from, forgotten.  Knows which file is whose; not what lies in it.

    keep/run.json                     which run this is; of a launch alone, and no role reads it
    keep/coin.key                     the dealer's coins, where a dealer is beside the run
    keep/seeds.key                    what clients' own coins follow from, where they draw any; no role reads it
    keep/party-p/checkpoint-n.npz     a computing party after n decisions
    keep/HOME/checkpoint-n.npz        a client that keeps its state
    keep/NOTES, keep/again.json       what a client learned, and which decisions were made again
    keep/checkpoint-n.npz             of a simulation: all roles

Keys and shares are readable by their owner alone, and never leave the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import sync_folder, write_new
from mpc.prg import fresh_key

from .checkpoint import Checkpoint, checkpoint_at, checkpoints, common, forget_all, forget_beyond
from .notes import AGAIN, notes_of
from .program import Program, apart, home_of

COIN_KEY, SEEDS_KEY, RUN = "coin.key", "seeds.key", "run.json"
_DEALER, _MATERIAL = "a dealer beside the run", "material"
PICTURES = (".png", ".svg", ".pdf", ".jpg")


@dataclass(frozen=True)
class Keep:
    """folder: where checkpoints lie.  every: decisions between two.  resume: go on from the last."""

    folder: Path
    every: int = 100
    resume: bool = False


def homes(program: Program[Any], folder: Path) -> list[Path]:
    """Of all roles that keep checkpoints: computing parties, then clients."""
    names = [home_of(party) for party in range(program.parties)]
    return [folder / name for name in (*names, *(role.home for role in program.roles if role.home))]


def reached(program: Program[Any], folder: Path) -> int:
    """The last decision that all roles have kept, and all that write notes have noted; 0 if there is none."""
    kept = common(homes(program, folder))
    if program.notes is not None:
        noted = len(notes_of(folder / program.notes.notes, program.noted))
        kept = {done for done in kept if done <= noted}
    return max(kept, default=0)


def begin(program: Program[Any], folder: Path, *, material: bool) -> str:
    """Make the folder ready for a new launch; what an earlier run kept there goes.  Gives the run's name."""
    forget(program, folder)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    run = secrets.token_hex(8)
    facts = {"run": run, "coins": _MATERIAL if material else _DEALER, **program.facts()}
    write_new(folder / RUN, json.dumps(facts).encode())
    for name in () if material else (COIN_KEY, *([SEEDS_KEY] if program.seeded else [])):
        write_new(folder / name, fresh_key())
    sync_folder(folder)
    return run


def go_on(program: Program[Any], folder: Path, *, material: bool) -> tuple[str, int]:
    """The name of the launch that is kept there, and after which decision it goes on; changes nothing.

    ConfigError with the cure where it is another run, or where a role's part is not there.
    """
    kept = _read_run(program, folder)
    if (other := apart(kept, program.facts())) is not None:
        raise other_run(other)
    _check_coins(program, folder, kept["coins"], material=material)
    if not (start := reached(program, folder)):
        raise _nothing_in_common(program, folder)
    for home in homes(program, folder):
        facts = Checkpoint.load(checkpoint_at(home, start)).facts
        if (facts.get("role"), facts.get("run")) != (home.name, kept["run"]):
            raise ConfigError(
                f"{checkpoint_at(home, start)} is of {facts.get('role')} of run {facts.get('run')}, not of {home.name} "
                f"of run {kept['run']}: put its own back, or run without --resume"
            )
    return kept["run"], start


def drop_beyond(program: Program[Any], folder: Path, start: int, *, material: bool) -> None:
    """Remove what comes after the decision that a run goes on from."""
    for home in homes(program, folder):
        forget_beyond(home, start)
    if material:  # from here on the key does not tell the coins of the whole run
        (folder / COIN_KEY).unlink(missing_ok=True)


def key_in(folder: Path, name: str) -> bytes | None:
    """A key that a launch kept."""
    path = folder / name
    return path.read_bytes() if path.is_file() else None


def latest(program: Program[Any], folder: Path) -> Checkpoint:
    """The last checkpoint of a simulation, which is to be of this run."""
    if not (found := checkpoints(folder)):
        if (folder / RUN).exists() or any(folder.glob("party-*")):
            command = f"masked launch {program.name} --resume"
            raise ConfigError(f"the run in {folder} is one of processes: go on with '{command}'")
        raise _no_checkpoint(folder)
    return Checkpoint.load(found[-1])


def forget(program: Program[Any], folder: Path) -> None:
    """Delete all that a run of this program kept; what else lies there stays."""
    clients = [folder / role.home for role in program.roles if role.home]
    below = dict.fromkeys([*folder.glob(f"{home_of(0)[:-1]}*"), *clients])
    for home in (folder, *below):
        forget_all(home)
    notes = () if program.notes is None else (program.notes.notes, AGAIN)
    for name in (COIN_KEY, SEEDS_KEY, RUN, *notes):
        (folder / name).unlink(missing_ok=True)
    _remove_empty([*below, folder])


def other_run(where: str) -> ConfigError:
    """What was kept belongs to another run."""
    return ConfigError(f"the checkpoint is of a run with {where}: give the arguments of that run, or another --out")


def _read_run(program: Program[Any], folder: Path) -> dict[str, Any]:
    if checkpoints(folder):
        raise ConfigError(f"the run in {folder} is a simulation: go on with 'masked run {program.name} --resume'")
    try:
        kept: dict[str, Any] = json.loads((folder / RUN).read_text())
        if not isinstance(kept, dict) or not {"run", "coins"} <= kept.keys():
            raise ValueError("not of this version")
    except FileNotFoundError:
        raise _no_checkpoint(folder) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / RUN} is damaged: put it back, or run without --resume") from error
    return kept


def _check_coins(program: Program[Any], folder: Path, coins: str, *, material: bool) -> None:
    if material and coins == _DEALER and not program.recoins:
        raise ConfigError("the run has the coins of its own dealer: go on without --material, or give another --out")
    if not material and coins == _MATERIAL:
        raise ConfigError(
            "the run has the coins of material that was dealt before: go on with --material, or give another --out"
        )
    if not material and not (folder / COIN_KEY).is_file():
        raise ConfigError(
            f"{folder} holds no {COIN_KEY}, so no dealer can go on with its coins: give --material, or run without "
            "--resume"
        )


def _nothing_in_common(program: Program[Any], folder: Path) -> ConfigError:
    found = {home.name: checkpoints(home)[-1:] for home in homes(program, folder)}
    if not any(found.values()):
        return _no_checkpoint(folder)
    stand = ", ".join(f"{name} at {paths[0].stem if paths else 'none'}" for name, paths in found.items())
    notes = "" if program.notes is None else f" and the {program.notes.name}'s {program.notes.notes}"
    return ConfigError(
        f"the roles{notes} in {folder} have no {program.unit} in common ({stand}): put back what is missing, or run "
        "without --resume"
    )


def _no_checkpoint(folder: Path) -> ConfigError:
    out = next((place.parent for place in (folder, *folder.parents) if place.name == "checkpoints"), folder)
    return ConfigError(
        f"there is no checkpoint in {folder}: the run reached its end, or never started; run without --resume, and "
        f"with --out {out}"
    )


@contextlib.contextmanager
def reserved(keep: Path) -> Iterator[None]:
    """`keep` made, and locked for this process: two runs in one folder would undo each other.

    The lock is the kernel's, so it ends with the process, however that ends.  Folders in which nothing was kept are
    removed again.
    """
    missing = _missing(keep)
    try:
        keep.mkdir(parents=True, exist_ok=True)
        lock = _locked(keep / "lock")
    except OSError as error:
        raise _unusable(keep, error, "--out") from error
    finally:
        _remove_empty(missing)
    try:
        yield
    finally:
        (keep / "lock").unlink(missing_ok=True)
        os.close(lock)
        _remove_empty(missing)


def check_picture(path: Path) -> None:
    """ConfigError unless a picture can be written there."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"a picture ends in {', '.join(PICTURES)}, not as {path.name!r} does: rename it in --plot")
    missing = _missing(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise _unusable(path, error, "--plot") from error
    finally:
        _remove_empty(missing)


def _locked(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode(errors="replace")
            os.close(lock)
            raise ConfigError(
                f"process {holder} has a run in {path.parent}: wait for its end, or choose another --out"
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

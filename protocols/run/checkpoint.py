"""Where a process of a run stands, in a file that only its owner can read.  Knows arrays and facts; no protocol.

    facts     the run's name and the role; what was counted so far: cost, ledger, seconds
    arrays    the state of the role: shares of a computing party, or what a client goes on from

Coins are not in it.  A run that goes on has the same ones because its dealer has the same key, `coin.key` in `folder`,
and begins at the block that is due.

A checkpoint holds shares: it is worth as much secrecy as the process that wrote it.  Files are numpy archives without
pickle, written whole or not at all; the last two are kept, since processes may have come to different ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.files import sync_folder

_FORMAT = 2
_KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """done: decisions made.  facts: as JSON.  arrays: shares and what this process knows."""

    done: int
    facts: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    def save(self, folder: Path) -> Path:
        """Write it, and drop all but the last two, and what a process that was killed left half written."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        path = checkpoint_at(folder, self.done)
        fresh = path.with_suffix(".new")
        facts = np.frombuffer(json.dumps({"format": _FORMAT, "done": self.done, **self.facts}).encode(), np.uint8)
        for half in half_written(folder):
            half.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            np.savez(file, facts=facts, **self.arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
        sync_folder(folder)
        for old in checkpoints(folder)[:-_KEPT]:
            old.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read one back."""
        if not path.is_file():
            raise ConfigError(f"there is no checkpoint {path}: run without --resume")
        try:
            with np.load(path, allow_pickle=False) as kept:
                if kept.zip.testzip() is not None:  # a header that claims fewer numbers hides what follows it
                    raise ValueError("a checksum differs")
                facts = json.loads(kept["facts"].tobytes())
                if facts.pop("format") != _FORMAT:
                    raise ConfigError(f"{path} was written by another version: start the run again")
                return cls(facts.pop("done"), facts, {name: kept[name] for name in kept.files if name != "facts"})
        except ConfigError:
            raise
        except Exception as error:  # numpy and zipfile let through whatever a damaged file leads them to
            raise ConfigError(f"{path} is damaged: delete it, an earlier one may be beside it") from error


def checkpoints(folder: Path) -> list[Path]:
    """Those of a folder, oldest first."""
    return sorted(folder.glob("checkpoint-*.npz"))


def half_written(folder: Path) -> list[Path]:
    """What processes left there that were killed while they wrote; it holds as much as a checkpoint."""
    return sorted(folder.glob("checkpoint-*.new"))


def checkpoint_at(folder: Path, done: int) -> Path:
    """Where the one after `done` decisions lies."""
    return folder / f"checkpoint-{done:09d}.npz"


def numbers(folder: Path) -> set[int]:
    """After how many decisions there is one."""
    return {int(path.stem.split("-")[1]) for path in checkpoints(folder)}


def common(folders: Iterable[Path]) -> set[int]:
    """After how many decisions there is one in every folder."""
    return set.intersection(*map(numbers, folders))


def forget_beyond(folder: Path, done: int) -> None:
    """Delete what comes after `done` decisions: a run that goes on from there would take it for its own."""
    for later in checkpoints(folder):
        if later > checkpoint_at(folder, done):
            later.unlink(missing_ok=True)
    for half in half_written(folder):
        half.unlink(missing_ok=True)


def forget_all(folder: Path) -> None:
    """Delete all checkpoints of a folder."""
    for old in (*checkpoints(folder), *half_written(folder)):
        old.unlink(missing_ok=True)

"""Where a process of a run stands, in a file that only its owner can read.  Knows arrays and facts; no protocol.

    facts     the run's name and the role; what was counted so far: cost, ledger, seconds
    arrays    the state of the role: shares of a computing party, or what a client goes on from

Coins are not in it.  A run that goes on has the same ones because its dealer has the same key, `coin.key` in `folder`,
and begins at the block that is due.

A checkpoint holds shares: it is worth as much secrecy as the process that wrote it.  Files are numpy archives without
pickle, kept as `tagged_file` says; the last two stay, since processes may have come to different ones.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bandits.arrays import unhurried
from mpc.errors import ConfigError

from .tagged_file import HOME_KEY, read_kept, write_kept

_FORMAT = 3
_KEPT = 2
_NAME = re.compile(r"checkpoint-\d{9,}\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """done: decisions made.  facts: as JSON.  arrays: shares and what this process knows."""

    done: int
    facts: Mapping[str, Any] = field(repr=False)
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    def save(self, folder: Path) -> Path:
        """Write it, and drop all but the last two, and what a process that was killed left half written."""
        path = checkpoint_at(folder, self.done)
        facts = np.frombuffer(json.dumps({"format": _FORMAT, "done": self.done, **self.facts}).encode(), np.uint8)
        archive = io.BytesIO()
        np.savez(archive, facts=facts, **self.arrays)  # type: ignore[arg-type]
        for half in half_written(folder):
            half.unlink(missing_ok=True)
        write_kept(path, archive.getvalue())
        for old in checkpoints(folder)[:-_KEPT]:
            old.unlink(missing_ok=True)
        return path

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read one back."""
        if not path.is_file():
            raise ConfigError(f"there is no checkpoint {path}: run without --resume")
        raw = read_kept(path, cure="delete it, an earlier one may be beside it")

        def read() -> dict[str, np.ndarray]:
            with np.load(io.BytesIO(raw), allow_pickle=False) as found:
                return {name: found[name] for name in found.files}

        try:
            arrays = unhurried(read)
            facts = json.loads(arrays.pop("facts").tobytes())
            if facts.pop("format") == _FORMAT:
                return cls(facts.pop("done"), facts, arrays)
        except Exception as error:  # whatever another release may have written there
            raise ConfigError(f"{path} is no checkpoint: start the run again") from error
        raise ConfigError(f"{path} was written by another version: start the run again")


def checkpoints(folder: Path) -> list[Path]:
    """Those of a folder, oldest first; what else has such a name, as a copy that somebody made, is none."""
    return sorted(path for path in folder.glob("checkpoint-*.npz") if _NAME.fullmatch(path.name) and path.is_file())


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
    """Delete all checkpoints of a home, and its key."""
    for old in (*checkpoints(folder), *half_written(folder), *folder.glob(f"{HOME_KEY}*")):
        old.unlink(missing_ok=True)

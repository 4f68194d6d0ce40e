"""A run of a published protocol on disk, for one that goes on later.  Knows a folder of homes; no protocol.

    folder/run.json                  which run this is
    folder/HOME/checkpoint-n.npz     what a participant holds after n steps

Keys are not kept: a sitting has its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError

from ..run.checkpoint import Checkpoint, common, forget_beyond
from ..run.folder import RUN, Keep, check_free, clear, no_checkpoint, of_run, other_run
from ..run.program import apart
from ..run.stopping import Stopped
from ..run.tagged_file import read_kept, write_kept


@dataclass(frozen=True)
class Home:
    """Where a participant keeps its checkpoints.  run: its name.  every: how many steps apart."""

    folder: Path
    run: str
    every: int

    def keep(self, done: int, state: Callable[[], Mapping[str, np.ndarray]], *, last: bool = False) -> None:
        """Write what it holds after so many steps, if it is time; in any case where no step follows."""
        if last or done % self.every == 0:
            Checkpoint(done, {"run": self.run, "role": self.folder.name}, state()).save(self.folder)

    def restored(self, start: int) -> Mapping[str, np.ndarray]:
        """What was kept after `start` steps."""
        return of_run(self.folder, start, self.run).arrays

    def as_json(self) -> dict[str, Any]:
        """For the participant's process."""
        return {"folder": str(self.folder.resolve()), "run": self.run, "every": self.every}

    @classmethod
    def from_json(cls, given: Mapping[str, Any] | None) -> Home | None:
        """From `as_json`; None where nothing is kept."""
        return None if given is None else cls(Path(given["folder"]), given["run"], given["every"])


def begin(keep: Keep, homes: Iterable[Path], facts: Mapping[str, Any]) -> str:
    """Make the folder ready for a new run; what another left there goes, if it was finished or is to be.  Its name."""
    homes = list(homes)
    check_free(keep, homes)
    forget(keep.folder, homes)
    run = secrets.token_hex(8)
    write_kept(keep.folder / RUN, json.dumps({"run": run, **facts}).encode())
    return run


def go_on(folder: Path, homes: Sequence[Path], wanted: Mapping[str, Any], *, whose: str) -> tuple[dict[str, Any], int]:
    """The facts of the run that is kept there, and the last step that all kept; later ones go.

    ConfigError with the cure where it is another run than is wanted.  whose: as in `last_common`.
    """
    path = folder / RUN
    if not path.is_file():
        raise no_checkpoint(folder)
    have = json.loads(read_kept(path, cure="put it back, or discard the run with --overwrite"))
    if (other := apart(have, wanted)) is not None:
        raise other_run(other)
    start = last_common(folder, homes, whose=whose)
    for home in homes:
        forget_beyond(home, start)
    return have, start


def last_common(folder: Path, homes: Iterable[Path], *, whose: str) -> int:
    """The last step of which all have a checkpoint.  whose: what to call them where there is none, and the cure."""
    if not (done := common(homes)):
        raise ConfigError(f"{folder} holds no checkpoint of {whose}")
    return max(done)


@contextmanager
def stopped(keep: Keep | None, homes: Iterable[Path]) -> Iterator[None]:
    """Ctrl-C in a run that keeps its steps is a run that has stopped after the last one that all have."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(ConfigError):  # nothing was kept
            if keep is not None:
                raise Stopped(last_common(keep.folder, homes, whose="all")) from None
        raise


def forget(folder: Path, homes: Iterable[Path]) -> None:
    """Delete all that a run kept; what else lies there stays."""
    clear(folder, list(homes), [RUN])

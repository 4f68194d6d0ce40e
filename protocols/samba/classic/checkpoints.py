"""A classic run on disk, for one that goes on later.  Knows seeds and what owners hold; the folder is as secret.

    folder/run.json                      what is played, and its seeds
    folder/owner-7/checkpoint-n.npz      what the owners of one process hold after n steps

The Controller's, Comp's and the owners' coins are keyed by the step, so seeds bring them back.  Keys are not kept: a
sitting has its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bandits.samba.coins import Seeds
from mpc.errors import ConfigError

from ...run.checkpoint import Checkpoint, checkpoint_at, checkpoints, forget_beyond, half_written
from ..owners import Owners
from .messages import Spec, owners_name

_KIND = "classic SAMBA"
_RUN = "run.json"


class OwnersKept:
    """Checkpoints of the owners that one process hosts.  every: how many steps apart."""

    def __init__(self, folder: Path, spec: Spec, budget: int, every: int) -> None:
        self._folder, self._every = folder, max(1, every)
        self._facts = {"kind": _KIND, "spec": asdict(spec), "budget": budget}

    def keep(self, done: int, owners: Owners, *, last: bool) -> None:
        """Write it, if it is time; in any case where no step follows."""
        if last or done % self._every == 0:
            noise = [own.bit_generator.state for own in owners.mine.noise]
            Checkpoint(done, {**self._facts, "noise": noise}, owners.state()).save(self._folder)

    def restore(self, start: int, owners: Owners) -> None:
        """Take up what was kept after `start` steps."""
        kept = Checkpoint.load(checkpoint_at(self._folder, start))
        if any(kept.facts.get(name) != value for name, value in self._facts.items()):
            raise ConfigError(f"{self._folder} holds checkpoints of another run: give its arguments, or another folder")
        owners.restore(kept.arrays)
        for own, state in zip(owners.mine.noise, kept.facts["noise"], strict=True):
            own.bit_generator.state = state


@dataclass(frozen=True)
class RunKept:
    """What is kept of a run as a whole."""

    spec: Spec
    means: Sequence[float]
    budget: int
    seeds: Seeds

    def begin(self, folder: Path) -> None:
        """Make the folder ready for a new run; what another left there goes."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for home in folder.glob("owner*"):
            for old in [*checkpoints(home), *half_written(home)]:
                old.unlink()
        path = folder / _RUN
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(self._facts(), file)

    def resumed(self, folder: Path | None, hosts: Sequence[range], *, seeded: bool) -> tuple[Seeds, int]:
        """The seeds of the run that is kept there, and the last step that all owners kept; later ones go.

        It is to be this run, and of these seeds where the caller gave one.
        """
        if folder is None:
            raise ConfigError("resuming needs the folder of the run")
        path = folder / _RUN
        if not path.is_file():
            raise ConfigError(
                f"there is no run in {folder}: it reached its end, or never started; run without --resume"
            )
        try:
            have = json.loads(path.read_text())
            have = {**have, **have["spec"]}
            seeds = Seeds(*(bytes.fromhex(seed) for seed in have["seeds"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} is damaged: start the run again") from error
        wanted = {**self._facts(), **asdict(self.spec)}
        for name in ("kind", *asdict(self.spec), "means", "budget", *(["seeds"] if seeded else [])):
            if wanted[name] != have.get(name):
                what = "policy" if name == "name" else name
                secret = name in ("means", "seeds")
                apart = f"other {what}" if secret else f"{what} = {have.get(name)}, this one has {wanted[name]}"
                raise ConfigError(
                    f"the checkpoint in {folder} is of a run with {apart}: give the arguments of that run, or another "
                    "folder"
                )
        start = last_common(folder, hosts)
        for rows in hosts:
            forget_beyond(home_of(folder, rows), start)
        return seeds, start

    def _facts(self) -> dict[str, Any]:
        return {
            "kind": _KIND, "spec": asdict(self.spec), "means": list(self.means), "budget": self.budget,
            "seeds": [seed.hex() for seed in self.seeds],
        }  # fmt: skip


def forget(folder: Path) -> None:
    """Delete all that a run kept; what else lies there stays."""
    homes = list(folder.glob("owner*"))
    for old in [path for home in homes for path in (*checkpoints(home), *half_written(home))] + [folder / _RUN]:
        old.unlink(missing_ok=True)
    for empty in [*homes, folder]:
        with suppress(OSError):  # it holds something else, or is not there
            empty.rmdir()


def home_of(folder: Path, rows: range) -> Path:
    """Where the process that hosts these owners keeps its checkpoints."""
    return folder / owners_name(rows).replace(" ", "-")


def last_common(folder: Path, hosts: Sequence[range]) -> int:
    """The last step of which all owners have a checkpoint."""
    each = [{int(path.stem.split("-")[1]) for path in checkpoints(home_of(folder, rows))} for rows in hosts]
    common = set.intersection(*each)
    if not common:
        who = "every owner's process" if len(hosts) > 1 else "the owners"
        raise ConfigError(
            f"{folder} holds no checkpoint of {who}: run without --resume, or in as many processes as then"
        )
    return max(common)

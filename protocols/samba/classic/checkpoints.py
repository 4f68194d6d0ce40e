"""A classic run on disk, for one that goes on later.  Knows seeds and what owners hold; the folder is as secret.

    folder/run.json                      what is played, and its seeds
    folder/owner-7/checkpoint-n.npz      what the owners of one process hold after n steps

The Controller's, Comp's and the owners' coins are keyed by the step, so seeds bring them back.  Keys are not kept: a
sitting has its own.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bandits.samba.coins import Seeds
from mpc.errors import ConfigError

from ...run.checkpoint import Checkpoint, checkpoint_at, checkpoints, forget_all, forget_beyond
from ...run.folder import RUN, Keep, check_free
from ...run.tagged_file import read_kept, write_kept
from ..owners import Owners
from .messages import Spec, owners_name

_KIND = "classic SAMBA"


class OwnersKept:
    """Checkpoints of the owners that one process hosts.  run: its name.  every: how many steps apart."""

    def __init__(self, folder: Path, run: str, spec: Spec, budget: int, every: int) -> None:
        self._folder, self._every = folder, max(1, every)
        self._facts = {"kind": _KIND, "role": folder.name, "run": run, "spec": asdict(spec), "budget": budget}

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
    """What is kept of a run as a whole.  run: its name."""

    spec: Spec
    means: Sequence[float]
    budget: int
    seeds: Seeds
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def begin(self, keep: Keep) -> None:
        """Make the folder ready for a new run; what another left there goes, if it was finished or is to be."""
        check_free(keep, keep.folder.glob("owner*"))
        forget(keep.folder)
        write_kept(keep.folder / RUN, json.dumps(self._facts()).encode())

    def resumed(self, folder: Path, hosts: Sequence[range], *, seeded: bool) -> tuple[RunKept, int]:
        """The run that is kept there, and the last step that all owners kept; later ones go.

        It is to be this run, and of these seeds where the caller gave one.
        """
        path = folder / RUN
        if not path.is_file():
            raise ConfigError(
                f"there is no run in {folder}: it reached its end, or never started; run without --resume"
            )
        have = json.loads(read_kept(path, cure="put it back, or discard the run with --overwrite"))
        have = {**have, **have["spec"]}
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
        seeds = Seeds(*(bytes.fromhex(seed) for seed in have["seeds"]))
        return replace(self, seeds=seeds, run=have["run"]), start

    def _facts(self) -> dict[str, Any]:
        return {
            "kind": _KIND, "run": self.run, "spec": asdict(self.spec), "means": list(self.means), "budget": self.budget,
            "seeds": [seed.hex() for seed in self.seeds],
        }  # fmt: skip


def forget(folder: Path) -> None:
    """Delete all that a run kept; what else lies there stays."""
    homes = list(folder.glob("owner*"))
    for home in (folder, *homes):
        forget_all(home)
    for path in folder.glob(f"{RUN}*"):
        path.unlink(missing_ok=True)
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

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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bandits.samba.coins import Seeds
from mpc.errors import ConfigError

from ...run.checkpoint import Checkpoint, common, forget_beyond
from ...run.folder import RUN, Keep, check_free, clear, no_checkpoint, of_run, other_run
from ...run.program import apart
from ...run.tagged_file import read_kept, write_kept
from ..owners import Owners, owners_name
from .messages import Spec


class OwnersKept:
    """Checkpoints of the owners that one process hosts.  run: its name.  every: how many steps apart."""

    def __init__(self, home: Path, run: str, every: int) -> None:
        self._home, self._run, self._every = home, run, max(1, every)

    def keep(self, done: int, owners: Owners, *, last: bool) -> None:
        """Write it, if it is time; in any case where no step follows."""
        if last or done % self._every == 0:
            facts = {"run": self._run, "role": self._home.name}
            Checkpoint(done, facts, owners.state()).save(self._home)

    def restore(self, start: int, owners: Owners) -> None:
        """Take up what was kept after `start` steps."""
        owners.restore(of_run(self._home, start, self._run).arrays)


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
        facts = {"run": self.run, **self._facts(), "seeds": [seed.hex() for seed in self.seeds]}
        write_kept(keep.folder / RUN, json.dumps(facts).encode())

    def resumed(self, folder: Path, hosts: Sequence[range], *, seeded: bool) -> tuple[RunKept, int]:
        """The run that is kept there, and the last step that all owners kept; later ones go.

        It is to be this run, and of these seeds where the caller gave one.
        """
        path = folder / RUN
        if not path.is_file():
            raise no_checkpoint(folder)
        have = json.loads(read_kept(path, cure="put it back, or discard the run with --overwrite"))
        wanted = self._facts() | ({"seeds": [seed.hex() for seed in self.seeds]} if seeded else {})
        if (other := apart(have, wanted)) is not None:
            raise other_run(other)
        start = last_common(folder, hosts)
        for rows in hosts:
            forget_beyond(home_of(folder, rows), start)
        seeds = Seeds(*(bytes.fromhex(seed) for seed in have["seeds"]))
        return replace(self, seeds=seeds, run=have["run"]), start

    def _facts(self) -> dict[str, Any]:
        spec = asdict(self.spec)
        return {"policy": spec.pop("name"), **spec, "means": list(self.means), "budget": self.budget}


def forget(folder: Path) -> None:
    """Delete all that a run kept; what else lies there stays."""
    clear(folder, list(folder.glob("owner*")), [RUN])


def home_of(folder: Path, rows: range) -> Path:
    """Where the process that hosts these owners keeps its checkpoints."""
    return folder / owners_name(rows).replace(" ", "-")


def last_common(folder: Path, hosts: Sequence[range]) -> int:
    """The last step of which all owners have a checkpoint."""
    if not (done := common(home_of(folder, rows) for rows in hosts)):
        who = "every owner's process" if len(hosts) > 1 else "the owners"
        raise ConfigError(
            f"{folder} holds no checkpoint of {who}: run without --resume, or in as many processes as then"
        )
    return max(done)

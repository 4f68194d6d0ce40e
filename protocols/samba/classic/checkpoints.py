"""A classic run on disk, for one that goes on later.  Knows seeds and what owners hold; the folder is as secret.

    folder/run.json                      what is played, and its seeds
    folder/owner-7/checkpoint-n.npz      what the owners of one process hold after n steps

The Controller's, Comp's and the owners' coins are keyed by the step, so seeds bring them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bandits.samba.coins import Seeds

from ...published import kept
from ...published.kept import Home
from ...run.folder import Keep
from ..owners import Owners, owners_name
from .messages import Spec


class OwnersKept:
    """Checkpoints of the owners that one process hosts."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def keep(self, done: int, owners: Owners, *, last: bool) -> None:
        """Write it, if it is time; in any case where no step follows."""
        self._home.keep(done, owners.state, last=last)

    def restore(self, start: int, owners: Owners) -> None:
        """Take up what was kept after `start` steps."""
        owners.restore(self._home.restored(start))


@dataclass(frozen=True)
class RunKept:
    """What is kept of a run as a whole.  run: its name."""

    spec: Spec
    means: Sequence[float] = field(repr=False)
    budget: int
    seeds: Seeds
    run: str = ""

    def begin(self, keep: Keep) -> RunKept:
        """Make the folder ready for a new run."""
        facts = {**self._facts(), "seeds": [seed.hex() for seed in self.seeds]}
        return replace(self, run=kept.begin(keep, keep.folder.glob("owner*"), facts))

    def resumed(self, folder: Path, hosts: Sequence[range], *, seeded: bool) -> tuple[RunKept, int]:
        """The run that is kept there, and the last step that all owners kept.

        It is to be this run, and of these seeds where the caller gave one.
        """
        wanted = self._facts() | ({"seeds": [seed.hex() for seed in self.seeds]} if seeded else {})
        homes = [home_of(folder, rows) for rows in hosts]
        who = "every owner's process" if len(hosts) > 1 else "the owners"
        cure = "run without --resume, or in as many processes as then"
        have, start = kept.go_on(folder, homes, wanted, whose=f"{who}: {cure}")
        seeds = Seeds(*(bytes.fromhex(seed) for seed in have["seeds"]))
        return replace(self, seeds=seeds, run=have["run"]), start

    def _facts(self) -> dict[str, Any]:
        spec = asdict(self.spec)
        return {"policy": spec.pop("name"), **spec, "means": list(self.means), "budget": self.budget}


def forget(folder: Path) -> None:
    """Delete all that a run kept; what else lies there stays."""
    kept.forget(folder, folder.glob("owner*"))


def home_of(folder: Path, rows: range) -> Path:
    """Where the process that hosts these owners keeps its checkpoints."""
    return folder / owners_name(rows).replace(" ", "-")

"""The roles of a launched run on shares, each in a process of its own.

    computing party p   has  settings.json, seed   what is public, and the seed of arms and noise that parties may know
    DO                  has  theta.npy             shares it, and leaves; of a run that goes on, it was shared before
    DC                  has  nothing               learns the sum of rewards

What a role is left with, it writes beside these files: party-p.json, and DC.json.  What a party goes on from lies in a
folder of its own below `keep`.  All parties stop after the same pull: see `protocols.run.stopping`.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mpc.client import serve
from mpc.errors import ConfigError, MaskedError
from mpc.launch import join, join_as_client, party_main, place
from mpc.net.transport import Transport
from mpc.session import Session

from ...run.checkpoint import Checkpoint, checkpoint_at
from ...run.progress import Progress
from ...run.sources import source_for
from ...run.stopping import Stop, stopped_at
from .checkpoint import check, facts_of
from .player import ShownArms, customer, owner
from .settings import Settings
from .shown import CUSTOMER, OWNER
from .simulate import meter_facts, player_of, resume_meter


@dataclass(frozen=True)
class Task:
    """What the parties are told beside the settings; travels as JSON in the run's folder.

    seed: of the arms and noise that all parties may know.  material, session: where the parties' stores lie, else a
    dealer serves them.  keep, every: where a party keeps its shares, and how many pulls lie between two checkpoints.
    start: pulls that were made before.
    """

    seed: int
    material: str | None = None
    session: str = "local"
    keep: str | None = None
    every: int = 100
    start: int = 0

    def save(self, folder: Path) -> None:
        """Write it where the parties look."""
        (folder / "task.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read it."""
        return cls(**json.loads((folder / "task.json").read_text()))


def computing_party(settings: Settings, task: Task, folder: Path, party: int, transport: Transport) -> None:
    """Plays the whole budget, or what is left of it, with the others."""
    home = None if task.keep is None else Path(task.keep) / f"party-{party}"
    kept = Checkpoint.load(checkpoint_at(home, task.start)) if home is not None and task.start else None
    source = source_for(party, Path(task.material) if task.material else None, task.session)
    source.want(draws_of(settings, task.start))
    progress = Progress(settings.budget, "pull")
    facts = facts_of(settings, transport.parties, task.seed)
    stop = None if home is None else Stop(folder, party)
    with Session(transport, source, roles=(OWNER, CUSTOMER)) as session:
        player, before = player_of(session, settings, task.seed, kept), 0.0
        if kept is not None:
            check(kept.facts, facts)
            resume_meter(session, kept.facts)
            before = kept.facts["seconds"]
        started = time.perf_counter() - before
        while player.done < settings.budget:
            player.turn()
            if party == 0:
                progress(player.done)
            if home is None or stop is None or player.done == settings.budget:
                continue
            last = stop.here(player.done)
            if last or player.done % task.every == 0:
                so_far = {**facts, **meter_facts(session), "seconds": time.perf_counter() - started}
                Checkpoint(player.done, so_far, player.words()).save(home)
            if last:
                break
        if player.done < settings.budget:
            source.close()
            return
        seconds = time.perf_counter() - started
        player.finish()
        left_with = {
            **meter_facts(session), "seconds": seconds, "arms": player.arms if isinstance(player, ShownArms) else None
        }  # fmt: skip
    source.close()
    (folder / f"party-{party}.json").write_text(json.dumps(left_with))


def first_block(settings: Settings, start: int = 0) -> int:
    """The plan's step that the next pull draws; where arms are shown, the first pull draws nothing."""
    return start if settings.hide else max(0, start - 1)


def draws_of(settings: Settings, start: int = 0) -> int:
    """How many steps of the plan the rest of a run draws, and at least 1, so that there is a dealer to call."""
    return max(1, settings.budget - (0 if settings.hide else 1) - first_block(settings, start))


def main() -> None:
    """Play the role named on the command line."""
    role, folder = sys.argv[1], Path(sys.argv[2])
    here = place()
    if here is None:
        raise ConfigError("a role is started by 'masked launch linucb-ds'")
    settings = Settings.load(folder / "settings.json")
    if role == OWNER:
        again = Task.load(folder).start > 0
        serve(join_as_client(), owner(np.load(folder / "theta.npy"), settings, shared=again))
    elif role == CUSTOMER:
        told: list[int] = []
        try:
            serve(join_as_client(), customer(told))
        except MaskedError:
            if stopped_at(folder) is None:  # else the parties have ended as they were asked to
                raise
            return
        (folder / "DC.json").write_text(json.dumps(told))
    else:
        computing_party(settings, Task.load(folder), folder, here.node, join())


if __name__ == "__main__":
    party_main(main)

"""The roles of a launched run on shares, each in a process of its own.

    computing party p   has  settings.json, seed   what is public, and the seed of arms and noise that parties may know
    DO                  has  theta.npy             shares it, and leaves
    DC                  has  nothing               learns the sum of rewards

What a role is left with, it writes beside these files: party-p.json, and DC.json.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mpc.client import serve
from mpc.errors import ConfigError
from mpc.launch import join, join_as_client, party_main, place
from mpc.net.transport import Transport
from mpc.session import Session

from ..commands.dealing import source_for
from ..progress import Progress
from .mpc_player import ShownArms, customer, owner
from .mpc_settings import Settings
from .mpc_shown import CUSTOMER, OWNER
from .mpc_simulate import player_of


@dataclass(frozen=True)
class Task:
    """What the parties are told beside the settings; travels as JSON in the run's folder.

    seed: of the arms and noise that all parties may know.  material, session: where the parties' stores lie, else a
    dealer serves them.
    """

    seed: int
    material: str | None = None
    session: str = "local"

    def save(self, folder: Path) -> None:
        """Write it where the parties look."""
        (folder / "task.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read it."""
        return cls(**json.loads((folder / "task.json").read_text()))


def computing_party(settings: Settings, task: Task, folder: Path, party: int, transport: Transport) -> None:
    """Plays the whole budget with the others."""
    source = source_for(party, Path(task.material) if task.material else None, task.session)
    source.want(draws_of(settings))
    progress = Progress(settings.budget, "pull")
    with Session(transport, source, roles=(OWNER, CUSTOMER)) as session:
        player = player_of(session, settings, task.seed)
        started = time.perf_counter()
        for done in range(1, settings.budget + 1):
            player.turn()
            if party == 0:
                progress(done)
        seconds = time.perf_counter() - started
        player.finish()
        kept = {
            "seconds": seconds,
            "arms": player.arms if isinstance(player, ShownArms) else None,
            "cost": asdict(session.meter.total),
            "ledger": [asdict(entry) for entry in session.ledger],
        }
    source.close()
    (folder / f"party-{party}.json").write_text(json.dumps(kept))


def draws_of(settings: Settings) -> int:
    """How many steps of the plan a run draws, and at least 1, so that there is a dealer to call."""
    return max(1, settings.budget - (0 if settings.hide else 1))


def main() -> None:
    """Play the role named on the command line."""
    role, folder = sys.argv[1], Path(sys.argv[2])
    here = place()
    if here is None:
        raise ConfigError("a role is started by 'masked launch linucb-ds'")
    settings = Settings.load(folder / "settings.json")
    if role == OWNER:
        serve(join_as_client(), owner(np.load(folder / "theta.npy"), settings))
    elif role == CUSTOMER:
        told: list[int] = []
        serve(join_as_client(), customer(told))
        (folder / "DC.json").write_text(json.dumps(told))
    else:
        computing_party(settings, Task.load(folder), folder, here.node, join())


if __name__ == "__main__":
    party_main(main)

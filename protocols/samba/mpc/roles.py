"""The roles of a launched run on shares, each in a process of its own.

    computing party p   has  settings and task   what is public; keeps what it counted in party-p/
    host h              has  host-h/             its owners' seeds, means, pulls and rewards, which nobody else has
    DC                  has  nothing             learns the sum of rewards

What a run goes on from lies below `keep`, in a folder for each role; what it ended with, beside the task.  Asked to,
all parties and hosts stop after the same pull (see `protocols.run.stopping`): a host takes part in a pull as a party
does, since none begins before the hosts have shared words, and none ends for a host before all parties have answered.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba.rewards import reward
from mpc.client import serve
from mpc.errors import ConfigError, MaskedError
from mpc.launch import join, join_as_client, party_main, place
from mpc.meter import Cost
from mpc.session import Session

from ...run.checkpoint import Checkpoint, checkpoint_at
from ...run.progress import Progress
from ...run.sources import source_for
from ...run.stopping import Stop, stopped_at
from .clients import Host, customer, host
from .player import Player
from .program import CUSTOMER
from .settings import Settings

PARTY, HOST = "party", "host"


@dataclass(frozen=True)
class Task:
    """What every role is told; travels as JSON in the run's folder.

    keep: where the roles keep what they go on from.  start: pulls that were over before; every: pulls between two
    checkpoints.  timeout: seconds until a party takes a silent peer for lost.
    material, session: where the parties' stores lie, else a dealer serves them.
    """

    settings: Settings
    keep: Path
    start: int = 0
    every: int = 1000
    timeout: float = 60.0
    material: Path | None = None
    session: str = "local"

    def save(self, folder: Path) -> None:
        """Write it where the roles look."""
        given = {
            **self.__dict__, "settings": self.settings.as_json(), "keep": str(self.keep),
            "material": None if self.material is None else str(self.material),
        }  # fmt: skip
        (folder / "task.json").write_text(json.dumps(given))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read it."""
        given = json.loads((folder / "task.json").read_text())
        material = None if given["material"] is None else Path(given["material"])
        settings = Settings(**given["settings"])
        return cls(**{**given, "settings": settings, "keep": Path(given["keep"]), "material": material})

    @property
    def draws(self) -> int:
        """How many steps of the plan are left, and at least 1, so that there is a dealer to call."""
        return max(1, self.settings.budget - max(self.start, self.settings.arms))

    def due(self, done: int) -> bool:
        """Whether a checkpoint is kept after so many pulls."""
        return done % self.every == 0 or done == self.settings.budget

    def party(self, party: int) -> Path:
        """Where a computing party keeps its checkpoints."""
        return self.keep / f"party-{party}"

    def host(self, at: int) -> Path:
        """Where a host keeps its checkpoints."""
        return self.keep / f"host-{at}"

    def homes(self, parties: int) -> list[Path]:
        """Of all that keep checkpoints."""
        hosts = [self.host(at) for at in range(self.settings.hosts)]
        return [*(self.party(party) for party in range(parties)), *hosts]


def computing_party(task: Task, party: int, folder: Path) -> None:
    """Plays with the others what is left of the budget."""
    settings, home = task.settings, task.party(party)
    kept = Checkpoint.load(checkpoint_at(home, task.start)) if task.start else None
    source = source_for(party, task.material, task.session)
    source.want(task.draws)
    stop = Stop(folder, party)
    progress = Progress(settings.budget, "pull")
    with Session(join(task.timeout), source, roles=(*settings.roles, CUSTOMER)) as session:
        if kept is not None:
            session.meter.total = Cost(**kept.facts["cost"])
            for entry in kept.facts["ledger"]:
                session.ledger.record(**entry)
        player = Player(session, settings, task.start)
        while True:
            last = player.done < settings.budget and stop.here(player.done)
            if last or task.due(player.done):
                facts = {"cost": asdict(session.meter.total), "ledger": _rows(session)}
                Checkpoint(player.done, facts, {}).save(home)
            if last:
                source.close()
                return
            if player.done == settings.budget:
                break
            player.turn()
            if party == 0:
                progress(player.done)
        played = asdict(session.meter.total)
        player.finish()
        (folder / f"party-{party}.json").write_text(json.dumps({"cost": played, "ledger": _rows(session)}))
    source.close()


def _rows(session: Session) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in session.ledger]


def owners(task: Task, at: int, folder: Path) -> None:
    """Plays a block of owners, from the host's last checkpoint on; the first one was made with their seeds."""
    kept = Checkpoint.load(checkpoint_at(task.host(at), task.start))
    link = join_as_client()
    stop = Stop(folder, link.parties + at)
    block, means, seed = task.settings.blocks[at], kept.arrays["means"], bytes.fromhex(kept.facts["rewards"])

    def pay(arm: int, t: int) -> int:
        return reward(seed, float(means[arm - block.start]), arm, t)

    def keep(own: Host) -> bool:
        last = own.done < task.settings.budget and stop.here(own.done)
        if last or task.due(own.done):
            Checkpoint(own.done, kept.facts, {**own.state(), "means": means}).save(task.host(at))
        return last

    noise = [np.random.Generator(np.random.PCG64(0)) for _ in block]  # their states are in the checkpoint
    own = Host(task.settings, block, common=bytes.fromhex(kept.facts["common"]), noise=noise, pay=pay)
    own.restore(kept.arrays)
    serve(link, host(own, keep=keep))


def data_customer(folder: Path) -> None:
    """DC: waits for the sum, which does not come where the others were asked to stop."""
    told: list[int] = []
    try:
        serve(join_as_client(), customer(told))
    except MaskedError:
        if stopped_at(folder) is None:
            raise
        return
    (folder / f"{CUSTOMER}.json").write_text(json.dumps(told))


def main(arguments: Sequence[str]) -> None:
    """Play the role named on the command line."""
    role, folder = arguments[0], Path(arguments[1])
    here = place()
    if here is None:
        raise ConfigError("a role is started by 'masked launch samba'")
    if role == CUSTOMER:
        data_customer(folder)
    elif role == HOST:
        owners(Task.load(folder), int(arguments[2]), folder)
    elif role == PARTY:
        computing_party(Task.load(folder), here.node, folder)


if __name__ == "__main__":
    party_main(lambda: main(sys.argv[1:]))

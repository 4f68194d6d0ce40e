"""The roles of a launched run, each in a process of its own.

    owner p  has  block-p.npy          its features of every step
    puller   has  nothing              learns the arms, and acts: tells the world
    payer    has  outcomes.npy         sees what came of the arm, and shares the reward

The world between puller and payer is a pipe in the run's folder, which the launcher prepares.  What a role keeps, its
shares or the arms it pulled, lies in a folder of its own below `keep`.  All owners stop after the same decision: see
`stopping`.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpc.client import ClientProgram, Receive, Send, serve
from mpc.errors import ConfigError, MaskedError, PeerLost
from mpc.launch import join, join_as_client, party_main, place
from mpc.meter import Cost
from mpc.net.transport import Transport
from mpc.session import Session

from ..run.checkpoint import Checkpoint, checkpoint_at
from ..run.sources import source_for
from ..run.stopping import Stop, stopped_at
from .clients import check_arms, pulled
from .play import Play
from .program import PAYER, PULLER
from .settings import Settings

PIPE = "world"


@dataclass(frozen=True)
class Task:
    """What every role of a run is told; travels as JSON in the run's folder.

    decisions: of the whole run; start: how many were made before.  every: decisions between checkpoints.
    material, session: where the owners' stores lie, else a dealer serves them.
    """

    settings: Settings
    parties: int
    decisions: int
    start: int
    every: int
    keep: Path
    facts: dict[str, Any]
    material: Path | None = None
    session: str = "local"

    def save(self, folder: Path) -> None:
        """Write it where the roles look."""
        given = {**self.__dict__, "settings": self.settings.as_json(), "keep": str(self.keep)}
        given["material"] = str(self.material) if self.material else None
        (folder / "task.json").write_text(json.dumps(given))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read it."""
        given = json.loads((folder / "task.json").read_text())
        given["settings"] = Settings.from_json(given["settings"])
        given["keep"], given["material"] = Path(given["keep"]), Path(given["material"]) if given["material"] else None
        return cls(**given)


def role_of(party: int) -> str:
    """The role of an owner: the name of its folder, and what its checkpoints say that they are of."""
    return f"party-{party}"


def owner(own: np.ndarray, task: Task, party: int, transport: Transport, stop: Stop | None = None) -> None:
    """A computing party: shares its features, (decisions, R, B, width), decides and learns with the others."""
    home = task.keep / role_of(party)
    kept = Checkpoint.load(checkpoint_at(home, task.start)) if task.start else None
    source = source_for(party, task.material, task.session)
    source.want(-(-(task.decisions - task.start) // max(1, task.settings.refresh or 0)))
    with Session(transport, source, roles=(PULLER, PAYER)) as session:
        play = Play(session, task.settings, done=task.start, kept=None if kept is None else kept.arrays)
        if kept is not None:
            session.meter.total = Cost(**kept.facts["cost"])
            for entry in kept.facts["ledger"]:
                session.ledger.record(**entry)
        for features in own[task.start :]:
            play.turn({party: features})
            last = play.done == task.decisions or (stop is not None and stop.here(play.done))
            if last or play.done % task.every == 0:
                facts = {
                    **task.facts, "role": role_of(party), "settings": task.settings.as_json(),
                    "cost": asdict(session.meter.total), "ledger": [asdict(entry) for entry in session.ledger],
                }  # fmt: skip
                Checkpoint(play.done, facts, play.state.words()).save(home)
            if last:
                break
    source.close()


def puller(task: Task, pipe: Path) -> ClientProgram:
    """p': learns the arms, and acts; appends each to arms.bin."""
    settings = task.settings
    with pipe.open("wb", buffering=0) as world, (task.keep / "arms.bin").open("ab", buffering=0) as log:
        for _ in range(task.start, task.decisions):
            arms = yield Receive((settings.replicas, settings.batch), 0)
            check_arms(arms, settings)
            log.write(arms.tobytes())
            try:
                world.write(arms.tobytes())
            except OSError:
                raise _gone(task, PAYER) from None


def payer(outcomes: np.ndarray, task: Task, pipe: Path) -> ClientProgram:
    """p'': shares the rewards of the decision that is due; before the first, nothing."""
    settings = task.settings
    shape = settings.replicas, settings.batch
    before = arms_of(task)[: task.start]
    paid = [np.zeros(shape)] * settings.delay + [pulled(*pair) for pair in zip(outcomes, before)]
    unpaid = deque(paid[task.start :])  # of the last `delay` decisions
    with pipe.open("rb") as world:
        for done in range(task.start, task.decisions):
            if settings.delay:
                yield Send(unpaid.popleft(), settings.fraction_bits, bound=1.0)
            raw = world.read(8 * settings.replicas * settings.batch)
            if len(raw) < 8 * settings.replicas * settings.batch:
                raise _gone(task, PULLER)
            arms = np.frombuffer(raw, np.int64).reshape(shape)
            unpaid.append(pulled(outcomes[done], arms))
            if not settings.delay:
                yield Send(unpaid.popleft(), settings.fraction_bits, bound=1.0)


def _gone(task: Task, role: str) -> PeerLost:
    """What a pipe that ends means: it is no cause, but the witness of one."""
    client = (PULLER, PAYER).index(role)
    return PeerLost(
        f"client {client} closed its connection to the world: the {role} died or was stopped",
        peer=task.parties + client,
    )


def arms_of(task: Task) -> np.ndarray:
    """(decisions, R, B) arms that the puller has noted."""
    path = task.keep / "arms.bin"
    shape = task.settings.replicas, task.settings.batch
    raw = np.fromfile(path, np.int64) if path.exists() else np.zeros(0, np.int64)
    whole = raw.size // (shape[0] * shape[1])
    return raw[: whole * shape[0] * shape[1]].reshape(whole, *shape)


def main() -> None:
    """Play the role named on the command line."""
    role, folder = sys.argv[1], Path(sys.argv[2])
    task, here = Task.load(folder), place()
    if here is None:
        raise ConfigError("a role is started by 'masked launch ppcb'")
    if role == "owner":
        own = np.load(folder / f"block-{here.node}.npy", mmap_mode="r")
        owner(own, task, here.node, join(), Stop(folder, here.node))
        return
    try:
        if role == PULLER:
            serve(join_as_client(), puller(task, folder / PIPE))
        else:
            serve(join_as_client(), payer(np.load(folder / "outcomes.npy", mmap_mode="r"), task, folder / PIPE))
    except MaskedError:
        if stopped_at(folder) is None:  # else the owners have ended as they were asked to
            raise


if __name__ == "__main__":
    party_main(main)

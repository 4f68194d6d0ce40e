"""The roles of a launched run, each in a process of its own.

    owner p  has  block-p.npy          its features of every step
    puller   has  nothing              learns the arms, and acts: tells the world
    payer    has  outcomes.npy         sees what came of the arm, and shares the reward

The world between puller and payer is a pipe in the run's folder, which the launcher prepares and reads afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bandits.environments import Episode
from mpc.client import ClientProgram, Receive, Send, serve
from mpc.errors import ConfigError
from mpc.launch import join, join_as_client, launch, party_main, place
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.session import Session
from offline import Plan, Recorder

from ..commands.dealing import dealer_beside, source_for
from ..progress import Progress
from .program import PAYER, PULLER, Settings, State, step
from .simulate import Run, World, beside_twin, share_contexts, split
from .witness import saved_choices


def launched(
    settings: Settings, episodes: list[Episode], *, parties: int, steps: int, folder: Path, timeout: float
) -> Run:
    """Play a run with a process for each owner, the puller, the payer and the dealer."""
    world = World(episodes)
    for owner, block in split(world.contexts, parties).items():
        np.save(folder / f"block-{owner}.npy", block)
    np.save(folder / "outcomes.npy", np.stack([episode.outcomes for episode in episodes], axis=1))
    (folder / "settings.json").write_text(json.dumps({"length": steps, **asdict(settings)}))
    os.mkfifo(folder / "world")
    command = [sys.executable, "-m", "protocols.ppcb.roles"]
    clients = {role: [*command, role, str(folder)] for role in (PULLER, PAYER)}
    said: list[str] = []
    with dealer_beside(_plan(settings, parties), steps, folder, witness=folder / "witness.npz") as environment:
        launch(
            [*command, "owner", str(folder)], parties, clients=clients, environment=environment, timeout=timeout,
            output=lambda name, line: said.append(line) if name == "party 0" else None,
        )  # fmt: skip
    told = json.loads(said[-1])
    choices, dealt_bytes, dealt_seconds = saved_choices(folder / "witness.npz")
    compared = beside_twin(settings, episodes, np.load(folder / "arms.npy"), choices)
    ledger = tuple(Entry(**entry) for entry in told["ledger"])
    cost = Cost(**told["cost"])
    return Run(settings, parties, *compared, cost, ledger, cost.seconds, dealt_bytes, dealt_seconds)


def _plan(settings: Settings, parties: int) -> Plan:
    """What one step draws, by a dry run."""
    recorder = Recorder(parties)
    world = World([Episode(np.zeros((1, settings.dim)), np.zeros((1, settings.arms)))] * settings.replicas)
    clients = {PULLER: world.puller(settings.replicas), PAYER: world.payer(settings.state_bits)}
    session = Session.simulate(parties, recorder, clients=clients)
    x = share_contexts(session, split(world.contexts[0], parties), settings)
    session.run(step(session, State.start(session, settings), x, settings))
    return Plan("ppcb", parties, tuple(recorder.items))


def _owner(folder: Path, settings: Settings, steps: int) -> None:
    here = place()
    if here is None:
        raise ConfigError("an owner is started by 'masked launch ppcb'")
    own = np.load(folder / f"block-{here.node}.npy")
    source = source_for(here.node, None)
    progress = Progress(steps) if here.node == 0 else None
    with Session(join(), source, roles=(PULLER, PAYER)) as session:
        state = State.start(session, settings)
        for done, features in enumerate(own, 1):
            x = share_contexts(session, {here.node: features}, settings)
            session.run(step(session, state, x, settings))
            if progress is not None:
                progress(done)
        cost, ledger = session.meter.total, [asdict(entry) for entry in session.ledger]
    source.close()
    if here.node == 0:
        print(json.dumps({"cost": asdict(cost), "ledger": ledger}))


def _puller(folder: Path, settings: Settings, steps: int) -> ClientProgram:
    arms = np.zeros((steps, settings.replicas), np.int64)
    with (folder / "world").open("wb", buffering=0) as world:
        for done in range(steps):
            arms[done] = yield Receive((settings.replicas,), 0)
            world.write(arms[done].tobytes())
    np.save(folder / "arms.npy", arms)


def _payer(folder: Path, settings: Settings, steps: int) -> ClientProgram:
    outcomes, replica = np.load(folder / "outcomes.npy"), np.arange(settings.replicas)
    with (folder / "world").open("rb") as world:
        for done in range(steps):
            arms = np.frombuffer(world.read(8 * settings.replicas), np.int64)
            yield Send(outcomes[done, replica, arms], settings.state_bits, bound=1.0)


def main() -> None:
    """Play the role named on the command line."""
    role, folder = sys.argv[1], Path(sys.argv[2])
    given: Mapping[str, int] = json.loads((folder / "settings.json").read_text())
    steps = given["length"]
    settings = Settings(**{name: value for name, value in given.items() if name != "length"})
    if role == "owner":
        _owner(folder, settings, steps)
    else:
        serve(join_as_client(), (_puller if role == PULLER else _payer)(folder, settings, steps))


if __name__ == "__main__":
    party_main(main)

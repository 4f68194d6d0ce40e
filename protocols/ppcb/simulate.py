"""A whole run in one process: owners, puller and payer, replicas side by side, and the plaintext twin beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bandits.environments import Environment, Episode
from mpc.errors import ConfigError
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.session import Session

from ..run.checkpoint import Checkpoint, checkpoints, latest
from .clients import World, check_memory
from .planning import plan_of
from .play import Play, split
from .program import PAYER, PULLER
from .replay import MeteredDealer, choices
from .run import Run, baselines_of, beside_twin
from .settings import Settings

_ROLE = "simulation"
Progress = Callable[["Simulation"], bool]
"""Told after each decision; says whether to go on."""


class Simulation:
    """All parties and clients in this process.

    Everything follows from the settings, the data and the seed, masks included: the same call gives the same run, and
    a run that goes on from a checkpoint is the run that was never stopped.  Only how an owner's input is split into
    shares is fresh each time, and nothing that is computed from it depends on that.
    """

    def __init__(
        self, environment: Environment, settings: Settings, *, parties: int, steps: int, seed: int,
        kept: Checkpoint | None = None,
    ) -> None:  # fmt: skip
        if steps % settings.batch:
            raise ConfigError(
                f"{steps} steps are no whole number of batches of {settings.batch}: play "
                f"{-(-steps // settings.batch) * settings.batch}"
            )
        settings = settings.for_run(parties, steps)
        check_memory(settings, steps)
        self.settings, self.parties, self.seed, self.decisions = settings, parties, seed, steps // settings.batch
        self.episodes = episodes_of(environment, settings, steps, seed)
        self.world = World(self.episodes, settings)
        self.dealer = MeteredDealer(parties, seed)
        done = 0
        if kept is not None:
            kept.check(settings=settings.as_json(), parties=parties, seed=seed, steps=steps, data=environment.name)
            if kept.facts.get("role", _ROLE) != _ROLE:
                raise ConfigError(f"the checkpoint is of {kept.facts['role']} alone: put the simulation's own back")
            done = kept.done
            for arms in kept.arrays["arms"]:
                self.world.act(arms)
        self._facts = {"role": _ROLE, "steps": steps, "seed": seed, "data": environment.name, "parties": parties}
        clients = {PULLER: self.world.puller(), PAYER: self.world.payer(done)}
        self.session = Session.simulate(parties, self.dealer, clients=clients)
        self.play = Play(self.session, settings, done=done, kept=None if kept is None else kept.arrays)
        if kept is not None:
            self.session.meter.total = Cost(**kept.facts["cost"])
            for entry in kept.facts["ledger"]:
                self.session.ledger.record(**entry)
            self.dealer.dealt_bytes, self.dealer.seconds = kept.facts["dealt_bytes"], kept.facts["dealt_seconds"]

    @property
    def done(self) -> int:
        """Decisions made."""
        return self.play.done

    @property
    def finished(self) -> bool:
        return self.done >= self.decisions

    def turn(self) -> None:
        """One decision of all replicas."""
        self.dealer.enter(self.done)
        self.play.turn(split(self.world.contexts[self.done], self.parties))

    def checkpoint(self) -> Checkpoint:
        """Where the run stands."""
        cost = asdict(self.session.meter.total)
        facts = {
            **self._facts, "settings": self.settings.as_json(), "cost": cost,
            "ledger": [asdict(entry) for entry in self.session.ledger], "dealt_bytes": self.dealer.dealt_bytes,
            "dealt_seconds": self.dealer.seconds,
        }  # fmt: skip
        arms = (
            np.stack(self.world.arms) if self.world.arms else np.zeros((0, *self.world.outcomes.shape[1:3]), np.int64)
        )
        return Checkpoint(self.done, facts, {**self.play.state.words(), "arms": arms})

    def result(self) -> Run:
        """What was reached, beside the twin."""
        if not self.done:
            raise ConfigError("stopped before the first step: there is nothing to report")
        items = self.dealer.coin_items
        coins = choices(self.dealer.coin_key, items, range(self.done))
        compared = beside_twin(self.settings, self.episodes, np.stack(self.world.arms), coins)
        cost = self.session.meter.total
        return Run(
            self.settings, self.parties, *compared, cost, tuple(self.session.ledger),
            max(0.0, cost.seconds - self.dealer.seconds), self.dealer.dealt_bytes, self.dealer.seconds,
            baselines=baselines_of(self.episodes, self.done * self.settings.batch),
            state={name: _joined(words) for name, words in self.play.state.words().items() if "unpaid" not in name},
        )  # fmt: skip


def simulate(
    environment: Environment,
    settings: Settings,
    *,
    parties: int,
    steps: int,
    seed: int,
    progress: Progress | None = None,
    folder: Path | None = None,
    every: int = 0,
    resume: bool = False,
) -> Run:
    """Play `steps` steps of all replicas, privately and in the clear, with the same contexts, coins and outcomes.

    folder, every: where a checkpoint is kept, and after how many decisions; also when `progress` says to stop.
    resume: go on from the last one.
    """
    kept = latest(folder) if resume and folder is not None else None
    simulation = Simulation(environment, settings, parties=parties, steps=steps, seed=seed, kept=kept)
    simulation.world.check_bound(parties)
    plan_of(simulation.settings, parties)  # what a first decision alone takes, such as an import, is not timed
    if kept is None and folder is not None:  # not before the run is known to be one
        for old in checkpoints(folder):
            old.unlink()
    while not simulation.finished:
        simulation.turn()
        stop = progress is not None and not progress(simulation)
        if folder is not None and (stop or simulation.finished or (every and simulation.done % every == 0)):
            simulation.checkpoint().save(folder)
        if stop:
            break
    return simulation.result()


def episodes_of(environment: Environment, settings: Settings, steps: int, seed: int) -> list[Episode]:
    """An episode for each replica; replica r is seeded by seed + r."""
    return [environment.episode(steps, seed + replica) for replica in range(settings.replicas)]


def ledger_of(rows: Sequence[dict[str, object]]) -> tuple[Entry, ...]:
    """Ledger entries from their JSON."""
    return tuple(Entry(**row) for row in rows)  # type: ignore[arg-type]


def _joined(words: np.ndarray) -> np.ndarray:
    """The clear words behind the shares of all parties, which this process hosts: checks look at the state."""
    return words.sum(axis=0, dtype=np.uint64).view(np.int64)

"""A whole run in one process: all parties and clients, and a dealer whose keys follow from the seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from mpc.errors import ConfigError
from mpc.exchange import Listener
from mpc.session import Session

from .checkpoint import Checkpoint
from .desk import MemoryDesk, World
from .folder import Keep, check_free_for, forget, latest, other_run
from .program import Arrays, Coins, Ended, Program, apart, home_of
from .rehearsal import rehearse
from .seeded_dealer import MeteredDealer
from .stopping import Stopped

R = TypeVar("R")
_ROLE = "simulation"
Watch = Callable[[int], "bool | None"]
"""Told after each decision how many were made; False asks for an end."""


class Simulation(Generic[R]):
    """All roles in this process.

    Everything follows from the program and the seed, masks included: the same call gives the same run, and a run that
    goes on from a checkpoint is the run that was never stopped.  Only how an input is split into shares is fresh each
    time, and nothing that is computed from it depends on that.

    kept: where an earlier simulation stood.
    """

    def __init__(
        self, program: Program[R], *, seed: int, kept: Checkpoint | None = None, listener: Listener | None = None
    ) -> None:
        self.program, self.seed, self.rehearsed = program, seed, rehearse(program)
        self.dealer = MeteredDealer(program.parties, seed)
        self._seconds, start, arrays = 0.0, 0, dict[str, dict[str, np.ndarray]]()
        if kept is not None:
            _check(kept, program)
            start, arrays = kept.done, _by_role(kept.arrays)
            self._seconds = kept.facts["seconds"]
            self.dealer.dealt_bytes, self.dealer.seconds = kept.facts["dealt_bytes"], kept.facts["dealt_seconds"]
        own = program.private(None)
        self._world = World(arrays["notes"]["notes"] if "notes" in arrays else None)
        self._left: dict[str, Any] = {}
        self._desks = {
            role.name: MemoryDesk(self._world, start=start, kept=arrays.get(role.home)) for role in program.roles
        }
        clients = {
            name: self._ending(name, program.client(name, own.get(name, {}), desk))
            for name, desk in self._desks.items()
        }
        self.session = Session.simulate(program.parties, self.dealer, clients=clients, listener=listener)
        if kept is not None:
            self.session.resume(kept.facts["cost"], kept.facts["ledger"])
        parties = {party: own.get(home_of(party), {}) for party in range(program.parties)}
        self.player = program.player(self.session, parties, None if kept is None else arrays.get("parties", {}), start)

    def _ending(self, name: str, client: Generator[Any, Any, Any]) -> Generator[Any, Any, None]:
        self._left[name] = yield from client

    @property
    def done(self) -> int:
        """Decisions made."""
        return self.player.done

    @property
    def finished(self) -> bool:
        """Whether all were."""
        return self.done >= self.program.decisions

    def turn(self) -> None:
        """One decision, from a block of the dealer's that is its own."""
        self._enter()
        started = time.perf_counter()
        self.player.turn()
        self._seconds += time.perf_counter() - started

    def _enter(self) -> None:
        self.dealer.enter(max(0, self.done - self.program.idle))

    def checkpoint(self) -> Checkpoint:
        """Where the run stands."""
        facts = {
            "role": _ROLE, **self.program.facts(), **self.session.counted(), "seconds": self._seconds,
            "dealt_bytes": self.dealer.dealt_bytes, "dealt_seconds": self.dealer.seconds,
        }  # fmt: skip
        roles = {"parties": self.player.state(), "notes": {"notes": self.notes}, **self._clients()}
        arrays = {f"{role}/{name}": array for role, own in roles.items() for name, array in own.items()}
        return Checkpoint(self.done, facts, arrays)

    def ended(self) -> Ended:
        """What was reached; of a run that is at its end, after what follows the last decision."""
        played = replace(self.session.meter.total)
        seconds = max(0.0, self._seconds - self.dealer.seconds)  # before that is dealt
        if self.finished:
            dealt = self.dealer.dealt_bytes
            if self.program.ending:
                self._enter()
                dealt += self.rehearsed.plan.step_bytes  # whole steps are
            self.player.finish()
            self.dealer.dealt_bytes = dealt
        return Ended(
            self.done, self.session.meter.total, played, tuple(self.session.ledger), seconds, self.rehearsed.turn,
            self.dealer.dealt_bytes, self.dealer.seconds, Coins(self.dealer.coin_key), self.player.state(),
            {role.name: self._clients()[role.home] for role in self.program.roles if role.home}, self.notes, self._left,
        )  # fmt: skip

    def result(self) -> R:
        """The same as the program's own result."""
        return self.program.result(self.ended())

    def _clients(self) -> dict[str, Arrays]:
        """States of the clients that keep one, by home."""
        desks = {role.home: self._desks[role.name] for role in self.program.roles if role.home}
        return {home: desk.state() for home, desk in desks.items() if desk.state is not None}

    @property
    def notes(self) -> np.ndarray:
        """What was noted, by decision."""
        return np.array(self._world.notes, np.int64)


def simulate(program: Program[R], *, seed: int, keep: Keep | None = None, watch: Watch | None = None) -> R:
    """Play all decisions, or what is left of them.

    Where `watch` asks for an end, the run keeps where it stands and gives what it reached, or is `Stopped` where a part
    of it results in nothing.  What it kept stays until `folder.settle`.
    """
    if keep is not None and not keep.resume:
        check_free_for(program, keep)
    kept = latest(program, keep.folder) if keep is not None and keep.resume else None
    simulation = Simulation(program, seed=seed, kept=kept)
    if keep is not None and kept is None:  # not before the run is known to be one
        forget(program, keep.folder)
    stop = False
    while not (simulation.finished or stop):
        simulation.turn()
        stop = watch is not None and watch(simulation.done) is False and not simulation.finished
        if keep is not None and (stop or simulation.finished or simulation.done % keep.every == 0):
            simulation.checkpoint().save(keep.folder)
    if stop and not program.partial:
        raise Stopped(simulation.done)
    return simulation.result()


def _check(kept: Checkpoint, program: Program[Any]) -> None:
    if kept.facts.get("role") != _ROLE:
        raise ConfigError(f"the checkpoint is of {kept.facts.get('role')} alone: put the simulation's own back")
    if (other := apart(kept.facts, program.facts())) is not None:
        raise other_run(other)


def _by_role(arrays: Arrays) -> dict[str, dict[str, np.ndarray]]:
    roles: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        role, _, own = name.partition("/")
        roles.setdefault(role, {})[own] = array
    return roles

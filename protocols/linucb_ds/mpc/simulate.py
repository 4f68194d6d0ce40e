"""A whole run on shares in one process: DO, computing parties, DC, and the reference beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bandits.fixed_point import rounded
from bandits.linear_problem import LinearProblem
from mpc.exchange import Listener
from mpc.meter import Cost
from mpc.session import Session
from offline import Plan, Recorder

from ...ppcb.replay import MeteredDealer
from ...run.checkpoint import Checkpoint
from ...run.keeping import Keep, Stopped
from .checkpoint import check, facts_with_theta, forget, latest_in
from .player import HiddenArms, ShownArms, customer, owner
from .replay import own_coins, replayed
from .run import Reference, Run, first_difference
from .settings import Settings
from .shown import CUSTOMER, OWNER

Progress = Callable[[int], bool | None]
"""Told after each pull how many were made; False asks for an end."""


class Simulation:
    """All roles in this process; everything follows from the problem, the settings and the seed, masks included.

    kept: where an earlier simulation stood.
    """

    def __init__(
        self, problem: LinearProblem, settings: Settings, *, parties: int, seed: int, listener: Listener | None = None,
        kept: Checkpoint | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.settings, self.parties, self.seed = problem, settings, parties, seed
        self.plan = plan_of(settings, parties)
        self.dealer = MeteredDealer(parties, seed)
        self._facts = facts_with_theta(problem, settings, parties, seed)
        self._told: list[int] = []
        self._before: list[int] = []
        self._spent = 0.0
        clients = {
            OWNER: owner(rounded(problem, settings.scales).theta, settings),
            CUSTOMER: customer(self._told),
        }
        if kept is not None:
            check(kept.facts, self._facts)
        self.session = Session.simulate(parties, self.dealer, clients=clients, listener=listener)
        self.player = player_of(self.session, settings, seed, kept)
        if kept is not None:
            resume_meter(self.session, kept.facts)
            self._before, self._spent = kept.facts["pulled"], kept.facts["seconds"]
            self.dealer.dealt_bytes, self.dealer.seconds = kept.facts["dealt_bytes"], kept.facts["dealt_seconds"]

    @property
    def done(self) -> int:
        """Pulls made."""
        return self.player.done

    def turn(self) -> None:
        """One pull."""
        self.dealer.enter(max(0, self.player.done - (0 if self.settings.hide else 1)))
        started = time.perf_counter()
        self.player.turn()
        self._spent += time.perf_counter() - started

    def pulled(self) -> list[int]:
        """The arms, also where no role may know them: this process hosts all parties."""
        if isinstance(self.player, ShownArms):
            return list(self.player.arms)
        chosen = [int(onehot.sum(axis=0, dtype=np.uint64).argmax()) for onehot in self.player.chosen]
        return self._before + chosen

    def checkpoint(self) -> Checkpoint:
        """Where it stands."""
        facts = {
            **self._facts, **meter_facts(self.session), "pulled": self.pulled(), "seconds": self._spent,
            "dealt_bytes": self.dealer.dealt_bytes, "dealt_seconds": self.dealer.seconds,
        }  # fmt: skip
        return Checkpoint(self.done, facts, self.player.words())

    def result(self) -> Run:
        """Tell the customer, and play the reference."""
        self.player.finish()
        coins = replayed(self.settings, self.seed, self.dealer.coin_key, self.plan.items)
        reference = Reference.of(self.problem, self.settings, coins)
        return Run(
            self.settings, self.parties, None if self.settings.hide else self.pulled(), self._told[0], reference,
            first_difference(self.pulled(), reference), self.session.meter.total, tuple(self.session.ledger),
            max(0.0, self._spent - self.dealer.seconds), self.plan.items, self.dealer.dealt_bytes, self.dealer.seconds,
        )  # fmt: skip


def player_of(
    session: Session, settings: Settings, seed: int, kept: Checkpoint | None = None
) -> ShownArms | HiddenArms:  # fmt: skip
    """Of this process's parties; the seed is that of the arms and noise that all parties may know."""
    words = None if kept is None else kept.arrays
    if settings.hide:
        return HiddenArms(session, settings, done=0 if kept is None else kept.done, kept=words)
    coins = own_coins(settings, seed)
    return ShownArms(session, settings, first=coins.first, noise=coins.noise, kept=words)


def meter_facts(session: Session) -> dict[str, Any]:
    """Costs and ledger so far."""
    return {"cost": asdict(session.meter.total), "ledger": [asdict(entry) for entry in session.ledger]}


def resume_meter(session: Session, facts: Mapping[str, Any]) -> None:
    """Go on counting from there."""
    session.meter.total = Cost(**facts["cost"])
    for entry in facts["ledger"]:
        session.ledger.record(**entry)


def plan_of(settings: Settings, parties: int) -> Plan:
    """What a pull draws, by a dry run; where arms are shown, every pull but the first."""
    recorder = Recorder(parties)
    session = Session.simulate(parties, recorder, clients={OWNER: owner(np.zeros(settings.dim), settings)})
    if settings.hide:
        HiddenArms(session, settings).turn()
    else:
        player = ShownArms(session, settings, first=0, noise=np.zeros(2))
        player.turn()
        player.turn()
    return Plan("linucb-ds", parties, tuple(recorder.items))


def simulate(
    problem: LinearProblem, settings: Settings, *, parties: int, seed: int, progress: Progress | None = None,
    keep: Keep | None = None,
) -> Run:  # fmt: skip
    """Play the whole budget, or what is left of it; `Stopped` where `progress` asks for an end before."""
    kept = latest_in(keep.folder) if keep is not None and keep.resume else None
    simulation = Simulation(problem, settings, parties=parties, seed=seed, kept=kept)
    if keep is not None and not keep.resume:  # not before the run is known to be one
        forget(keep.folder)
    while simulation.done < settings.budget:
        simulation.turn()
        stop = progress is not None and progress(simulation.done) is False and simulation.done < settings.budget
        if keep is not None and (stop or simulation.done % keep.every == 0):
            simulation.checkpoint().save(keep.folder)
        if stop:
            raise Stopped(simulation.done)
    run = simulation.result()
    if keep is not None:
        forget(keep.folder)
    return run

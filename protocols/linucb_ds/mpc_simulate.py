"""A whole run on shares in one process: DO, computing parties, DC, and the reference beside them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bandits.fixed_point import rounded
from bandits.linear_problem import LinearProblem
from mpc.exchange import Listener
from mpc.session import Session
from offline import Plan, Recorder

from ..ppcb.coins import MeteredDealer
from .mpc_coins import own_coins, replayed
from .mpc_player import HiddenArms, ShownArms, customer, owner
from .mpc_result import Reference, Run, first_difference
from .mpc_settings import Settings
from .mpc_shown import CUSTOMER, OWNER

Progress = Callable[[int], None]
"""Told after each pull how many were made."""


class Simulation:
    """All roles in this process; everything follows from the problem, the settings and the seed, masks included."""

    def __init__(
        self, problem: LinearProblem, settings: Settings, *, parties: int, seed: int, listener: Listener | None = None
    ) -> None:
        self.problem, self.settings, self.parties, self.seed = problem, settings, parties, seed
        self.plan = plan_of(settings, parties)
        self.dealer = MeteredDealer(parties, seed)
        self._told: list[int] = []
        self._spent = 0.0
        clients = {
            OWNER: owner(rounded(problem, settings.scales).theta, settings),
            CUSTOMER: customer(self._told),
        }
        self.session = Session.simulate(parties, self.dealer, clients=clients, listener=listener)
        self.player = player_of(self.session, settings, seed)

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
        return [int(onehot.sum(axis=0, dtype=np.uint64).argmax()) for onehot in self.player.chosen]

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


def player_of(session: Session, settings: Settings, seed: int) -> ShownArms | HiddenArms:
    """Of this process's parties; the seed is that of the arms and noise that all parties may know."""
    if settings.hide:
        return HiddenArms(session, settings)
    coins = own_coins(settings, seed)
    return ShownArms(session, settings, first=coins.first, noise=coins.noise)


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
    problem: LinearProblem, settings: Settings, *, parties: int, seed: int, progress: Progress | None = None
) -> Run:
    """Play the whole budget."""
    simulation = Simulation(problem, settings, parties=parties, seed=seed)
    for done in range(1, settings.budget + 1):
        simulation.turn()
        if progress is not None:
            progress(done)
    return simulation.result()

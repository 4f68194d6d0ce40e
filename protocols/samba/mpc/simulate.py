"""A whole run on shares in one process: owners, computing parties, the customer, and the reference beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from bandits.samba import BernoulliArms, Seeds
from mpc.errors import ConfigError
from mpc.exchange import Listener
from mpc.meter import Cost
from mpc.session import Session
from offline import Plan, Recorder

from ...ppcb.replay import MeteredDealer
from ...run.checkpoint import Checkpoint
from ...run.keeping import Keep, Stopped
from .checkpoint import check, facts_of, forget, latest_in, part_of
from .clients import Host, customer, host
from .player import Player
from .program import CUSTOMER
from .replay import DealtCoins
from .run import Game, Run
from .settings import Settings

Progress = Callable[[int], bool]
"""Told after each step how many pulls are over; says whether to go on."""


class Simulation:
    """All roles in this process.  What is dealt, played and paid follows from the seed; what shares look like does not.

    kept: where a run stood that goes on.
    """

    def __init__(
        self, arms: BernoulliArms, settings: Settings, *, parties: int, seed: int, kept: Checkpoint | None = None,
        listener: Listener | None = None,
    ) -> None:  # fmt: skip
        check_arms(arms, settings)
        self.arms, self.settings, self.parties, self.seeds = arms, settings, parties, Seeds.of(seed)
        self.facts = facts_of(arms, settings, parties, seed)
        self.plan = plan_of(settings, parties)
        self.dealer = MeteredDealer(parties, seed)
        self.hosts = [Host.simulated(settings, block, self.seeds, arms) for block in settings.blocks]
        if kept is not None:
            check(kept.facts, self.facts)
            for at, own in enumerate(self.hosts):
                own.restore(part_of(kept.arrays, at))
            self.dealer.dealt_bytes, self.dealer.seconds = kept.facts["dealt_bytes"], kept.facts["dealt_seconds"]
        self._told: list[int] = []
        clients = {role: host(own) for role, own in zip(settings.roles, self.hosts)}
        clients[CUSTOMER] = customer(self._told)
        self.session = Session.simulate(parties, self.dealer, clients=clients, listener=listener)
        if kept is not None:
            self.session.meter.total = Cost(**kept.facts["cost"])
            for entry in kept.facts["ledger"]:
                self.session.ledger.record(**entry)
        self.player = Player(self.session, settings, kept.done if kept is not None else 0)

    @property
    def done(self) -> int:
        """Pulls that are over."""
        return self.player.done

    def turn(self) -> None:
        """One choice."""
        self.dealer.enter(self.done - self.settings.arms)
        self.player.turn()

    def checkpoint(self) -> Checkpoint:
        """Where the run stands."""
        facts = {
            **self.facts, "cost": asdict(self.session.meter.total),
            "ledger": [asdict(entry) for entry in self.session.ledger], "dealt_bytes": self.dealer.dealt_bytes,
            "dealt_seconds": self.dealer.seconds,
        }  # fmt: skip
        arrays = {f"{at} {name}": array for at, own in enumerate(self.hosts) for name, array in own.state().items()}
        return Checkpoint(self.done, facts, arrays)

    def result(self, progress: Callable[[int], None] | None = None) -> Run:
        """Tell the customer, and play the reference."""
        cost = Cost(**asdict(self.session.meter.total))
        self.player.finish()
        settings = self.settings
        coins = DealtCoins(self.dealer.coin_key, self.plan.items, settings.arms, self.seeds)
        return Run(
            settings, self.parties, self._told[0], Game.of([own.owners.state() for own in self.hosts], settings.budget),
            Game.reference(settings, self.arms, coins, self.seeds.rewards, progress), cost,
            tuple(self.session.ledger), max(0.0, cost.seconds - self.dealer.seconds), self.plan.items,
            self.dealer.dealt_bytes, self.dealer.seconds,
        )  # fmt: skip


def plan_of(settings: Settings, parties: int) -> Plan:
    """What a step draws, by a dry run."""
    recorder = Recorder(parties)
    one = replace(settings, hosts=1, budget=max(settings.budget, settings.arms + 1))
    own = Host.simulated(one, one.blocks[0], Seeds.of(0), BernoulliArms(np.full(settings.arms, 0.5)))
    session = Session.simulate(parties, recorder, clients={one.roles[0]: host(own)})
    Player(session, one).turn()
    return Plan("samba", parties, tuple(recorder.items))


def simulate(
    arms: BernoulliArms, settings: Settings, *, parties: int, seed: int, keep: Keep | None = None,
    progress: Progress | None = None, reference: Callable[[int], None] | None = None,
) -> Run:  # fmt: skip
    """Play the whole budget; `Stopped` where `progress` says so, with a checkpoint where there is a place for one.

    reference: told how far the reference is, which is played after the run.
    """
    kept = latest_in(keep.folder) if keep is not None and keep.resume else None
    simulation = Simulation(arms, settings, parties=parties, seed=seed, kept=kept)
    if keep is not None and kept is None:  # not before the run is known to be one
        forget(keep.folder)
    while simulation.done < settings.budget:
        simulation.turn()
        done = simulation.done
        stop = progress is not None and not progress(done)
        if keep is not None and (stop or done == settings.budget or done % keep.every == 0):
            simulation.checkpoint().save(keep.folder)
        if stop:
            raise Stopped(done)
    run = simulation.result(reference)
    if keep is not None:
        forget(keep.folder)
    return run


def check_arms(arms: BernoulliArms, settings: Settings) -> None:
    """As many as the settings say."""
    if len(arms) != settings.arms:
        raise ConfigError(f"settings for {settings.arms} arms and {len(arms)} means: give both the same number")

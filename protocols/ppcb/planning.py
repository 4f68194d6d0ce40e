"""What a decision draws, found by a dry run, and whether material that was dealt for it fits.  Knows no data."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandits.environments import Episode
from mpc.correlations import Correlation
from mpc.errors import OutOfMaterial
from mpc.meter import Cost
from mpc.session import Session
from offline import Plan, Recorder, Store, StoreSource
from offline.plan import describe

from .clients import World
from .play import Play, split
from .program import PAYER, PULLER
from .settings import Settings, Variant


class Planned(NamedTuple):
    """turn: the items of one decision, and what it costs; the plan's step has more of them where a run refreshes."""

    plan: Plan
    turn: tuple[Correlation, ...]
    cost: Cost


def plan_of(settings: Settings, parties: int) -> Planned:
    """What one turn draws and costs, by a dry run; with a refresh, a plan's step is all turns up to one."""
    settings, recorder = replace(settings, owners=parties), Recorder(parties)
    cycle = settings.refresh or 0
    nothing = Episode(np.zeros((settings.batch, settings.dim)), np.zeros((settings.batch, settings.arms)))
    world = World([nothing] * settings.replicas, settings)
    session = Session.simulate(parties, recorder, clients={PULLER: world.puller(), PAYER: world.payer()})
    play = Play(session, replace(settings, refresh=cycle and 2), done=0)
    play.turn(split(world.contexts[0], parties))
    turn, cost = tuple(recorder.items), replace(session.meter.total)
    if not cycle:
        return Planned(Plan("ppcb", parties, turn), turn, cost)
    play.refresh()
    return Planned(Plan("ppcb", parties, turn * cycle + tuple(recorder.items[len(turn) :])), turn, cost)


def plan_steps(settings: Settings, decisions: int) -> int:
    """How many steps of the plan so many decisions draw."""
    return -(-decisions // max(1, settings.refresh or 0))


def chosen_for(settings: Settings) -> str:
    """What a run's length led to, in words."""
    if settings.variant is Variant.PUBLISHED:
        return f"{settings.fraction_bits} fraction bits"
    refresh = f"a refresh every {settings.refresh:,} decisions" if settings.refresh else "no refresh"
    return f"{settings.state_bits} state bits and {refresh}"


def check_material(material: Path, session: str, plan: Plan, steps: int, *, run: str, cure: str) -> None:
    """Refuse, before anything is drawn, stores that were dealt for another run or that `steps` would use up.

    run: what this run is, in words.  cure: the command that makes its plan.
    """
    for party in range(plan.parties):
        home = material / f"party-{party}"
        with Store(home) as store:
            if store.plan.digest != plan.digest:
                raise OutOfMaterial(
                    f"{home} was dealt for another run: {_difference(store.plan, plan)} ({run}); make the right plan "
                    f"with '{cure}' and deal it with 'masked offline deal plan.json --steps {steps} --out DIR'"
                )
            StoreSource(store, party=party, session=session).want(steps)


def _difference(have: Plan, want: Plan) -> str:
    """Where two plans part, the other's first."""
    if have.program != want.program:
        return f"its program is {have.program!r}, this one {want.program!r}"
    if have.parties != want.parties:
        return f"it has {have.parties} parties, this one {want.parties}"
    pairs = enumerate(zip_longest(have.items, want.items))
    at, (one, other) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    theirs, ours = ("nothing more" if item is None else describe(item) for item in (one, other))
    return f"item {at + 1} of its step is {theirs}, of this one {ours}"

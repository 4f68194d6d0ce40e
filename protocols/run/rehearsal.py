"""What a decision draws and costs, found by playing one with inputs that are nobody's.  Knows programs; no data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mpc.correlations import Correlation
from mpc.errors import ConfigError
from mpc.meter import Cost
from mpc.rounds import Rounds
from mpc.session import Session
from offline import Plan, Recorder

from .desk import MemoryDesk, World
from .program import Program, home_of, private_path


class Rehearsed(NamedTuple):
    """plan: its step is what a cycle draws.  turn: the items of one decision; cost: what it costs."""

    plan: Plan
    turn: tuple[Correlation, ...]
    cost: Cost


def rehearse(program: Program[Any]) -> Rehearsed:
    """Play the decisions that draw nothing, and one that draws; with a cycle, the plan's step is all of one."""
    _check_roles(program)
    blank, recorder, world = program.blank(), Recorder(program.parties), World()
    own = blank.private(None)
    clients = {role.name: blank.client(role.name, own.get(role.name, {}), MemoryDesk(world)) for role in blank.roles}
    session = Session.simulate(program.parties, recorder, clients=clients)
    parties = {party: own.get(home_of(party), {}) for party in range(program.parties)}
    player = blank.player(session, parties, None, 0)
    while player.done < blank.idle:
        player.turn()
    before, drawn = replace(session.meter.total), len(recorder.items)
    player.turn()
    turn, after = tuple(recorder.items[drawn:]), session.meter.total
    cost = Cost(
        after.rounds - before.rounds, after.opened_bytes - before.opened_bytes,
        client_hops=after.client_hops - before.client_hops,
    )  # fmt: skip
    if program.cycle == 1:
        return Rehearsed(Plan(program.name, program.parties, turn), turn, cost)
    drawn = len(recorder.items)
    blank.once_a_cycle(player)
    items = turn * program.cycle + tuple(recorder.items[drawn:])
    return Rehearsed(Plan(program.name, program.parties, items), turn, cost)


def drawn(parties: int, program: Callable[[Session], Rounds[Any]]) -> tuple[Correlation, ...]:
    """What a part of a turn draws, which a turn is `supplied` with.  program: makes it for a session."""
    recorder = Recorder(parties)
    session = Session.simulate(parties, recorder)
    session.run(program(session))
    return tuple(recorder.items)


def _check_roles(program: Program[Any]) -> None:
    """A role's name is a file's in a launch: refused here, so that a run in one process is refused as well."""
    files = [private_path(Path(), role.name).stem for role in program.roles]
    for role, file in zip(program.roles, files):
        if not re.fullmatch(r"[\w .-]+", role.name) or files.count(file) > 1 or file.startswith("party"):
            raise ConfigError(
                f"a role is named by letters, digits and spaces, by no name that begins with 'party', and none as "
                f"another but for '-': not {role.name!r}"
            )

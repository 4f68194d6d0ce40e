"""A program that draws nothing: sites share numbers, parties add them up, and an analyst learns the sum at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpc import ops
from mpc.client import ClientProgram, Receive, Send
from mpc.rounds import Input, Reveal, Rounds
from mpc.session import Session
from mpc.share import Share
from protocols.run.program import Arrays, Desk, Ended, Program, Role


class Adding(Program[int]):
    """numbers: (decisions, sites).  late: whether the analyst's sum takes a product, which nobody dealt."""

    name, unit = "adding", "day"

    def __init__(self, parties: int, sites: list[str], days: int, late: bool, numbers: Any = None) -> None:
        super().__init__(parties, days)
        self.sites, self.late = sites, late
        self.numbers = np.zeros((days, len(sites)), np.int64) if numbers is None else numbers
        self.roles = (*map(Role, sites), Role("analyst", patient=True))

    def public(self) -> dict[str, Any]:
        return {"parties": self.parties, "sites": self.sites, "days": self.decisions, "late": self.late}

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        return {site: {"numbers": self.numbers[:, i]} for i, site in enumerate(self.sites)}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Parties:
        return Parties(session, self, kept, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        return analyst() if role == "analyst" else site(own["numbers"][desk.start :])

    def result(self, ended: Ended) -> int:
        return int(ended.left["analyst"])


def site(numbers: np.ndarray) -> ClientProgram:
    for number in numbers:
        yield Send(number)


def analyst() -> ClientProgram:
    return int((yield Receive()))


class Parties:
    def __init__(self, session: Session, program: Adding, kept: Arrays | None, done: int) -> None:
        self.session, self.program, self.done = session, program, done
        self.total = session.constant(0, 0) if kept is None else Share(session, kept["total"], 0)

    def turn(self) -> None:
        self.session.run(self._day())
        self.done += 1

    def finish(self) -> None:
        self.session.run(self._end())

    def state(self) -> Arrays:
        return {"total": self.total.words}

    def _day(self) -> Rounds[None]:
        for share in (yield tuple(Input(name) for name in self.program.sites)):
            self.total = self.total + share

    def _end(self) -> Rounds[None]:
        total = (yield from ops.square(self.session, self.total)) if self.program.late else self.total
        yield Reveal(total, to="analyst", what="sum", why="it asked")

"""A run: what it asks of `protocols.run`, and what it gave, beside the policy in the clear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.helba import HELBA, Problem, play
from mpc.client import ClientProgram
from mpc.errors import ConfigError
from mpc.rounds import labelled
from mpc.session import Session
from mpc.share import Share

from ..run.program import Arrays, Brings, Counted, Desk, Ended, Facts, Fresh, Program, Role
from .beside import Beside
from .clients import check_all, user
from .program import USER, State, decide, pay, update_items
from .settings import Batches, Settings

NEAR = 1e-5  # how far apart indices can be that roundings may order otherwise


class Encrypted(Program["Run"]):
    """problem: features and rewards of all steps; None in a role.  data: its name."""

    name, unit = "helba", "step"
    roles = (Role(USER, notes="arms.bin"),)

    def __init__(
        self, settings: Settings, parties: int, *, seed: int = 0, data: str = "", problem: Problem | None = None
    ) -> None:
        super().__init__(parties, settings.steps)
        self.settings, self.seed, self.data, self._problem = settings, seed, data, problem
        if problem is not None:
            if problem.features.shape != (settings.steps, settings.arms, settings.constants.dim):
                raise ConfigError(
                    f"a problem of {len(problem):,} steps, {problem.arms} arms and {problem.features.shape[2]} "
                    f"dimensions, and settings of {settings.steps:,}, {settings.arms} and {settings.constants.dim}: "
                    "give both the same"
                )
            check_all(problem.features, problem.rewards, settings.constants)

    @property
    def problem(self) -> Problem:
        """Of whoever starts the run; zeros where a decision is rehearsed."""
        if self._problem is None:
            shape = self.settings.steps, self.settings.arms
            nothing = np.zeros(shape)
            return Problem(np.zeros((*shape, self.settings.constants.dim)), nothing, nothing)
        return self._problem

    def public(self) -> dict[str, Any]:
        """Settings, and how many parties there are."""
        return {"settings": self.settings.as_json(), "parties": self.parties}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Encrypted:
        """As a role knows it."""
        return cls(Settings.from_json(given["settings"]), given["parties"])

    def facts(self) -> Facts:
        """What a user gave comes first."""
        given = {"seed": self.seed, "data": self.data, "parties": self.parties}
        return {**given, **self.settings.as_json(), "inputs": self.inputs}

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """The users have features and rewards."""
        return {USER: {"features": self.problem.features, "rewards": self.problem.rewards}}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Parties:
        """The computing parties."""
        return Parties(session, self.settings, kept, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """The users, in turn."""
        return user(own["features"], own.get("rewards"), self.settings, desk)

    def brings(self, role: str) -> Brings:
        """The users: features of all arms, arm by arm; and what each would have paid, if that is known."""
        arms = self.settings.arms
        return (
            Brings(arms * self.settings.constants.dim, self.settings.steps, "step", arms) if role == USER else Brings()
        )

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """A row for each step."""
        if rows is None:
            return {}
        given = self.settings
        shape = given.steps, given.arms, given.constants.dim
        features, paid = np.split(rows[: given.steps], [given.arms * given.constants.dim], axis=1)
        check_all(features.reshape(shape), paid if paid.size else np.zeros(shape[:2]), given.constants)
        return {"features": features.reshape(shape), **({"rewards": paid} if paid.size else {})}

    def result(self, ended: Ended) -> Run:
        """Arms and batch ends beside those of the policy in the clear, which breaks near ties as the run did."""
        twin = HELBA(self.settings.constants, self.settings.batches)
        beside = play(twin, self.problem, ended.notes, near=NEAR)
        ends = ended.parties["ends"].astype(bool) if "ends" in ended.parties else None
        return Run(self.settings, self.problem, ended.notes, ends, beside, ended)


class Parties:
    """The computing parties, between two steps."""

    def __init__(self, session: Session, settings: Settings, kept: Arrays | None, done: int) -> None:
        self.session, self.settings, self.done = session, settings, done
        self.shares = State.begin(session, settings) if kept is None else State.restored(session, settings, kept)
        self._knows = settings.batches is not Batches.HIDDEN or len(session.hosted) == session.parties
        self.ends: list[bool] = [] if kept is None or not self._knows else kept["ends"].astype(bool).tolist()
        self._items = update_items(settings, session.parties)
        if session.trail is not None:
            session.trail.note("helba", settings.digest, done)

    def turn(self) -> None:
        """One step."""
        self.pay(self.decide())

    def decide(self) -> Share:
        """A user learns its arm; that arm's numbers are for `pay`."""
        ended = self.settings.batches is not Batches.PUBLIC or self.ends[-1:] == [True]
        given = self.done + 1, self._start, ended, self.settings, self._items
        return self.session.run(labelled(self.session, "decide", decide(self.session, self.shares, *given)))

    def pay(self, pulled: Share) -> None:
        """It shares what the arm paid."""
        program = pay(self.session, self.shares, pulled, self.done + 1, self._start, self.settings)
        told = self.session.run(labelled(self.session, "pay", program))
        if self._knows:  # a simulation reads the bit that is nobody's
            self.ends.append(bool(told.words.sum(dtype=np.uint64) if isinstance(told, Share) else told))
        self.done += 1

    @property
    def _start(self) -> int:
        """The step behind the last one that ended a batch; where that is hidden, the earliest that it can be."""
        if self.settings.batches is Batches.HIDDEN:
            return self.settings.constants.earliest(self.done + 1)
        return next((at + 2 for at in reversed(range(self.done)) if self.ends[at]), 1)

    def finish(self) -> None:
        """Nothing follows the last step."""

    def state(self) -> Arrays:
        """Shares, and which steps ended a batch where that is known."""
        return {**self.shares.words(), **({"ends": np.array(self.ends, np.int64)} if self._knows else {})}


@dataclass(frozen=True)
class Run(Beside, Counted):
    """On shares."""

    mode, where, near = "mpc", "on shares", NEAR

    ended: Ended

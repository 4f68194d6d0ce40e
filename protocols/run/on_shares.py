"""A role of any `Program` on a machine of its own: a computing party with its store, or a client at a desk."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mpc.client import serve
from mpc.errors import MaskedError, told_to_peers
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net.tls import Met, Tls, TlsClient
from mpc.session import Session
from offline import StoreSource

from .alignment import align
from .apart import Apart, Common, Seat, agreed
from .checkpoint import Checkpoint
from .config import Config
from .dealer_process import Nothing, check_store, stored
from .desk import State
from .folder import settle
from .notes import Notes
from .program import Arrays, Brings, Ended, Facts, Fresh, Program, Role, party_name
from .progress import Progress
from .rehearsal import Rehearsed, rehearse
from .report import Report, plain_report, show
from .role_process import PATIENCE, Task, computing_party
from .simulate import Simulation
from .tagged_file import prepare

CHECKPOINTS = "checkpoints"


class OnShares(Apart):
    """program: as every role knows it."""

    def __init__(self, program: Program[Any]) -> None:
        self.program = program
        self.name, self.unit, self.decisions, self.parties = (
            program.name, program.unit, program.decisions, program.parties,
        )  # fmt: skip
        self.names = (*map(party_name, range(program.parties)), *(role.name for role in program.roles))

    @cached_property
    def rehearsed(self) -> Rehearsed:
        """What a decision draws and costs."""
        return rehearse(self.program)

    @property
    def common(self) -> Common:
        """The program's."""
        return self.program.common

    def public(self) -> Mapping[str, Any]:
        """The program's."""
        return self.program.public()

    def brings(self, role: str) -> Brings:
        """The program's."""
        return self.program.brings(role)

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """The program's."""
        return self.program.brought(role, rows, fresh)

    @property
    def purpose(self) -> str:
        """The program's."""
        return self.program.purpose[0]

    @property
    def cost(self) -> Cost:
        """Of a decision."""
        return self.rehearsed.cost

    def computing(self) -> float:
        """Of a decision that all parties make in this process, a party's share."""
        simulation = Simulation(self.program.blank(), seed=0)
        while simulation.done < self.program.idle:
            simulation.turn()
        started = time.process_time()
        simulation.turn()
        return (time.process_time() - started) / self.parties

    def check(self, config: Config) -> None:
        """A computing party has the material that this run draws."""
        if config.store is not None and config.role in self.names[: self.parties]:
            words, cure = self.program.purpose
            check_store(
                config.store, self.names.index(config.role), config.material, self.rehearsed.plan,
                self.program.draws(), run=words, cure=cure,
            )  # fmt: skip

    def play(self, seat: Seat) -> None:
        """A party computes, a client serves."""
        if seat.member.node < self.parties:
            self._compute(seat)
        else:
            self._serve(seat)

    def _compute(self, seat: Seat) -> None:
        config, program, member = seat.config, self.program, seat.member
        keep, progress = config.folder / CHECKPOINTS, Progress(program.decisions, program.unit, say=seat.say)
        source = Nothing() if config.store is None else stored(config.store, member.node, config.material, seat.say)
        task = Task(("", "", None), {}, config.session, 0, config.every, keep, config.round, draws=True)

        def join() -> Tls:
            mesh = Tls.over(member, seat.meet(), config.round, seat.say)
            if any(self.brings(party).columns for party in self.names[: self.parties]):
                try:
                    align(mesh, seat.rows, seat.fresh("ids"))
                except MaskedError as error:
                    mesh.close(reason=told_to_peers(error))
                    raise
            return mesh

        def tell(done: int) -> None:
            seat.status.made(done)
            progress(done)

        def watched(session: Session) -> None:
            status = seat.status
            status.cost, status.labels = lambda: session.meter.total, session.meter.labels
            if isinstance(source, StoreSource):
                status.stock = lambda: source.steps_left

        counted = computing_party(program, task, keep, member.node, source, seat.own, join, tell, watched)
        progress.end()
        assert counted is not None, "nobody asked this role to stop"
        ledger = tuple(Entry(**row) for row in counted["ledger"])
        dealt = self.rehearsed.plan.step_bytes * program.draws()
        ended = Ended(
            program.decisions, Cost(**counted["cost"]), Cost(**counted["played"]), ledger, counted["seconds"],
            self.rehearsed.turn, dealt, 0.0, None, {}, {}, np.zeros(0, np.int64), {},
        )  # fmt: skip
        said = [
            f"{config.role}: {program.decisions:,} {program.unit}s of {program.name} with {program.parties} parties"
        ]
        show(plain_report(program, _facts(config), said, ended), told(config), config.folder, None, as_json=False)
        settle(program, keep)

    def _serve(self, seat: Seat) -> None:
        config, program = seat.config, self.program
        role = next(role for role in program.roles if role.name == config.role)
        links = seat.meet()
        own = {**seat.own, **_arrays(agreed(self, seat, links))}
        _part_beside(seat, links)
        link = TlsClient.over(seat.member, links, PATIENCE if role.patient else config.round, seat.say)
        notes, keep = None, config.folder / CHECKPOINTS
        if role.notes:
            prepare(keep)
            notes = Notes(keep / role.notes, program.noted, who=role.name)

        def written(done: int) -> None:
            assert notes is not None
            seat.status.made(done)
            if self._due(config, done):
                notes.flush()
                link.say_noted(done)

        desk = seat.desk(
            start=0, kept=None, keeps=self._keeping(config, role) if role.home else None, notes=notes, pipe=Path(),
            others=[], waiting=link.say_waiting, written=written,
        )  # fmt: skip
        try:
            left = serve(link, program.client(role.name, own, desk))
        finally:
            desk.close()
        done, ends = program.decisions, program.told(role.name, left)
        learned = {} if notes is None else {"learned": notes.words().reshape(done, -1).tolist()}
        said = f"{config.role}: {done:,} {program.unit}s are over"
        print_found(ends)
        document = {**_facts(config), f"{program.unit}s": done, **ends, "left": left, **learned}
        show(Report(document, said, done), told(config), config.folder, None, as_json=False, say=seat.say)
        settle(program, keep)

    def _keeping(self, config: Config, role: Role) -> Any:
        """What a client that keeps its state does after each decision; nobody asks it to stop."""
        home = config.folder / CHECKPOINTS / role.home

        def keeps(done: int, state: State) -> bool:
            if self._due(config, done):
                Checkpoint(done, {"run": config.session, "role": home.name}, state()).save(home)
            return False

        return keeps

    def _due(self, config: Config, done: int) -> bool:
        return done % config.every == 0 or done >= self.decisions


def told(config: Config) -> Mapping[str, Any]:
    """A role's file, as a result names it."""
    return {"config": config.path, "parties": config.parties, **config.options}


def print_found(ends: Facts) -> None:
    """What a role learned at the end is its owner's: it is printed, and in no log."""
    for name, value in ends.items():
        print(f"{name.replace('_', ' ')}: {value:,g}", flush=True)


def _facts(config: Config) -> dict[str, Any]:
    return {"program": config.program, "role": config.role, "session": config.session}


def _arrays(secrets: Mapping[str, bytes]) -> Arrays:
    return {name: np.frombuffer(raw, np.uint8) for name, raw in secrets.items()}


def _part_beside(seat: Seat, links: Met) -> None:
    """Links that served to agree on secrets end here."""
    for node in links.keys() - set(seat.member.computed_with):
        links[node].close()


__all__ = ["CHECKPOINTS", "OnShares", "print_found", "told"]

"""A role of any `Program` on a machine of its own: a computing party with its store, or a client at a desk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpc.client import ClientProgram, serve
from mpc.errors import PeerLost, RunOver, StoppedTogether, told_by_client
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net.member import Met
from mpc.net.mesh_channel import FromDealer, ToParty
from mpc.net.tls import Tls, TlsClient
from mpc.prg import KEY_BYTES
from mpc.session import Session
from offline import StoreSource, StreamSource, TrustedDealer
from offline import serve as deal_ahead

from .alignment import align
from .apart import Apart, Common, Seat, agreed_secrets
from .config import DEALER, Config
from .dealer_process import Nothing, check_store, stored, warm_up
from .folder import CHECKPOINTS, DEALT, HEARD, LEFT, notes_in, settle
from .going_on import Kept, beginning, left_with_a_word, until_over
from .line_desk import LineDesk
from .program import Arrays, Brings, Ended, Facts, Fresh, Program, digest, home_of, party_name
from .progress import Progress
from .rehearsal import Rehearsed, rehearse
from .report import Report, plain_report, show
from .role_process import PATIENCE, Drawn, Task, computing_party
from .simulate import Simulation
from .standing import Agreed, agree, agree_as_client, await_all
from .stopping import Stopped
from .tagged_file import read_kept, write_kept
from .terminal import write_line

T = TypeVar("T")


class OnShares(Apart):
    """program: as every role knows it.  dealer: whether the last role deals while the run is at work."""

    def __init__(self, program: Program[Any], *, dealer: bool = False) -> None:
        self.program, self.dealer = program, dealer
        self.name, self.unit, self.decisions, self.parties = (
            program.name, program.unit, program.decisions, program.parties,
        )  # fmt: skip
        self.names = (*map(party_name, range(program.parties)), *(role.name for role in program.roles))
        self.names += (DEALER,) if dealer else ()

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
        """The program's; a dealer brings nothing."""
        return Brings() if role == DEALER else self.program.brings(role)

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """The program's."""
        return {} if role == DEALER else self.program.brought(role, rows, fresh)

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

    def check(self, config: Config, *, resume: bool) -> None:
        """A computing party has the material that this run draws; how much one that goes on needs, all know later."""
        if config.store is not None and config.role in self.names[: self.parties]:
            words, cure = self.program.purpose
            check_store(
                config.store, self.names.index(config.role), config.material, self.rehearsed.plan,
                1 if resume else self.program.stock(), run=words, cure=cure,
            )  # fmt: skip

    def play(self, seat: Seat) -> None:
        """A party computes, a client serves."""
        if seat.member.node < self.parties:
            self._compute(seat)
        elif seat.config.role == DEALER:
            self._deal(seat)
        else:
            self._serve(seat)

    def _compute(self, seat: Seat) -> None:
        config, program, member, say = seat.config, self.program, seat.member, seat.say
        keep, progress, home = (
            config.folder / CHECKPOINTS,
            Progress(program.decisions, program.unit, say=say),
            config.role,
        )
        kept = Kept(
            keep, config.session, home, home_of(member.node), None, not seat.resume, config.store is not None, self._of
        )  # fmt: skip
        warm_up(self.rehearsed.plan.items)

        def meet(seconds: float) -> Tls:
            return Tls.over(member, seat.meet(seconds), config.round, say)

        def tell(done: int) -> None:
            seat.status.made(done)
            progress(done)

        def plays(mesh: Tls) -> tuple[dict[str, Any] | None, int]:
            with left_with_a_word(mesh):
                if any(self.brings(party).columns for party in self.names[: self.parties]):
                    align(mesh, seat.rows, seat.fresh("ids"))
                agreed = agree(mesh, kept.standing(), range(program.parties, len(self.names)))
                kept.begin(agreed, say, program.unit)
                source = self._source(seat, mesh) if self._draws(agreed) else Nothing()
            done, clients = agreed.start, range(program.parties, program.parties + len(program.roles))

            def stops(at: int) -> bool:
                nonlocal done
                done = at
                return mesh.stopping and at % program.cycle == 0

            def watched(session: Session) -> None:
                status = seat.status
                status.cost, status.labels = lambda: session.meter.total, session.meter.labels
                if isinstance(source, StoreSource):
                    status.stock = lambda: source.steps_left

            with closing(source), seat.asked() as mesh.wishes, left_with_a_word(mesh):
                task = beginning(self._task(config), agreed)
                return computing_party(
                    program, task, member.node, source, seat.own, lambda: mesh, stops, tell, watched,
                    lambda: await_all(mesh, clients, program.decisions),
                ), done  # fmt: skip

        counted, done = _until_over(seat, meet, plays, kept)
        progress.end()
        if counted is None:
            raise Stopped(done)
        self._tell_counted(seat, counted)
        settle(program, keep)

    def _tell_counted(self, seat: Seat, counted: Mapping[str, Any]) -> None:
        """What a computing party prints and writes at the end."""
        config, program = seat.config, self.program
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

    def _draws(self, agreed: Agreed) -> bool:
        """Whether anything is drawn from there on: all may go on from the end, for one who has not learned all yet."""
        return agreed.start < self.decisions or self.program.ending

    def _source(self, seat: Seat, mesh: Tls) -> Drawn:
        """What a computing party draws from, in one attempt."""
        config, node = seat.config, seat.member.node
        if self.dealer:
            dealer = FromDealer(mesh, len(self.names) - 1)
            return StreamSource(self.rehearsed.plan, dealer, party=node, timeout=config.round)
        return Nothing() if config.store is None else stored(config.store, node, config.material, seat.say)

    def _deal(self, seat: Seat) -> None:
        """Fresh masks in each attempt, and the same coins in all.  Where others have come to the end, all was dealt."""
        config, program, plan = seat.config, self.program, self.rehearsed.plan
        keep = config.folder / CHECKPOINTS
        kept = Kept(keep, config.session, DEALER, "", None, not seat.resume, coins=seat.fresh.name)
        coins = seat.fresh("coins")[:KEY_BYTES]
        warm_up(plan.items)

        def meet(seconds: float) -> TlsClient:
            return TlsClient.over(seat.member, seat.meet(seconds), PATIENCE, seat.say)

        def plays(link: TlsClient) -> None:
            with left_with_a_word(link, told_by_client):
                agreed = agree_as_client(link, kept.standing())
                kept.begin(agreed, seat.say, program.unit)
                (keep / DEALT).unlink(missing_ok=True)
                seat.fresh.keep()
                first = program.block(agreed.start)
                dealer = TrustedDealer(program.parties, coin_key=coins, first_coins=first)
                ways = {party: ToParty(link, party) for party in range(program.parties)}
                try:
                    if self._draws(agreed):
                        deal_ahead(plan, ways, blocks=program.draws(agreed.start), dealer=dealer)
                    write_kept(keep / DEALT, b"")
                    link.await_end()
                except StoppedTogether as stopped:
                    raise Stopped(stopped.done) from None
            link.close()

        try:
            _until_over(seat, meet, plays, kept)
        except RunOver as over:
            seat.say(str(over))
        except PeerLost as lost:
            if not (keep / DEALT).exists():
                raise
            why = f"{lost}; all was dealt before, so where the others have ended well this run is over"
            raise PeerLost(why, peer=lost.peer) from lost
        done = program.decisions
        report = Report(_facts(config), f"{DEALER}: all material of {done:,} {program.unit}s was dealt", done)
        show(report, told(config), config.folder, None, as_json=False, say=seat.say)
        settle(program, keep)

    def _serve(self, seat: Seat) -> None:
        config, program = seat.config, self.program
        role = next(role for role in program.roles if role.name == config.role)
        keep = config.folder / CHECKPOINTS
        notes = notes_in(program, keep) if role.notes else None
        kept = Kept(
            keep, config.session, role.name, role.home, notes, not seat.resume, of=self._of, coins=seat.fresh.name
        )
        world = seat.world(keep / HEARD)

        def meet(seconds: float) -> tuple[TlsClient, Arrays]:
            links = seat.meet(seconds)
            own = {**seat.own, **_arrays(agreed_secrets(self, seat, links))}
            seat.fresh.keep()
            _part_beside(seat, links)
            return TlsClient.over(seat.member, links, PATIENCE if role.patient else config.round, seat.say), own

        def plays(met: tuple[TlsClient, Arrays]) -> Any:
            link, own = met
            with left_with_a_word(link, told_by_client):
                agreed = agree_as_client(link, kept.standing())
                state, task = kept.begin(agreed, seat.say, program.unit), beginning(self._task(config), agreed)
                world.begin(agreed.start, kept.again, kept.noted, again=agreed.again, told=agreed.told)
                written = notes_in(program, keep) if role.notes else None
                (keep / LEFT).unlink(missing_ok=True)

            def noted(done: int) -> None:
                seat.status.made(done)
                if written is not None and task.due(done, program.decisions):
                    written.flush()
                    link.say_noted(done)

            desk = LineDesk(
                world, outside=link.await_outside, timeout=config.round, start=agreed.start, kept=state,
                keeps=kept.keeps(task, program.decisions) if role.home else None, notes=written, pipe=Path(),
                others=[], waiting=link.say_waiting, written=noted,
            )  # fmt: skip

            try:
                client = _keeping(program.client(role.name, own, desk), keep / LEFT)
                return serve(link, client, lambda: _stay(link, program.decisions))
            except StoppedTogether as stopped:
                kept.stopped(task, stopped.done)
                raise Stopped(stopped.done) from None
            finally:
                desk.close()

        with closing(world):
            left = self._left_with(seat, keep / LEFT, lambda: _until_over(seat, meet, plays, kept))
        learned = {} if notes is None else {"learned": notes.words().reshape(program.decisions, -1).tolist()}
        self._tell_left(seat, left, learned)
        settle(program, keep)

    def _tell_left(self, seat: Seat, left: Any, learned: Mapping[str, Any]) -> None:
        """What a client prints and writes at the end."""
        config, program, done = seat.config, self.program, self.decisions
        ends, said = program.told(config.role, left), f"{config.role}: {done:,} {program.unit}s are over"
        print_found(ends)
        document = {**_facts(config), f"{program.unit}s": done, **ends, "left": left, **learned}
        show(Report(document, said, done), told(config), config.folder, None, as_json=False, say=seat.say)

    def _left_with(self, seat: Seat, kept: Path, play: Callable[[], Any]) -> Any:
        """What a client is left with: what it had kept of that, where the others came to the end without it."""
        try:
            return play()
        except RunOver as over:
            if not kept.exists():
                raise
            seat.say(f"{over}; what this role had learned by then is its result")
            return _left(kept)
        except PeerLost as lost:
            if not kept.exists():
                raise
            print_found(self.program.told(seat.config.role, _left(kept)))
            why = f"{lost}; all was learned before, so where the others have ended well this run is over"
            raise PeerLost(why, peer=lost.peer) from lost

    def _task(self, config: Config) -> Task:
        keep = config.folder / CHECKPOINTS
        return Task(("", "", None), {}, config.session, 0, config.every, keep, config.round, True, of=self._of)

    @property
    def _of(self) -> str:
        return digest(self.program.kept_for())


def _until_over(seat: Seat, meet: Callable[[float], T], plays: Callable[[T], Any], kept: Kept) -> Any:
    config, waits = seat.config, seat.status.waits
    return until_over(meet, plays, kept, first=config.start, back=config.back, say=seat.say, waits=waits)


def told(config: Config) -> Mapping[str, Any]:
    """A role's file, as a result names it."""
    return {"config": config.path, "parties": config.parties, **config.options}


def print_found(ends: Facts) -> None:
    """What a role learned at the end is its owner's: it is printed, and in no log."""
    for name, value in ends.items():
        write_line(f"{name.replace('_', ' ')}: {value:,g}")


def _facts(config: Config) -> dict[str, Any]:
    return {"program": config.program, "role": config.role, "session": config.session}


def _arrays(secrets: Mapping[str, bytes]) -> Arrays:
    return {name: np.frombuffer(raw, np.uint8) for name, raw in secrets.items()}


def _keeping(program: ClientProgram, path: Path) -> ClientProgram:
    """What a client is left with is on its disk before it says that it has all: nobody may be there to say it again."""
    left = yield from program
    write_kept(path, json.dumps(left).encode())
    return left


def _left(path: Path) -> Any:
    return json.loads(read_kept(path, cure="put it back"))


def _stay(link: TlsClient, done: int) -> None:
    """A client that has all stays until all have ended, since it is wanted again where one of them dies."""
    link.say_noted(done)
    link.await_end()


def _part_beside(seat: Seat, links: Met) -> None:
    """Links that served to agree on secrets end here."""
    for node in links.keys() - set(seat.member.computed_with):
        links[node].close()


__all__ = ["OnShares", "print_found", "told"]

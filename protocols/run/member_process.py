"""One role of a session between machines, by its file: `masked party --config FILE`.  Knows configs, files and TLS.

What a role is, and what it does, is `role_process`'s and the program's; this page finds what it needs on its own
machine: certificates, data, material, a folder for what it keeps.  No role is handed anything by another.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from bandits.csv_table import TableError, read_columns
from mpc.client import serve
from mpc.errors import ConfigError, MaskedError, StoppedTogether
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.net import certificates
from mpc.net.tls import Member, Peer, Tls, TlsClient, listen_on

from .config import Config, party_names
from .dealer_process import Nothing, check_store, stored, warm_up
from .exits import say
from .folder import HEARD, notes_in, reserved, settle
from .going_on import Kept, beginning, left_with_a_word, until_over
from .line_desk import LineDesk, Lines
from .options import System, add_problem, check_parties
from .parser import Parser
from .program import Arrays, Ended, Program, home_of
from .progress import Progress
from .rehearsal import Rehearsed, rehearse
from .report import Report, plain_report, show
from .role_process import PATIENCE, Task, computing_party
from .standing import agree, agree_as_client
from .stopping import Stopped
from .tagged_file import HOME_KEY

_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Prepared:
    """A role that can start."""

    config: Config
    program: Program[Any]
    rehearsed: Rehearsed
    member: Member
    own: Arrays = field(repr=False)
    resume: bool = False


def prepared(config: Config, system: System, *, resume: bool = False) -> Prepared:
    """All that can be wrong on this machine is found before anybody is called, and said at once.

    resume: it goes on with what it kept.
    """
    wrong: list[str] = []
    noted = partial(_noted, wrong)
    program, rehearsed = None, None
    with noted("options"):
        program = program_of(system, config.parties, config.options)
        rehearsed = rehearse(program)
    own, member = None, None
    with noted("data"):
        own = {} if program is None else _own(config, system, program)
    with noted(""):
        member = None if program is None else _member(config, program, wrong)
    if program is not None and rehearsed is not None and config.computes and config.store is not None:
        with noted("material.store"):
            _check_store(config, program, rehearsed, resume=resume)
    with noted("output.folder"):
        _check_folder(config.folder, resume=resume)
    if wrong or program is None or rehearsed is None or member is None or own is None:
        raise ConfigError(f"{config.path} does not fit:" + "".join(f"\n  {line}" for line in wrong))
    return Prepared(config, program, rehearsed, member, own, resume)


def play(
    given: Prepared, *, heard: int | None = None, told: IO[str] | None = None,
    asked: Callable[[], AbstractContextManager[Callable[[], bool]]] = lambda: nullcontext(lambda: False),
) -> None:  # fmt: skip
    """Meet the others, play the role, print and write what came of it.

    heard, told: in place of stdin and stdout, of a client that meets the world.  asked: entered while a computing party
    plays; whether it was asked to stop.  `Stopped` where all were.
    """
    config = given.config
    config.folder.mkdir(parents=True, exist_ok=True)
    with reserved(config.folder / _CHECKPOINTS):
        if config.computes:
            _compute(given, asked)
        else:
            _serve(given, sys.stdin.fileno() if heard is None else heard, told or sys.stdout)


def _compute(given: Prepared, asked: Callable[[], AbstractContextManager[Callable[[], bool]]]) -> None:
    config, program, member = given.config, given.program, given.member
    keep, progress = config.folder / _CHECKPOINTS, Progress(program.decisions, program.unit)
    spends = config.store is not None
    kept = Kept(keep, config.session, config.role, home_of(member.node), None, not given.resume, spends)
    warm_up(given.rehearsed.plan.items)
    clients = range(program.parties, len(member.names))
    task = _task(config, keep)
    assert config.listen is not None
    host, port = config.listen
    listeners = [listen_on(host, port)]
    say(f"{config.role} of session {config.session!r} listens at {host}:{listeners[0].getsockname()[1]}")

    def meet(seconds: float) -> Tls:
        listener = listeners.pop() if listeners else listen_on(host, port)
        met = Tls.join(member, listener, timeout=config.round, starting=seconds, log=say)
        say("all are there")
        return met

    def plays(mesh: Tls) -> tuple[dict[str, Any] | None, int]:
        with left_with_a_word(mesh):
            agreed = agree(mesh, kept.standing(), clients)
            kept.begin(agreed, say, program.unit)
            source = Nothing() if config.store is None else stored(config.store, member.node, config.material, say)
        done = agreed.start

        def stops(at: int) -> bool:
            nonlocal done
            done = at
            return mesh.stopping and at % program.cycle == 0

        with closing(source), asked() as mesh.wishes, left_with_a_word(mesh):
            told = computing_party(
                program, beginning(task, agreed), member.node, source, given.own, lambda: mesh, stops, progress
            )
        return told, done

    counted, done = until_over(meet, plays, first=config.start, back=config.back, say=say)
    progress.end()
    if counted is None:
        raise Stopped(done)
    ledger = tuple(Entry(**row) for row in counted["ledger"])
    dealt = given.rehearsed.plan.step_bytes * program.draws()
    ended = Ended(
        program.decisions, Cost(**counted["cost"]), Cost(**counted["played"]), ledger, counted["seconds"],
        given.rehearsed.turn, dealt, 0.0, None, {}, {}, np.zeros(0, np.int64), {},
    )  # fmt: skip
    said = [f"{config.role}: {program.decisions:,} {program.unit}s of {program.name} with {program.parties} parties"]
    facts = {"program": program.name, "role": config.role, "session": config.session}
    show(plain_report(program, facts, said, ended), _told(config), config.folder, None, as_json=False)
    settle(program, keep)


def _serve(given: Prepared, heard: int, told: IO[str]) -> None:
    config, program, member = given.config, given.program, given.member
    role = next(role for role in program.roles if role.name == config.role)
    keep = config.folder / _CHECKPOINTS
    noted = notes_in(program, keep) if role.notes else None
    kept, task = Kept(keep, config.session, role.name, role.home, noted, not given.resume), _task(config, keep)
    world = Lines(heard, told, timeout=config.round, record=keep / HEARD, who=role.name)

    def meet(seconds: float) -> TlsClient:
        patience = PATIENCE if role.patient else config.round
        met = TlsClient.join(member, timeout=patience, starting=seconds, log=say)
        say("all are there")
        return met

    def plays(link: TlsClient) -> Any:
        with left_with_a_word(link):
            agreed = agree_as_client(link, kept.standing())
            state, now = kept.begin(agreed, say, program.unit), beginning(task, agreed)
            world.begin(agreed.start, kept.again, again=agreed.again)
            notes = notes_in(program, keep) if role.notes else None

        def written(done: int) -> None:
            if notes is not None and now.due(done, program.decisions):
                notes.flush()
                link.say_noted(done)

        desk = LineDesk(
            world, outside=link.await_outside, timeout=config.round, start=agreed.start, kept=state,
            keeps=kept.keeps(now, program.decisions) if role.home else None, notes=notes, pipe=Path(), others=[],
            waiting=link.say_waiting, written=written,
        )  # fmt: skip
        try:
            return serve(link, program.client(role.name, given.own, desk))
        except StoppedTogether as stopped:
            kept.stopped(now, stopped.done)
            raise Stopped(stopped.done) from None
        finally:
            desk.close()

    try:
        left = until_over(meet, plays, first=config.start, back=config.back, say=say)
    finally:
        world.close()
    done = program.decisions
    facts = {"program": program.name, "role": config.role, "session": config.session, f"{program.unit}s": done}
    learned = {} if noted is None else {"learned": noted.words().reshape(done, -1).tolist()}
    report = Report({**facts, "left": left, **learned}, f"{config.role}: {done:,} {program.unit}s are over", done)
    with contextlib.redirect_stdout(sys.stderr):  # stdout is the world's
        show(report, _told(config), config.folder, None, as_json=False)
    settle(program, keep)


def _told(config: Config) -> Mapping[str, Any]:
    """The file, as a result names it."""
    return {"config": config.path, "parties": config.parties, **config.options}


@contextlib.contextmanager
def _noted(wrong: list[str], where: str) -> Iterator[None]:
    """A mistake in a part of the file is noted, and the rest is looked at as well."""
    try:
        yield
    except (MaskedError, TableError) as error:
        wrong += [f"{where}: {line}" if where else line for line in str(error).splitlines()]


class _Parser(Parser):
    """One that raises what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def program_of(system: System, parties: int, given: Mapping[str, Any]) -> Program[Any]:
    """The program as every role knows it, from the options that a file has; every mistake at once."""
    if not system.apart:
        raise ConfigError(f"{system.name} has all its roles on one machine so far: use 'masked launch {system.name}'")
    check_parties(parties)
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_problem(system, parser)
    known, wrong = vars(parser.parse_args([])).keys() - {"parties"}, list[str]()
    words = [f"--parties={parties}"]
    for name, value in given.items():
        if name not in known:
            wrong.append(f"{name!r} is unknown: there are {', '.join(sorted(known))}")
        elif not isinstance(value, (str, int, float)) or isinstance(value, bool):
            wrong.append(f"{name} is a number or a text, not {value!r}")
        else:
            try:
                parser.parse_args([word := f"--{name.replace('_', '-')}={value}"])
                words.append(word)
            except ConfigError as error:
                wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    options = parser.parse_args(words)
    system.check(options)
    return system.planned(options)


def _own(config: Config, system: System, program: Program[Any]) -> Arrays:
    """What this role alone has."""
    names = [*party_names(config.parties), *(role.name for role in program.roles)]
    if config.role not in names:
        raise ConfigError(f"there is no role {config.role!r} in {program.name}: there are {', '.join(names)}")
    wanted = system.columns(program, config.role)
    if not wanted:
        if config.data is not None:
            raise ConfigError(f"{config.role} brings no data of its own: leave out data.file")
        return system.from_rows(program, config.role, None)
    if config.data is None:
        raise ConfigError(f"{config.role} brings {wanted} numbers for each {program.unit}: name its file in data.file")
    rows = read_columns(config.data, config.columns)
    if rows.shape[1] != wanted:
        raise ConfigError(f"{config.data} gives {rows.shape[1]} columns, and {config.role} brings {wanted}")
    return system.from_rows(program, config.role, rows)


def _member(config: Config, program: Program[Any], wrong: list[str]) -> Member:
    names = (*party_names(config.parties), *(role.name for role in program.roles))
    now, peers = dt.datetime.now(dt.timezone.utc), dict[int, Peer]()
    own = certificates.read(config.certificate)
    with _noted(wrong, "own"):
        certificates.check_key(config.key, own)
        _warn(own.check_time(now))
    if config.computes:
        wrong += [f'[peers."{role}"] is missing' for role in names if role not in (config.role, *config.peers)]
    for role, peer in config.peers.items():
        with _noted(wrong, f'peers."{role}"'):
            if role not in names:
                raise ConfigError(f"there is no such role in {program.name}: there are {', '.join(names)}")
            found = certificates.read(peer.certificate)
            if not found.is_of(peer.fingerprint):
                raise ConfigError(f"its certificate has another fingerprint than {peer.fingerprint!r}")
            _warn(found.check_time(now))
            peers[names.index(role)] = Peer(found, peer.address)
    member = Member(
        names.index(config.role), config.parties, names, config.session, own, config.certificate, config.key, peers,
        _public(config, program),
    )  # fmt: skip
    if not wrong:
        member.check()
    return member


def _warn(warning: str) -> None:
    if warning:
        say(f"warning: {warning}")


def _public(config: Config, program: Program[Any]) -> dict[str, Any]:
    """What all roles must have alike, by names that the file has where it has them."""
    flat = dict(_flat(program.public()))
    mine = {"program": program.name, "output.checkpoint_every": config.every, "release": version("masked-bandits")}
    return {**mine, **flat}


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value if isinstance(value, (str, int, float, type(None))) else str(value)


def _check_store(config: Config, program: Program[Any], rehearsed: Rehearsed, *, resume: bool) -> None:
    """resume: how many steps are left is known when all have met."""
    assert config.store is not None
    party, (words, cure) = party_names(config.parties).index(config.role), program.purpose
    steps = 1 if resume else program.draws()
    check_store(config.store, party, config.material, rehearsed.plan, steps, run=words, cure=cure)


def _check_folder(folder: Path, *, resume: bool) -> None:
    """What an earlier run left there is not written over, and gone on with only where somebody says so."""
    keep = folder / _CHECKPOINTS
    if (folder / "result.json").exists():
        raise ConfigError(f"{folder} holds the result of a run that reached its end: name another folder")
    if not resume and any(path.name != HOME_KEY for path in keep.glob("**/*") if path.is_file()):
        raise ConfigError(f"{folder} holds what an earlier run left: go on with --resume, or name another folder")


def _task(config: Config, keep: Path) -> Task:
    return Task(("", "", None), {}, config.session, 0, config.every, keep, config.round, draws=True)

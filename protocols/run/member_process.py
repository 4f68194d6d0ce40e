"""One role of a session between machines, by its file: `masked party --config FILE`.  Knows configs, files and TLS.

What a role is, and what it does, is an `Apart`'s; this page finds what it needs on its own machine: certificates, data,
material, a folder for what it keeps.  No role is handed anything by another, but secrets that some have in common.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from bandits.csv_table import TableError, read_rows
from mpc.errors import ConfigError, MaskedError
from mpc.net import certificates
from mpc.net.member import Member, Met, Peer
from mpc.net.pages import serving
from mpc.net.remaking import meet_lasting
from mpc.net.tls import listen_on, meet_some

from .alignment import NO_ROWS, Rows, check_distinct
from .apart import SECRET_BYTES, Apart, Asked, Seat
from .call_desk import Call, Calls, found
from .config import DEALER, ON_SHARES, Config
from .exits import say
from .folder import reserved
from .going_on import Seeds
from .on_shares import CHECKPOINTS, OnShares
from .options import System, add_problem, check_parties, natural
from .parser import Parser
from .program import Brings, Fresh, fingerprint
from .status import Status
from .tagged_file import HOME_KEY

_SHOWN = 200  # letters of a list of public values; of a longer one its fingerprint is compared


@dataclass(frozen=True)
class Prepared:
    """A role that can start."""

    config: Config
    apart: Apart
    member: Member
    own: Any = field(repr=False)
    fresh: Seeds = field(repr=False)
    tells: Call | None = None
    hears: Call | None = None
    resume: bool = False
    rows: Rows = field(default=NO_ROWS, repr=False)
    say: Callable[[str], None] = say


def prepared(
    config: Config, system: System, fresh: Fresh | None = None, *, resume: bool = False,
    say: Callable[[str], None] = say, links: bool = False,
) -> Prepared:  # fmt: skip
    """All that can be wrong on this machine is found before anybody is called, and said at once.

    fresh: draws this role's own coins.  resume: it goes on with what it kept, its coins among it.  say: told what
    whoever watches should know.  links: nothing is played, so data, material and folders may still be missing.
    """
    seeds = Seeds(config.folder / CHECKPOINTS, fresh or _drawn, resume=resume)
    wrong: list[str] = []
    noted = partial(_noted, wrong)
    apart, own, member, rows = None, None, None, NO_ROWS
    with noted("options"):
        apart = apart_of(system, config)
        if config.role not in apart.names:
            raise ConfigError(f"there is no role {config.role!r} in {apart.name}: there are {', '.join(apart.names)}")
    if apart is not None and config.role in apart.names:
        with noted(""):
            member = _member(config, apart, wrong, say)
    if apart is not None and config.role in apart.names and not links:
        with noted("data"):
            own, rows = _own(config, apart, seeds)
        with noted("material.store"):
            apart.check(config, resume=resume)
    calls: dict[str, Call] = {}
    for name, where in (("tell", config.tell), ("hear", config.hear)):
        with noted("world"):
            calls |= {name: found(where, config.home)} if where else {}
    if not links:
        with noted("output.folder"):
            _check_folder(config.folder, resume=resume)
    if wrong or apart is None or member is None:
        raise ConfigError(f"{config.path} does not fit:" + "".join(f"\n  {line}" for line in wrong))
    return Prepared(config, apart, member, own, seeds, calls.get("tell"), calls.get("hear"), resume, rows, say)


def _drawn(_: str) -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def play(
    given: Prepared, *, heard: int | None = None, told: IO[str] | None = None,
    asked: Asked = lambda: nullcontext(lambda: False),
) -> None:  # fmt: skip
    """Meet the others, play the role, print and write what came of it; whoever watches sees how it stands.

    heard, told: in place of stdin and stdout, of a role that meets the world.  asked: entered while a computing party
    plays; whether it was asked to stop.  `Stopped` where all were.
    """
    config, apart = given.config, given.apart
    status = Status(config.role, config.session, apart.name, apart.decisions)

    def world(record: Path | None) -> Calls:
        lines, who = (sys.stdin.fileno() if heard is None else heard, told or sys.stdout), config.role
        watched = isinstance(apart, OnShares)
        return Calls(
            *lines, timeout=config.round, tells=given.tells, hears=given.hears, record=record, who=who, watched=watched
        )

    config.folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as around:
        around.enter_context(reserved(config.folder / CHECKPOINTS))
        if config.watch is not None:
            host, port = around.enter_context(serving(config.watch, status.pages()))
            given.say(f"http://{host}:{port}/metrics and /healthz say how this role stands")
        meets = partial(gathered, given)
        seat = Seat(
            config,
            given.member,
            given.own,
            given.fresh,
            meets,
            world,
            given.say,
            given.resume,
            asked,
            given.rows,
            status,
        )
        with status.until_the_end():
            apart.play(seat)


def gathered(given: Prepared, seconds: float) -> Met:
    """Connections to all that this role has links with, in at most so many seconds."""
    config, say = given.config, given.say
    links = meet_lasting(
        given.member, _listener(given), grace=config.link, timeout=config.round, starting=seconds, log=say
    )
    say("all are there")
    return links


def gathered_in_time(given: Prepared, seconds: float) -> tuple[Met, Mapping[int, str]]:
    """Connections to those who are there by then, and why each other one is not."""
    return meet_some(given.member, _listener(given), seconds, given.say)


def _listener(given: Prepared) -> Any:
    config = given.config
    if config.listen is None:
        return None
    listener = listen_on(*config.listen)
    place = f"{config.listen[0]}:{listener.getsockname()[1]}"
    given.say(f"{config.role} of session {given.member.session!r} listens at {place}")
    return listener


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


def apart_of(system: System, config: Config) -> Apart:
    """The run as every role knows it, from the options that a file has; every mistake at once."""
    given = options_of(system, config.mode, config.parties, config.options, config.home)
    return played_apart(system, given, config.mode, config.dealt)


def played_apart(system: System, given: Namespace, mode: str, dealt: str) -> Apart:
    """The run with these options; with a role more where it is dealt for meanwhile."""
    apart = system.apart(given)
    if dealt != DEALER:
        return apart
    if not isinstance(apart, OnShares) or not apart.rehearsed.plan.items:
        raise ConfigError(f"{apart.name} in mode {mode!r} draws nothing: leave out material.from")
    return OnShares(apart.program, dealer=True)


def options_of(
    system: System, mode: str, parties: int, given: Mapping[str, Any], home: Path = Path()
) -> Namespace:  # fmt: skip
    """The program's options; paths are seen from `home`."""
    if mode == ON_SHARES:
        check_parties(parties)
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_problem(system, parser)
    system.add_apart(parser)
    parser.add_argument("--seed", type=natural, default=1)
    flags = {action.dest: action.nargs == 0 for action in parser._actions if action.dest != "parties"}
    words, wrong = [f"--parties={parties}"], list[str]()
    for name, value in given.items():
        word = f"--{name.replace('_', '-')}"
        if name not in flags:
            wrong.append(f"{name!r} is unknown: there are {', '.join(sorted(flags))}")
        elif flags[name] != isinstance(value, bool) or not isinstance(value, (str, int, float)):
            wrong.append(f"{name} is {'true or false' if flags[name] else 'a number or a text'}, not {value!r}")
        elif value is not False:
            try:
                parser.parse_args([word := word if flags[name] else f"{word}={value}"])
                words.append(word)
            except ConfigError as error:
                wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    options = parser.parse_args(words, Namespace(mode=mode, resume=False))
    for name, value in vars(options).items():
        if isinstance(value, Path):
            setattr(options, name, home / value)
    system.check(options)
    return options


def _own(config: Config, apart: Apart, fresh: Fresh) -> tuple[Any, Rows]:
    """What this role alone has, and the ids of its rows."""
    wanted = apart.brings(config.role)
    if not wanted.columns + wanted.more:
        if config.data is not None:
            raise ConfigError(f"{config.role} brings no data of its own: leave out data.file")
        return apart.brought(config.role, None, fresh), NO_ROWS
    if config.data is None:
        if wanted.columns:
            raise ConfigError(f"{config.role} brings {_wanted(wanted)}: name its file in data.file")
        return apart.brought(config.role, None, fresh), NO_ROWS
    rows, ids = read_rows(config.data, config.columns, by=config.id)
    if rows.shape[1] not in (wanted.columns, wanted.columns + wanted.more) or not rows.shape[1]:
        raise ConfigError(f"{config.data} gives {rows.shape[1]} columns, and {config.role} brings {_wanted(wanted)}")
    if len(rows) < wanted.rows:
        raise ConfigError(f"{len(rows):,} rows, and this run takes {wanted.rows:,}: one for each {wanted.row}")
    if ids is not None:
        check_distinct(ids := ids[: wanted.rows])
    return apart.brought(config.role, rows[: wanted.rows], fresh), Rows(True, ids)


def _wanted(wanted: Brings) -> str:
    """In words."""
    ways = [count for count in (wanted.columns, wanted.columns + wanted.more) if count]
    return f"{' or '.join(f'{count:,}' for count in dict.fromkeys(ways))} numbers for each {wanted.row}"


def _member(config: Config, apart: Apart, wrong: list[str], say: Callable[[str], None]) -> Member:
    names = apart.names
    now, peers = dt.datetime.now(dt.timezone.utc), dict[int, Peer]()
    own = certificates.read(config.certificate)
    with _noted(wrong, "own"):
        certificates.check_key(config.key, own)
        _warn(say, own.check_time(now))
    for role, peer in config.peers.items():
        with _noted(wrong, f'peers."{role}"'):
            if role not in names:
                raise ConfigError(f"there is no such role in {apart.name}: there are {', '.join(names)}")
            found = certificates.read(peer.certificate)
            if not found.is_of(peer.fingerprint):
                raise ConfigError(f"its certificate has another fingerprint than {peer.fingerprint!r}")
            _warn(say, found.check_time(now))
            peers[names.index(role)] = Peer(found, peer.address)
    member = Member(
        names.index(config.role), apart.parties, names, config.session, own, config.certificate, config.key, peers,
        _public(config, apart), apart.beside,
    )  # fmt: skip
    wrong += _unlinked(config, member)
    if not wrong:
        member.check()
    return member


def _unlinked(config: Config, member: Member) -> list[str]:
    """What the file lacks for the links of this role."""
    role, names = config.role, member.names
    peers = {names.index(other): peer for other, peer in config.peers.items() if other in names}
    wrong = [f'[peers."{names[node]}"] is missing' for node in (*member.called, *member.awaited) if node not in peers]
    wrong += [
        f'peers."{names[node]}".address is missing: {role} calls it'
        for node in member.called
        if node in peers and peers[node].address is None
    ]
    if member.awaited and config.listen is None:
        wrong.append(f'own.listen is missing: {role} is called, so it listens, for example at "0.0.0.0:7700"')
    if config.listen is not None and not member.awaited:
        wrong.append(f"own.listen is of roles that are called, and {role} calls only: leave it out")
    return wrong


def _warn(say: Callable[[str], None], warning: str) -> None:
    if warning:
        say(f"warning: {warning}")


def _public(config: Config, apart: Apart) -> dict[str, Any]:
    """What all roles must have alike, by names that the file has where it has them."""
    mine = {
        "program": apart.name, "mode": config.mode, "output.checkpoint_every": config.every,
        "material.from": config.dealt,
        "release": version("masked-bandits"),
    }  # fmt: skip
    return {**mine, **dict(_flat(apart.public()))}


def _flat(given: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, (str, int, float, type(None))):
            yield f"{before}{name}", value
        else:
            text = str(value)
            yield (
                f"{before}{name}",
                text if len(text) <= _SHOWN else fingerprint(np.frombuffer(text.encode(), np.uint8)),
            )


def _check_folder(folder: Path, *, resume: bool) -> None:
    """What an earlier run left there is not written over, and gone on with only where somebody says so."""
    if (folder / "result.json").exists():
        raise ConfigError(f"{folder} holds the result of a run that reached its end: name another folder")
    begun = any(path.name not in (HOME_KEY, "lock") for path in (folder / CHECKPOINTS).glob("**/*") if path.is_file())
    if begun and not resume:
        raise ConfigError(f"{folder} holds what an earlier run left: go on with --resume, or name another folder")

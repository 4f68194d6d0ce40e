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
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from bandits.csv_table import TableError, read_rows
from mpc.errors import ConfigError, MaskedError
from mpc.files import make_place
from mpc.net import certificates
from mpc.net.certificates import Certificate
from mpc.net.member import Member, Met, Peer
from mpc.net.pages import check_exposed, check_own, serving, url_of
from mpc.net.remaking import meet_lasting
from mpc.net.tls import Listener, listen_on, meet_some
from offline import Store

from .alignment import NO_ROWS, Rows, check_distinct
from .apart import SECRET_BYTES, Apart, Asked, Seat, links_of
from .call_desk import Call, Calls, found
from .config import ADDRESS_MISSING, DEALER, LISTEN_MISSING, ON_SHARES, Config, Mistake, misfit
from .exits import say
from .folder import CHECKPOINTS, reserved
from .going_on import Seeds
from .on_shares import OnShares
from .options import System, add_problem, check_parties, natural
from .parser import Parser
from .program import Brings, Fresh, fingerprint
from .release import release
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
    config: Config, system: System | None, fresh: Fresh | None = None, *, resume: bool = False,
    say: Callable[[str], None] = say, links: bool = False,
) -> Prepared:  # fmt: skip
    """All that can be wrong on this machine is found before anybody is called, and said at once.

    config: with the mistakes that were found when it was read.  system: None where these leave it open; what can be
    judged without it is.  fresh: draws this role's own coins.  resume: it goes on with what it kept, its coins among
    it.  say: told what whoever watches should know.  links: nothing is played, so data, material and folders may still
    be missing, and certificates be out of their time, which is a finding there.
    """
    seeds = Seeds(config.folder / CHECKPOINTS, fresh or _drawn, resume=resume)
    wrong = list(config.wrong)
    noted = partial(_noted, wrong)
    apart, own, rows = None, None, NO_ROWS
    if system is not None and config.knows("mode"):
        if config.mode not in system.modes:
            wrong.append(no_mode(config.program, config.mode, system))
        elif config.knows("parties", "options"):
            with noted("options"):
                apart = apart_of(system, config)
    if apart is not None and config.role not in apart.names:
        if config.knows("role"):
            wrong += [f"there is no role {config.role!r} in {apart.name}: there are {', '.join(apart.names)}"]
        apart = None
    member = _member(config, apart, wrong, say, late=links)
    if not links:
        with noted("data"):
            own, rows = _own(config, apart, seeds)
    if config.knows("material") and not links:
        with noted("material.store"):
            if apart is not None:
                apart.check(config, resume=resume)
            elif config.store is not None and config.knows("material.store"):
                Store(config.store).close()
    if config.watch is not None:
        with noted("watch.listen"):
            check_own(config.watch[0])
    if config.serve is not None:
        wrong += _of_service(config)
    calls: dict[str, Call] = {}
    for name, where in (("tell", config.tell), ("hear", config.hear)):
        if config.knows(f"world.{name}"):
            with noted("world"):
                calls |= {name: found(where, config.home)} if where else {}
    if not links and config.knows("output.folder"):
        with noted("output.folder"):
            _check_folder(config.folder, resume=resume)
    if wrong or apart is None or member is None:
        raise misfit(config.path, list(dict.fromkeys(wrong)))
    return Prepared(config, apart, member, own, seeds, calls.get("tell"), calls.get("hear"), resume, rows, say)


def _of_service(config: Config) -> list[str]:
    """What is wrong with where, and how, the role's owner's programs ask."""
    wrong = list[str]()
    if config.tokens is None and config.serve is not None:
        with _noted(wrong, "serve.listen"):
            check_exposed(config.serve[0])
    if config.beat >= config.round and config.knows("serve.beat", "timeouts.round"):
        wrong.append(
            f"serve.beat is {config.beat:g} s, and who is silent for timeouts.round, {config.round:g} s, is lost: "
            "choose a shorter beat"
        )
    return wrong


def no_mode(program: str, mode: str, system: System) -> str:
    """In words."""
    return f"{program} has no mode {mode!r}: there is {', '.join(system.modes)}"


def unused(given: Prepared) -> list[str]:
    """What a file says that its role does not look at; nothing is wrong with that."""
    config, apart = given.config, given.apart
    node = apart.names.index(config.role)
    served = isinstance(apart, OnShares) and apart.program.served
    client = node >= apart.parties and config.role != DEALER
    ways = (
        ("material.store", config.store is not None and node >= apart.parties, "only computing parties draw material"),
        ("data.id", bool(config.id) and config.data is None, "there is no data.file"),
        ("data.columns", bool(config.columns) and config.data is None, "there is no data.file"),
        ("[serve]", config.serve is not None and (not served or config.role == DEALER), "it is not asked over HTTP"),
        ("[world]", bool(config.tell or config.hear) and not client, "only clients meet the world"),
    )
    return [f"{key} is not used by {config.role}: {why}" for key, there, why in ways if there]


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
            *lines,
            timeout=config.round,
            tells=given.tells,
            hears=given.hears,
            record=record,
            who=who,
            watched=watched,
            resumed=given.resume,
        )

    make_place(config.folder)
    with contextlib.ExitStack() as around:
        around.enter_context(reserved(config.folder / CHECKPOINTS, "output.folder"))
        if config.watch is not None:
            where = around.enter_context(serving(config.watch, status.pages()))
            given.say(f"{url_of(*where)}/metrics and /healthz say how this role stands")
        listener = around.enter_context(_listener(given) or nullcontext())
        meets = partial(gathered, given, listener)
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


def gathered(given: Prepared, listener: Listener | None, seconds: float) -> Met:
    """Connections to all that this role has links with, in at most so many seconds.

    listener: stays the role's, from the first meeting to its end; whoever lets go of an address may find it taken when
    all meet again.
    """
    config, say, own = given.config, given.say, None if listener is None else listener.dup()
    links = meet_lasting(given.member, own, grace=config.link, timeout=config.round, starting=seconds, log=say)
    say("all are there")
    return links


def gathered_in_time(given: Prepared, seconds: float) -> tuple[Met, Mapping[int, str]]:
    """Connections to those who are there by then, and why each other one is not."""
    return meet_some(given.member, _listener(given), seconds, given.say)


def _listener(given: Prepared) -> Listener | None:
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
        start = f"{where}: " if where else ""
        lines = zip(str(error).splitlines(), error.told.splitlines(), strict=True)
        wrong += [Mistake.of(f"{start}{line}", f"{start}{told}") for line, told in lines]


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
    if system.seeded_apart:
        parser.add_argument("--seed", type=natural)
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
    options = parser.parse_args(words, Namespace(mode=mode, resume=False, seed=1))
    for name, value in vars(options).items():
        if isinstance(value, Path):
            setattr(options, name, home / value)
    system.check(options)
    return options


def _own(config: Config, apart: Apart | None, fresh: Fresh) -> tuple[Any, Rows]:
    """What this role alone has, and the ids of its rows.  Without an `apart` its file is read all the same."""
    if not config.knows("data.file", "data.columns", "data.id"):
        return None, NO_ROWS
    read = None if config.data is None else read_rows(config.data, config.columns, by=config.id)
    if apart is None:
        return None, NO_ROWS
    wanted = apart.brings(config.role)
    if read is None:
        if wanted.columns:
            raise ConfigError(f"{config.role} brings {_wanted(wanted)}: name its file in data.file")
        return apart.brought(config.role, None, fresh), NO_ROWS
    if not wanted.columns + wanted.more:
        raise ConfigError(f"{config.role} brings no data of its own: leave out data.file")
    rows, ids = read
    if rows.shape[1] not in (wanted.columns, wanted.columns + wanted.more) or not rows.shape[1]:
        raise ConfigError(f"{config.data} gives {rows.shape[1]} columns, and {config.role} brings {_wanted(wanted)}")
    if len(rows) != wanted.rows:
        fewer = "; for a shorter run, cut the file to its first ones" if len(rows) > wanted.rows else ""
        raise ConfigError(f"{len(rows):,} rows, and this run takes {wanted.rows:,}: one for each {wanted.row}{fewer}")
    if ids is not None:
        check_distinct(ids)
    return apart.brought(config.role, rows, fresh), Rows(True, ids)


def _wanted(wanted: Brings) -> str:
    """In words."""
    ways = [count for count in (wanted.columns, wanted.columns + wanted.more) if count]
    return f"{' or '.join(f'{count:,}' for count in dict.fromkeys(ways))} numbers for each {wanted.row}"


def _member(
    config: Config, apart: Apart | None, wrong: list[str], say: Callable[[str], None], *, late: bool
) -> Member | None:  # fmt: skip
    """Who this role is, and who the others are; what is wrong with that is noted.  None where that leaves it open.

    late: certificates may be out of their time.
    """
    now, peers, own = dt.datetime.now(dt.timezone.utc), dict[str, Peer](), None
    if config.knows("own.certificate"):
        with _noted(wrong, "own"):
            own = certificates.read(config.certificate, cure="make one with 'masked keys init'")
            _check_time(own, now, say, late=late)
    if own is not None and config.knows("own.key"):
        with _noted(wrong, "own"):
            certificates.check_key(config.key, own)
    for role, peer in config.peers.items():
        with _noted(wrong, f'peers."{role}"'):
            if apart is not None and role not in apart.names:
                raise ConfigError(f"there is no such role in {apart.name}: there are {', '.join(apart.names)}")
            if config.knows(f"peers.{role}.certificate", f"peers.{role}.fingerprint"):
                found = certificates.read(peer.certificate)
                if not found.is_of(peer.fingerprint):
                    raise ConfigError(f"its certificate has another fingerprint than {peer.fingerprint!r}")
                _check_time(found, now, say, late=late)
                peers[role] = Peer(found, peer.address)
    if apart is None:
        return None
    names = apart.names
    node = names.index(config.role)
    lacks = list(_unlinked(config, apart, node))
    wrong += lacks
    known = all(config.knows(f"peers.{role}.address") for role in config.peers)
    if own is None or lacks or len(peers) < len(config.peers) or not known:
        return None
    member = Member(
        node, apart.parties, names, config.session, own, config.certificate, config.key,
        {names.index(role): peer for role, peer in peers.items()}, _public(config, apart), apart.beside,
    )  # fmt: skip
    with _noted(wrong, ""):
        member.check()
    return member


def _unlinked(config: Config, apart: Apart, node: int) -> Iterator[str]:
    """What the file lacks for the links of this role."""
    role, names = config.role, apart.names
    called, awaited = links_of(node, apart)
    if config.knows("peers"):
        yield from (
            f'[peers."{names[other]}"] is missing' for other in (*called, *awaited) if names[other] not in config.peers
        )
    for other in (names[each] for each in called):
        if other in config.peers and config.unplaced(other):
            yield ADDRESS_MISSING.format(other, role)
    if awaited and config.listen is None and config.knows("own.listen"):
        yield LISTEN_MISSING.format(role)
    if config.listen is not None and not awaited:
        yield f"own.listen is of roles that are called, and {role} calls only: leave it out"


def _check_time(certificate: Certificate, now: dt.datetime, say: Callable[[str], None], *, late: bool) -> None:
    try:
        warning = certificate.check_time(now)
    except ConfigError:
        if late:
            return
        raise
    if warning:
        say(f"warning: {warning}")


def _public(config: Config, apart: Apart) -> dict[str, Any]:
    """What all roles must have alike, by names that the file has where it has them."""
    mine = {
        "program": apart.name, "mode": config.mode, "output.checkpoint_every": config.every,
        "material.from": config.dealt,
        "timeouts.round": config.round,
        "release": release(),
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
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        raise ConfigError(f"{there} is no folder: name another one")
    if (folder / "result.json").exists():
        raise ConfigError(f"{folder} holds the result of a run that reached its end: name another folder")
    begun = any(path.name not in (HOME_KEY, "lock") for path in (folder / CHECKPOINTS).glob("**/*") if path.is_file())
    if begun and not resume:
        raise ConfigError(f"{folder} holds what an earlier run left: go on with --resume, or name another folder")

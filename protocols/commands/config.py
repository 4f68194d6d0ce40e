"""`masked config new|check`: the file of one role of a session between machines."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import write_new
from mpc.net import certificates
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE

from ..run.apart import Apart, links_of
from ..run.config import DEALER, ON_SHARES, PLACE, STORE, Config, place_of, read, tomllib
from ..run.exits import say
from ..run.member_process import Prepared, no_mode, options_of, played_apart, prepared, unused
from ..run.on_shares import OnShares
from ..run.options import System
from .keys import peer_file
from .programs import names, systems

_PORT = 7700
_SERVE = "127.0.0.1:7780"


def register(commands: Any, words: Sequence[str]) -> None:
    """Add `config`; words: what follows it."""
    config = commands.add_parser("config", help="the file of a role between machines")
    actions = config.add_subparsers(dest="action", metavar="ACTION", required=True)

    new = actions.add_parser("new", help="write a file for one role, to be filled in")
    new.add_argument("role", help="party 0, party 1, ..., or a client of the program, such as puller")
    new.add_argument("--program", default="ppcb", help="what is played (ppcb)")
    new.add_argument("--parties", type=int, default=3, metavar="N", help="computing parties (3)")
    new.add_argument("--session", required=True, help="a name for this run: the same at all roles")
    new.add_argument("--peers", type=Path, default=Path("peers"), help="the folder of 'masked keys trust' (peers)")
    new.add_argument("--mode", default=ON_SHARES, help="mpc: on shares; or as published (mpc)")
    new.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the program")
    new.add_argument("--listen", default=f"0.0.0.0:{_PORT}", metavar="HOST:PORT", help=f"(0.0.0.0:{_PORT})")
    new.add_argument(
        "--at", action="append", default=[], metavar="ROLE=HOST:PORT", help="where a role listens that this one calls"
    )
    new.add_argument(
        "--material", choices=[STORE, DEALER], default=STORE, help="dealt before, or by a role more (store)"
    )
    new.add_argument("--data", default="<features.csv>", metavar="FILE", help="this role's own data")
    new.add_argument("--by", default="", metavar="COLUMN", help="of that data, the ids: rows must be the same at all")
    new.add_argument("-o", "--out", type=Path, required=True, help="the file")
    new.set_defaults(run=_new)

    check = actions.add_parser("check", help="say all that is wrong with a file, and with what it names")
    check.add_argument("config", type=Path, help="the file")
    check.set_defaults(run=_check)


def system_of(program: str) -> System:
    """The program of this name."""
    if program not in names():
        raise ConfigError(f"program is one of {', '.join(names())}, not {program!r}")
    return systems([program])[0]


def fitting(
    config: Config, *, resume: bool = False, say: Callable[[str], None] = say, links: bool = False
) -> Prepared:  # fmt: skip
    """A role whose file was read: all that is wrong with that, and with what it names, is said at once."""
    system, wrong = None, config.wrong
    if config.knows("program"):
        try:
            system = system_of(config.program)
        except ConfigError as error:
            wrong = (*wrong, str(error))
    return prepared(replace(config, wrong=wrong), system, resume=resume, say=say, links=links)


def _check(options: Namespace) -> None:
    config = read(options.config)
    given = fitting(config)
    member = given.member
    calls = ", ".join(member.names[other] for other in member.called) or "nobody"
    called = ", ".join(member.names[other] for other in member.awaited) or "nobody"
    print(f"{options.config} fits: {config.role} of session {config.session!r}, {given.apart.purpose}")
    print(f"it calls {calls}, and is called by {called}; its own fingerprint is {member.certificate.spoken}")
    for line in unused(given):
        print(f"note: {line}")


def _new(options: Namespace) -> None:
    system, given = system_of(options.program), dict(map(_named, options.set))
    if options.mode not in system.modes:
        raise ConfigError(no_mode(options.program, options.mode, system))
    home = options.out.absolute().parent
    made = options_of(system, options.mode, options.parties, given, home)
    apart = played_apart(system, made, options.mode, options.material)
    options.role = _role(options.role, apart.names)
    if options.role not in apart.names:
        raise ConfigError(
            f"there is no role {options.role!r} in {options.program} with these options: there are "
            f"{', '.join(apart.names)}"
        )
    text = "\n".join(_lines(options, apart, given, home)) + "\n"
    if not home.is_dir():
        raise ConfigError(f"there is no folder {home}: make it first")
    if options.out.exists():
        raise ConfigError(f"{options.out} exists: it is not written over; choose another name")
    write_new(options.out, text.encode(), 0o644)
    left = f"fill in what stands in <...>, and then 'masked config check {options.out}'"
    print(f"{options.out}: {left if '<' in text else f'check it with masked config check {options.out}'}")


def _named(word: str) -> tuple[str, Any]:
    """An option of the program, as TOML or as a word."""
    name, sign, value = word.partition("=")
    if not name or not sign:
        raise ConfigError(f"--set takes NAME=VALUE, an option of the program, not {word!r}")
    try:
        return name.replace("-", "_"), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return name.replace("-", "_"), value


def _lines(options: Namespace, apart: Apart, given: dict[str, Any], home: Path) -> list[str]:
    role, names = options.role, apart.names
    node = names.index(role)
    calls, called = links_of(node, apart)
    brings, computes = apart.brings(role), node < apart.parties
    places = dict(_placed(word, names) for word in options.at)
    lines = [
        f"# {role} of {options.program}.  Paths are seen from this file's folder.",
        f'role = "{role}"',
        f'session = "{_plain(options.session)}"  # from here to [options], the same at all roles but for role',
        f'program = "{options.program}"',
        f"parties = {options.parties}" if apart.parties else f'mode = "{options.mode}"',
        "",
        f"[options]  # of the program, as 'masked run {options.program} --help' has them; all roles must have the same",
        *(f"{name} = {_quoted(value)}" for name, value in given.items()),
        "",
        "[own]",
        f'key = "keys/{KEY_FILE}"',
        f'certificate = "keys/{CERTIFICATE_FILE}"',
    ]
    lines += [f"listen = {_quoted(_place('--listen', options.listen))}"] if called else []
    if brings.columns:
        lines += ["", f"[data]  # a row for each {brings.row}: a .csv, whose columns may be named, or an .npy"]
        lines += [f"file = {_quoted(options.data)}", *([f"id = {_quoted(options.by)}"] if options.by else [])]
    if options.material == DEALER:
        lines += ["", "[material]", f'from = "{DEALER}"  # a role of this session; the same at all roles']
    elif computes:
        lines += ["", "[material]  # what was dealt for this party", f'store = "material/{role.replace(" ", "-")}"']
        lines += [f'session = "{_plain(options.session)}"  # the name it was dealt for']
    lines += ["", "[output]", f'folder = "runs/{_plain(options.session)}"']
    if isinstance(apart, OnShares) and apart.program.served:
        lines += ["checkpoint_every = 1  # each turn is kept before it is answered"]
        if role != DEALER:
            lines += ["", "[serve]  # for its owner's own programs, on this machine", f'listen = "{_SERVE}"']
            lines += ['tokens = "tokens"  # made by masked serve --make-tokens']
    lines += ["", "[timeouts]  # seconds"]
    lines += [
        "start = 600  # until all are there",
        "round = 60  # until one who is silent is lost; the same at all roles",
    ]
    for other in (names[peer] for peer in sorted({*calls, *called})):
        lines += ["", f'[peers."{other}"]', *_peer(options, other, home)]
        lines += [f"address = {_quoted(places.get(other, f'<host>:{_PORT}'))}"] if names.index(other) in calls else []
    return lines


def _role(said: str, names: Sequence[str]) -> str:
    """As it is called: party-0 is party 0 as well, which needs no quotes."""
    return next((name for name in names if name.replace(" ", "-") == said), said)


def _placed(word: str, names: Sequence[str]) -> tuple[str, str]:
    said, sign, place = word.partition("=")
    role = _role(said, names)
    if not sign or role not in names:
        raise ConfigError(f"--at takes ROLE=HOST:PORT, a role of {', '.join(names)}, not {word!r}")
    return role, _place(f"--at {said}", place)


def _place(of: str, text: str) -> str:
    """HOST:PORT, as it was given."""
    if place_of(text) is None:
        raise ConfigError(f"{of} takes {PLACE}, not {text!r}")
    return text


def _quoted(value: Any) -> str:
    """As TOML has it."""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ConfigError(f"{value!r} is no text of Unicode: name it otherwise")
    return text


def _peer(options: Namespace, other: str, home: Path) -> list[str]:
    file = peer_file(options.peers, other)
    spoken = certificates.read(file).spoken if file.exists() else "<what its owner reads out>"
    place = file.absolute()
    shown = place.relative_to(home) if place.is_relative_to(home) else place
    return [f"certificate = {_quoted(str(shown))}", f'fingerprint = "{spoken}"']


def _plain(text: str) -> str:
    if not text or not all(letter.isalnum() or letter in "-_." for letter in text):
        raise ConfigError(f"a session is called by letters, digits, -, _ and ., not {text!r}")
    return text

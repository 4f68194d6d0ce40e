"""`masked config new|check`: the file of one role of a session between machines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import write_new
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, read

from ..run.config import load, party_names
from ..run.member_process import prepared, program_of
from ..run.options import System, check_parties
from .keys import peer_file
from .programs import names, systems

_PORT = 7700


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


def _check(options: Namespace) -> None:
    config = load(options.config)
    given = prepared(config, system_of(config.program))
    member = given.member
    calls = ", ".join(member.names[other] for other in member.called) or "nobody"
    called = ", ".join(member.names[other] for other in member.awaited) or "nobody"
    print(f"{options.config} fits: {config.role} of session {config.session!r}, {given.program.purpose[0]}")
    print(f"it calls {calls}, and is called by {called}; its own fingerprint is {member.certificate.spoken}")


def _new(options: Namespace) -> None:
    check_parties(options.parties)
    system = system_of(options.program)
    program = program_of(system, options.parties, {})
    clients, parties = [role.name for role in program.roles], party_names(options.parties)
    if options.role not in (*parties, *clients):
        raise ConfigError(
            f"there is no role {options.role!r} in {options.program} with {options.parties} parties: there are "
            f"{', '.join((*parties, *clients))}"
        )
    home = options.out.absolute().parent
    text = "\n".join(_lines(options, options.role in parties, parties, clients, home)) + "\n"
    if not home.is_dir():
        raise ConfigError(f"there is no folder {home}: make it first")
    if options.out.exists():
        raise ConfigError(f"{options.out} exists: it is not written over; choose another name")
    write_new(options.out, text.encode(), 0o644)
    print(f"{options.out}: fill in what stands in <...>, and then 'masked config check {options.out}'")


def _lines(options: Namespace, computes: bool, parties: list[str], clients: list[str], home: Path) -> list[str]:
    role = options.role
    lines = [
        f"# {role} of {options.program}.  Paths are seen from this file's folder.",
        f'role = "{role}"',
        f'session = "{_plain(options.session)}"  # from here to [options], the same at all roles but for role',
        f'program = "{options.program}"',
        f"parties = {options.parties}",
        "",
        "[options]  # of the program, as 'masked run' has them; all roles must have the same",
        "steps = 300",
        "",
        "[own]",
        f'key = "keys/{KEY_FILE}"',
        f'certificate = "keys/{CERTIFICATE_FILE}"',
    ]
    lines += [f'listen = "0.0.0.0:{_PORT}"'] if computes else []
    lines += (
        ["", "[data]  # a .csv, whose columns may be named, or an .npy", 'file = "<features.csv>"'] if computes else []
    )
    if computes:
        lines += ["", "[material]  # what was dealt for this party", f'store = "material/{role.replace(" ", "-")}"']
    lines += ["", "[output]", f'folder = "runs/{_plain(options.session)}"', "", "[timeouts]  # seconds"]
    lines += [
        "start = 600  # until all are there",
        "round = 60  # until one who is silent is lost; the same at all roles",
    ]
    for other in (*parties, *(clients if computes else ())):
        if other != role:
            lines += ["", f'[peers."{other}"]', *_peer(options, other, role, parties, home)]
    return lines


def _peer(options: Namespace, other: str, role: str, parties: list[str], home: Path) -> list[str]:
    file = peer_file(options.peers, other)
    spoken = read(file).spoken if file.exists() else "<what its owner reads out>"
    place = file.absolute()
    shown = place.relative_to(home) if place.is_relative_to(home) else place
    lines = [f'certificate = "{shown}"', f'fingerprint = "{spoken}"']
    calls = other in parties and (role not in parties or parties.index(other) < parties.index(role))
    return [*lines, f'address = "<host>:{_PORT}"'] if calls else lines


def _plain(text: str) -> str:
    if not text or not all(letter.isalnum() or letter in "-_." for letter in text):
        raise ConfigError(f"a session is called by letters, digits, -, _ and ., not {text!r}")
    return text

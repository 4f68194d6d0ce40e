"""`masked keys init|show|trust`: a party's key and certificate, and those of the others."""

from __future__ import annotations

import datetime as dt
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import write_whole
from mpc.net.certificates import CERTIFICATE_FILE, Certificate, check_key, make, read

from ..run.exits import say

_KEYS = Path("keys")


def register(commands: Any, words: Sequence[str]) -> None:
    """Add `keys`; words: what follows it."""
    keys = commands.add_parser("keys", help="a party's own key and certificate, and those of the others")
    actions = keys.add_subparsers(dest="action", metavar="ACTION", required=True)

    init = actions.add_parser("init", help="make a key and its certificate, once for each organisation")
    init.add_argument("folder", type=Path, nargs="?", default=_KEYS, help="where both are written (keys)")
    init.add_argument("--name", required=True, help="what your organisation is called: the others see it")
    init.set_defaults(run=_init)

    show = actions.add_parser("show", help="a certificate's fingerprint, to be read over the telephone")
    show.add_argument("certificates", type=Path, nargs="*", default=[], help=f"files ({_KEYS / CERTIFICATE_FILE})")
    show.set_defaults(run=_show)

    trust = actions.add_parser("trust", help="take another's certificate in, once its owner has read its fingerprint")
    trust.add_argument("certificate", type=Path, help="the file that its owner sent")
    trust.add_argument("--fingerprint", required=True, help="what its owner reads out: five groups of four letters")
    trust.add_argument("--as", dest="role", required=True, metavar="ROLE", help="party 0, party 1, puller, ...")
    trust.add_argument("--peers", type=Path, default=Path("peers"), help="the folder of those that are trusted (peers)")
    trust.set_defaults(run=_trust)


def peer_file(folder: Path, role: str) -> Path:
    """Where the certificate of a role lies, once it is trusted."""
    return folder / f"{role.replace(' ', '-')}.pem"


def _init(options: Namespace) -> None:
    made = make(options.folder, options.name, dt.datetime.now(dt.timezone.utc))
    own = options.folder / CERTIFICATE_FILE
    print(f"{_line(made)}\nsend {own} to the others, by any means, and read its fingerprint to each of them:")
    print(f"  {made.spoken}\nthe key beside it stays on this machine")


def _show(options: Namespace) -> None:
    for path in options.certificates or [_KEYS / CERTIFICATE_FILE]:
        found = read(path)
        print(f"{path}: {_line(found)}\n  {found.spoken}\n  sha256 {found.fingerprint}")
        if warning := found.check_time(dt.datetime.now(dt.timezone.utc)):
            say(f"warning: {warning}")
        if (key := path.with_name("key.pem")).exists() and path.name == CERTIFICATE_FILE:
            check_key(key, found)


def _trust(options: Namespace) -> None:
    found = read(options.certificate)
    if not found.is_of(options.fingerprint):
        raise ConfigError(
            f"{options.certificate} has another fingerprint than {options.fingerprint!r}: have its owner read that of "
            "'masked keys show'; if they differ still, the file was changed on its way"
        )
    found.check_time(dt.datetime.now(dt.timezone.utc))
    role = " ".join(options.role.split())
    if not role or not all(letter.isalnum() or letter in " -_" for letter in role):
        raise ConfigError(f"a role is called party 0, party 1, puller or the like, not {options.role!r}")
    path = peer_file(options.peers, role)
    if path.exists() and read(path) != found:
        raise ConfigError(f"{path} is another certificate of {role}: delete it first, if {role} has a new one")
    options.peers.mkdir(parents=True, exist_ok=True)
    write_whole(path, found.pem.encode(), 0o644)
    print(f"{path}: {_line(found)} is {role}")


def _line(found: Certificate) -> str:
    return f"{found.name!r}, valid until {found.end:%Y-%m-%d}"

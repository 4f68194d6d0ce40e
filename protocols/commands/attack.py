"""`masked attack KIND`: attacks on bandits, and what they find.  What all kinds have: runs, seeds, pictures, answers.

Exit code 1 says that an attack found more than is stated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError

from ..run.folder import PICTURES, check_picture
from ..run.options import natural
from .answer import add_json

_KINDS = {
    "helba": "attack_helba",
    "linucb-ds": "attack_linucb",
    "spectralucb-ds": "attack_linucb",
    "membership": "attack_membership",
    "samba": "attack_samba",
}
"""What is attacked, and the module beside this one that adds it with `add_kind`."""


def register(commands: Any, words: Sequence[str]) -> None:
    """Add `attack`; words: what follows it."""
    attack = commands.add_parser("attack", help="attack a bandit with what its participants see")
    group = attack.add_subparsers(dest="kind", metavar="KIND", required=True)
    named = _KINDS.get(words[0]) if words else None
    for module in dict.fromkeys(_KINDS.values()) if named is None else [named]:
        import_module(f".{module}", __package__).register(group)


def add_kind(
    group: Any, name: str, attack: Callable[[argparse.Namespace], None], *, help_: str, examples: str,
    runs: tuple[int, str], seeds: str, mistakes: type[Exception], about: str | None = None, picture: str = "",
) -> argparse.ArgumentParser:  # fmt: skip
    """The parser of an attack, which says what it found; its own options are still to be added.

    runs: how many by default, and of what.  seeds: what --seed is of.  mistakes: errors that are a user's.
    picture: what --plot draws, if anything.
    """
    parser: argparse.ArgumentParser = group.add_parser(
        name, help=help_, description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual, of = runs
    parser.add_argument("--runs", type=int, default=usual, help=f"{of} ({usual})")
    parser.add_argument("--seed", type=natural, default=1, help=f"of {seeds} (1)")
    if picture:
        parser.add_argument("--plot", type=Path, help=f"write {picture} to this file as well: {', '.join(PICTURES)}")
    add_json(parser)

    def run(options: argparse.Namespace) -> None:
        if picture and options.plot is not None:
            check_picture(options.plot)
        try:
            attack(options)
        except mistakes as error:
            raise ConfigError(str(error)) from error

    parser.set_defaults(run=run)
    return parser

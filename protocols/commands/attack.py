"""`masked attack KIND`: attacks on bandits, and what they find.  What all kinds have: options, progress, answer.

Exit code 1 says that an attack found more than is stated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError

from ..run.folder import PICTURES, check_picture
from .answer import Answer, add_json, say
from .operation import natural


@dataclass(frozen=True)
class Kind:
    """An attack by its name on the command line.

    add_options: its own.  answer: attacks, and says what was found.  runs: how many by default, and of what.
    seeds: what --seed is of.  picture: what --plot draws, if anything.  mistakes: errors that are a user's.
    """

    name: str
    help: str
    examples: str
    add_options: Callable[[argparse.ArgumentParser], None]
    answer: Callable[[argparse.Namespace], Answer]
    runs: tuple[int, str]
    seeds: str
    mistakes: tuple[type[Exception], ...] = ()
    about: str | None = None
    picture: str = ""


def register(commands: Any, kinds: Iterable[Kind]) -> None:
    """Add `attack` with its kinds."""
    attack = commands.add_parser("attack", help="attack a bandit with what its participants see")
    group = attack.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind in kinds:
        parser = group.add_parser(
            kind.name, help=kind.help, description=kind.about, epilog=kind.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        kind.add_options(parser)
        usual, of = kind.runs
        parser.add_argument("--runs", type=int, default=usual, help=f"{of} ({usual})")
        parser.add_argument("--seed", type=natural, default=1, help=f"of {kind.seeds} (1)")
        if kind.picture:
            more = f"write {kind.picture} to this file as well: {', '.join(PICTURES)}"
            parser.add_argument("--plot", type=Path, help=more)
        add_json(parser)
        parser.set_defaults(run=partial(_run, kind), plot=None)


def _run(kind: Kind, options: argparse.Namespace) -> None:
    if options.plot is not None:
        check_picture(options.plot)
    try:
        answer = kind.answer(options)
    except kind.mistakes as error:
        raise ConfigError(str(error)) from error
    say(answer, as_json=options.json, plot=options.plot)

"""`masked party --config FILE`: one role of a session between machines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..run.config import load
from ..run.log import Log
from ..run.member_process import play, prepared
from .config import system_of

_ABOUT = """One role of a session between machines: a computing party or a client, as its file says.

It waits for the others, whoever is started first, and says who is missing.  A client that learns something writes it to
stdout, and one that is told what came of it reads that from stdin, a line of JSON for each decision.
"""


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `party`."""
    party = commands.add_parser("party", help="play one role on this machine, the others on theirs", description=_ABOUT)
    party.add_argument("--config", type=Path, required=True, help="this role's file, from 'masked config new'")
    party.set_defaults(run=_play)


def _play(options: Namespace) -> None:
    config = load(options.config)
    log = Log(config.role, config.session, config.log)
    with log.ending():
        play(prepared(config, system_of(config.program), say=log))

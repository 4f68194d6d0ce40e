"""`masked party --config FILE`: one role of a session between machines."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError, PeerLost

from ..run.config import DEALER, read
from ..run.log import Log
from ..run.member_process import Prepared, play
from ..run.on_shares import OnShares
from ..run.stopping import Interrupt, Stopped
from .config import fitting

_LOOK = 0.2  # seconds between two looks whether it was asked to stop
_ABOUT = """One role of a session between machines: a computing party or a client, as its file says.

It waits for the others, whoever is started first, and says who is missing.  A client that learns something writes it to
stdout, and one that is told what came of it reads that from stdin, a line of JSON for each decision.
"""


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `party`."""
    party = commands.add_parser("party", help="play one role on this machine, the others on theirs", description=_ABOUT)
    party.add_argument("--config", type=Path, required=True, help="this role's file, from 'masked config new'")
    party.add_argument("--resume", action="store_true", help="go on from the last checkpoint that all roles have")
    party.set_defaults(run=_play)


def _play(options: Namespace) -> None:
    config = read(options.config)
    log = Log(config.role, config.session, config.log)
    with log.ending():
        given = fitting(config, resume=options.resume, say=log)
        apart = given.apart
        if isinstance(apart, OnShares) and apart.program.served and config.role != DEALER:
            raise ConfigError("this run is a service: play it with 'masked serve --config FILE'")
        played(given, log)


def played(given: Prepared, log: Log) -> None:
    """Until it is over, or all were asked to stop."""
    try:
        play(given, asked=partial(until_asked, log))
    except Stopped as stopped:
        log(f"stopped after {given.apart.unit} {stopped.done:,}, as all roles: go on with --resume at each")
        raise SystemExit(130) from None
    except PeerLost as lost:
        if not lost.begun:
            raise
        raise PeerLost(f"{lost}; --resume goes on from the last checkpoint that all have", peer=lost.peer) from None


@contextmanager
def until_asked(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C is a wish that all stop after the same decision; a second one ends at once.

    It is said when it is heard, as a decision may take as long as the world does.  Where another role is lost before
    all have heard of it, this one waits for nobody any more.
    """
    over = threading.Event()

    def follow() -> None:
        while not over.wait(_LOOK):
            if interrupt.asked:
                say("all are asked to stop after this decision; Ctrl-C again stops here at once")
                return

    with Interrupt() as interrupt:
        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield lambda: bool(interrupt.asked)
        except PeerLost as lost:
            if not interrupt.asked:
                raise
            say(f"{lost}; this one was asked to stop, and does not wait")
            raise KeyboardInterrupt from None
        finally:
            over.set()
            follower.join()

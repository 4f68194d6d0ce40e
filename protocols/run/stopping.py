"""Stopping a launched run after the same decision for all owners.  Knows small files in the run's folder.

    launcher                     owner p
    stop          ---------->    seen after its decision d_p;  stands-p = d_p,
                  <----------    and it goes no further than d_p + 1 before it knows where to stop
    stop-at = 1 + max d_p  ->    goes on to that decision, keeps a checkpoint of it, and ends

A decision takes messages from every owner, so two owners are never more than one decision apart: none has passed
`stop-at`, and none waits for an owner that stopped before it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpc.errors import ConfigError

from .interrupt import Interrupt

_PATIENCE = 30.0  # seconds that an owner waits for the launcher to say where


class Stop:
    """An owner's side."""

    def __init__(self, folder: Path, party: int) -> None:
        self._folder, self._asked, self._stands = folder, folder / "stop", folder / f"stands-{party}"
        self._seen = False
        self._at: int | None = None

    def here(self, done: int) -> bool:
        """Whether to stop after decision `done`; asked after each."""
        if not self._seen:
            if self._asked.exists():
                self._seen = True
                _note(self._stands, done)
            return False
        if self._at is None:
            self._at = self._told()
        return done >= self._at

    def _told(self) -> int:
        deadline = time.monotonic() + _PATIENCE
        while (at := stopped_at(self._folder)) is None:
            if time.monotonic() > deadline:
                raise ConfigError(f"the launcher asked to stop, and for {_PATIENCE:g} s did not say where: start again")
            time.sleep(0.002)
        return at


@contextmanager
def stoppable(folder: Path, parties: int) -> Iterator[None]:
    """While a launch runs: pass the first Ctrl-C on as a wish to stop after the same pull; a second one interrupts."""
    over = threading.Event()

    def follow(interrupt: Interrupt) -> None:
        while not over.wait(0.05):
            if interrupt.asked:
                print("stopping after this pull; Ctrl-C again stops at once", file=sys.stderr, flush=True)
                ask_to_stop(folder, parties, 1, over)
                return

    with Interrupt() as interrupt:
        follower = threading.Thread(target=follow, args=(interrupt,), daemon=True)
        follower.start()
        try:
            yield
        finally:
            over.set()
            follower.join(1.0)


def ask_to_stop(folder: Path, parties: int, cycle: int, over: threading.Event) -> None:
    """The launcher's side, until `over`.  cycle: a run goes on from whole numbers of so many decisions."""
    (folder / "stop").touch()
    while None in (stands := [_noted(folder / f"stands-{party}") for party in range(parties)]):
        if over.wait(0.005):
            return
    furthest = max(at for at in stands if at is not None)
    _note(folder / "stop-at", -(-(furthest + 1) // cycle) * cycle)


def stopped_at(folder: Path) -> int | None:
    """The decision after which all owners end, once the launcher has said it."""
    return _noted(folder / "stop-at")


def _note(path: Path, number: int) -> None:
    """Written whole: whoever sees the file can read it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(str(number))
    fresh.replace(path)


def _noted(path: Path) -> int | None:
    return int(path.read_text()) if path.exists() else None

"""A role between machines that goes on: what it keeps, says that it keeps, and begins from; how it waits for the lost.

A role that loses another goes back to where all meet, and so do those that hear of it.  Whoever is there again in time,
in the same process or started anew with --resume, agrees with the others on the last checkpoint that all have, and all
go on from there.  Nothing drawn before is drawn again: stores only move forward.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpc.client import ClientLink
from mpc.errors import ConfigError, PeerLost, StoppedTogether, Told, told_to_peers
from mpc.lifeline import by_its_maker
from mpc.net.transport import Transport

from .checkpoint import Checkpoint, checkpoint_at, checkpoints, forget_beyond
from .desk import State
from .folder import COINS, SEEDS_KEY, TOLD, other_owner
from .notes import Notes, note_again
from .program import Arrays, Fresh
from .role_process import Task
from .standing import Agreed, Standing, Telling, fresh_word
from .tagged_file import prepare, read_kept, write_kept

_PUT_BACK = "put it back, or begin anew"
_NAME = "the name of these coins"
_NAMED = 16  # letters
T = TypeVar("T")
Say = Callable[[str], None]


@dataclass
class Kept:
    """What a role keeps below `keep`.  home: the folder of its checkpoints; "" of one that keeps none.

    anew: it begins a run; else it goes on with one.  spends: see `Standing`.  of: see `Task`.  coins: the name of those
    that it draws for itself.
    """

    keep: Path
    run: str
    role: str
    home: str
    notes: Notes | None
    anew: bool
    spends: bool = False
    of: str = ""
    coins: Callable[[], str] = str
    again: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    noted: np.ndarray | None = field(default=None, repr=False)
    _last: tuple[int, Arrays] | None = field(default=None, repr=False)

    def standing(self) -> Standing:
        """What it says of itself."""
        saves = tuple(self._saves()) if self.home else None
        noted = None if self.notes is None else len(self.notes.words())
        return Standing(
            self.role, saves, noted, self.anew, fresh_word(), self.spends, self._told(), self.coins(), self._before()
        )  # fmt: skip

    def _before(self) -> str:
        """The name of all roles' coins when all went on last."""
        path = self.keep / COINS
        return read_kept(path, cure=_PUT_BACK).decode() if path.exists() else ""

    def _told(self) -> tuple[Telling, ...]:
        """Which decisions had been told before when all went on last."""
        if not (path := self.keep / TOLD).exists():
            return ()
        return tuple((first, end, times) for first, end, times in json.loads(read_kept(path, cure=_PUT_BACK)))

    def begin(self, agreed: Agreed, say: Say, unit: str) -> Arrays | None:
        """Let go of what comes after the decision that all go on from; gives a client's state after it.

        `again`: what a client had noted of decisions that are made again.  `noted`: what it noted last, if anything.
        """
        prepare(self.keep)
        start, self._last = agreed.start, None
        words = np.zeros(0, np.int64) if self.notes is None else self.notes.words()
        self.again, self.noted = words[start:], words[-1] if len(words) else None
        if start or not self.anew:
            say(f"all go on from {unit} {start:,}")
        if agreed.told != self._told():  # before any of it is told anew, and notes are cut
            write_kept(self.keep / TOLD, json.dumps(agreed.told).encode())
        if agreed.coins != self._before():
            write_kept(self.keep / COINS, agreed.coins.encode())
        if self.notes is not None and (noted := len(self.again)):
            note_again(self.keep, start, start + noted)
            how = (
                "other coins: what was learned of them counts twice" if agreed.again else
                f"the same coins and fresh masks: only what comes out otherwise tells more of that {unit}"
            )  # fmt: skip
            say(f"{noted:,} {unit}s from {start:,} on are made again with {how}")
            self.notes.cut(start)
        self.anew = False
        if not self.home:
            return None
        forget_beyond(self.keep / self.home, start)
        return Checkpoint.load(checkpoint_at(self.keep / self.home, start)).arrays if start else None

    def keeps(self, task: Task, decisions: int) -> Callable[[int, State], bool]:
        """Of a client: keep its state where it is due, and have it ready for where the parties may stop."""

        def keep(done: int, state: State) -> bool:
            self._last = done, dict(state())
            if task.due(done, decisions):
                self._save(task, *self._last)
            return False

        return keep

    def stopped(self, task: Task, done: int) -> None:
        """The parties stop after this decision: a client keeps its state there too."""
        if self.home and self._last is not None and self._last[0] == done:
            self._save(task, *self._last)

    def _save(self, task: Task, done: int, arrays: Arrays) -> None:
        Checkpoint(done, task.signature(self.home), arrays).save(self.keep / self.home)

    def _saves(self) -> list[tuple[int, str]]:
        found = [(path, Checkpoint.load(path)) for path in checkpoints(self.keep / self.home)]
        for path, each in found:
            if (each.facts.get("role"), each.facts.get("run")) != (self.home, self.run):
                raise other_owner(path, each, self.home, self.run)
            if each.facts.get("of", self.of) != self.of:
                raise ConfigError(
                    f"{path} was kept under other options: put them back, at all roles, or begin anew in other folders"
                )
        return [(each.done, str(each.facts.get("attempt"))) for _, each in found]


def beginning(task: Task, agreed: Agreed) -> Task:
    """What a role is told once all have agreed."""
    return replace(task, start=agreed.start, attempt=agreed.attempt)


def until_over(
    meet: Callable[[float], T], play: Callable[[T], Any], kept: Kept, *, first: float, back: float, say: Say,
    waits: Callable[[PeerLost], None] = lambda _: None,
) -> Any:  # fmt: skip
    """Meet and play; whoever loses another meets all again.

    meet: in so many seconds.  first, back: how many, at the start and for one who was lost.  Who is lost before all had
    agreed that they begin is waited for until the end of the first; one that ends there with an error of its own, such
    as rows that do not fit, ends the start for all.  waits: told of each that is waited for.
    """
    seconds, until = first, time.monotonic() + first
    while True:
        try:
            met = meet(seconds)
        except PeerLost as lost:
            lost.begun = not kept.anew
            raise
        try:
            return play(met)
        except StoppedTogether:
            raise
        except PeerLost as lost:
            lost.begun, left = not kept.anew, until - time.monotonic()
            if kept.anew and (lost.failed or left <= 0):
                raise
            again = "again" if kept.anew else "again with --resume"
            seconds = left if kept.anew else back
            waits(lost)
            say(f"{lost}; all who are left wait up to {seconds:.0f} s for it to be started {again}")


class Seeds:
    """Coins that a role draws for itself, by name: one that goes on has those that it had.

    They have a name themselves, which tells nothing of them: by it all know whether these are the same as before.
    """

    def __init__(self, keep: Path, fresh: Fresh, *, resume: bool) -> None:
        self._path, self._fresh, self._drawn = keep / SEEDS_KEY, fresh, dict[str, bytes]()
        if resume and self._path.exists():
            had = json.loads(read_kept(self._path, cure=_PUT_BACK))
            self._drawn = {name: bytes.fromhex(seed) for name, seed in had.items()}
        self._kept = len(self._drawn)

    def __call__(self, name: str) -> bytes:
        """The one of this name."""
        if name not in self._drawn:
            self._drawn[name] = self._fresh(name)
        return self._drawn[name]

    def name(self) -> str:
        """That of all that were drawn; "" where none were."""
        return self(_NAME).hex()[:_NAMED] if self._drawn else ""

    def keep(self) -> None:
        """They are on the disk when this returns, with their name."""
        if self.name() and len(self._drawn) > self._kept:
            write_kept(self._path, json.dumps({name: seed.hex() for name, seed in self._drawn.items()}).encode())
            self._kept = len(self._drawn)


@contextmanager
def left_with_a_word(
    link: Transport | ClientLink, told: Callable[[BaseException], Told] = told_to_peers
) -> Iterator[None]:
    """Whoever fails tells the others first.  told: what; a client, or a dealer, says `told_by_client`.

    A fork of it tells nothing: the link is its parent's.
    """
    leave = by_its_maker(link.close)
    try:
        yield
    except BaseException as error:
        leave(reason=told(error))
        raise

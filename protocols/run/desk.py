"""Where a client sits in this process, or in one of its own: what it keeps, notes, and tells another client.

What clients tell each other is the world outside the computation, an arm that was pulled and what came of it.  In one
process it is a list; between processes of one machine, a pipe in the run's folder.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from mpc.errors import PeerLost

from .dealer_process import before
from .notes import Notes
from .program import Arrays, Judge, anything

State = Callable[[], Arrays]
_SOON = 0.25  # of the time that another client has; then the parties are told for whom this one waits


class World:
    """What clients of one process told each other and did not hear yet; and what one of them notes, by decision."""

    def __init__(self, notes: np.ndarray | None = None) -> None:
        self.told: deque[np.ndarray] = deque()
        self.notes: list[np.ndarray] = [] if notes is None else list(notes)


class MemoryDesk:
    """A client in the process that hosts all roles.  state: gives what it goes on from, once it has said so."""

    def __init__(self, world: World, *, start: int = 0, kept: Arrays | None = None) -> None:
        self.start, self.kept = start, kept
        self.state: State | None = None if kept is None else lambda: kept
        self._world = world

    def here(self, done: int, state: State) -> bool:
        """After each decision; a simulation stops, and keeps, when its loop says so."""
        self.state = state
        return False

    def note(self, words: np.ndarray) -> None:
        """Write down what was learned."""
        self._world.notes.append(words)

    def noted(self, shape: tuple[int, ...]) -> np.ndarray:
        """What was written down before `start`."""
        return np.array(self._world.notes[: self.start], np.int64).reshape(-1, *shape)

    def tell(self, words: np.ndarray) -> None:
        """Say it to whoever hears next."""
        self._world.told.append(words)

    def tell_last(self) -> None:
        """Nothing: there is no world outside."""

    def hear_from(self, late: int, shape: tuple[int, ...]) -> None:
        """Nothing: there is no world outside."""

    def hear(self, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """What was told, in order."""
        heard = self._world.told.popleft().reshape(shape)
        judge(heard)
        return heard

    def ask(self, decision: int, words: np.ndarray, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """Say it, and hear who answers."""
        self.tell(words)
        return self.hear(shape, judge)


class FileDesk:
    """A client in a process of its own.

    keeps: called after each decision with the state; says whether to stop.  notes: this run's.
    pipe: to or from another client; others: the node and name of each other one.  timeout: of one who is silent there.
    waiting: told whom this client waits for when it does so for long.  written: told how many decisions are noted.
    """

    def __init__(
        self, *, start: int, kept: Arrays | None, keeps: Callable[[int, State], bool] | None, notes: Notes | None,
        pipe: Path, others: Sequence[tuple[int, str]], timeout: float,
        waiting: Callable[[str], None] = lambda _: None, written: Callable[[int], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.start, self.kept = start, kept
        self.stopped = False
        self._keeps, self._notes, self._pipe, self._others = keeps, notes, pipe, others
        self._waiting, self._written, self._count = waiting, written, start
        self._world: IO[bytes] | None = None
        self._patience, self._usual = 3.0 * timeout, before(timeout)  # all others may still be starting

    def here(self, done: int, state: State) -> bool:
        """Keep the state where it is due."""
        assert self._keeps is not None, "a client that keeps its state names a home for it"
        self.stopped = self._keeps(done, state)
        return self.stopped

    def note(self, words: np.ndarray) -> None:
        """Append it to the notes, at once."""
        assert self._notes is not None
        self._notes.append(words)
        self._count += 1
        self._written(self._count)

    def noted(self, shape: tuple[int, ...]) -> np.ndarray:
        """What was written down before `start`, by whichever client of this run writes notes."""
        return np.zeros((0, *shape), np.int64) if self._notes is None else self._notes.words()[: self.start]

    def tell(self, words: np.ndarray) -> None:
        """Say it to the client at the other end of the pipe."""
        if self._world is None:
            self._world = self._pipe.open("wb", buffering=0)
        try:
            self._world.write(np.ascontiguousarray(words, np.int64).tobytes())
        except OSError:
            raise self._gone() from None

    def tell_last(self) -> None:
        """Nothing: there is no world outside."""

    def hear_from(self, late: int, shape: tuple[int, ...]) -> None:
        """Nothing: there is no world outside."""

    def hear(self, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """What the client at the other end said."""
        if self._world is None:
            self._world = os.fdopen(os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
        count, raw = 8 * int(np.prod(shape, dtype=np.int64)), b""
        now, (node, name) = time.monotonic(), self._others[0]
        until, told = now + self._patience, now + _SOON * self._usual
        while len(raw) < count:
            if not select.select([self._world], [], [], max(0.0, min(told, until) - time.monotonic()))[0]:
                if told < until:
                    self._waiting(name)
                    told = until
                    continue
                raise PeerLost(f"{name} was silent for {self._patience:g} s: it hangs", peer=node)
            if not (more := self._world.read(count - len(raw))):
                raise self._gone()
            raw += more
        self._patience = self._usual
        heard = np.frombuffer(raw, np.int64).reshape(shape)
        judge(heard)
        return heard

    def ask(self, decision: int, words: np.ndarray, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """Say it, and hear what the client at the other end answers."""
        self.tell(words)
        return self.hear(shape, judge)

    def close(self) -> None:
        """Let go of files and of the pipe."""
        for file in (self._notes, self._world):
            if file is not None:
                file.close()

    def _gone(self) -> PeerLost:
        """What a pipe that ends means: it is no cause, but the witness of one."""
        node, name = self._others[0]
        return PeerLost(f"{name} closed its connection to the world: it died or was stopped", peer=node)

"""Where a client sits in a session between machines: what it learns leaves, and what came of it enters, line by line.

{"decision": 7, "values": [3]}        one decision, as JSON on a line of its own; several values in the order of
                                      replicas and batch

What was heard is written down at once, so that whoever goes on need not be told again.  Where a run that goes on has
the same coins, its decisions are told and heard once, however often they are made; else those made again are told and
heard again.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpc.errors import ConfigError

from .dealer_process import before
from .desk import FileDesk
from .notes import Notes

_LONGEST = 1 << 20  # bytes of a line
_WATCHED = 1.1  # of a round's time; above 1, and below 1 and what follows
_SOON = 0.25  # of a round's time; then the parties are told that this client waits for the world

Outside = Callable[[int, float], bool]
"""Waits so many seconds for a descriptor: whether something came."""


def _came(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


class Lines:
    """The world outside, for as long as this process lives.

    heard: a descriptor to read from; told: a stream to write to.  record: the file of what was heard, if it is kept.
    watched: whether the others hear that this one waits for the world, and it hears what becomes of them.  Then its
    time is a little longer than a round's: if they wait for each other they say so first, and they wait for it longer.
    """

    def __init__(
        self, heard: int, told: IO[str], *, timeout: float, record: Path | None = None, who: str = "",
        watched: bool = False,
    ) -> None:  # fmt: skip
        self._heard, self._told, self._record, self._who = heard, told, record, who
        self._raw, self._known = b"", dict[int, list[float]]()
        self._notes: Notes | None = None
        self._came: list[np.ndarray] | None = None
        self._cut: int | None = None  # where decisions from here on are heard again
        self._over = 0  # what comes of decisions before this one may come twice
        self._within = _WATCHED * timeout if watched else before(timeout)

    def begin(self, start: int, known: Iterable[np.ndarray] = (), *, again: bool = False) -> None:
        """All go on from decision `start`.  known: what was told from there on.  again: it is told and heard again."""
        self.close()
        self._over = max(self._over, len(self._came or ()), start)
        self._came, self._cut = None, start if again else None
        self._known |= {number: words.reshape(-1).tolist() for number, words in enumerate(known, start)}
        if again:
            self._known = {number: words for number, words in self._known.items() if number < start}

    def tell(self, number: int, values: list[float]) -> None:
        """A line for one decision; nothing where it was told before."""
        if self._known.get(number) == values:
            return
        self._known[number] = values
        self._say(number, values)

    def _say(self, number: int, values: list[float]) -> None:
        try:
            print(json.dumps({"decision": number, "values": values}), file=self._told, flush=True)
        except OSError as error:
            raise ConfigError(
                f"nobody takes the lines of this role ({error.strerror}), from decision {number} on: what stands "
                "behind its stdout ended first"
            ) from error

    def check_heard(self, count: int, wanted: int) -> None:
        """ConfigError unless it is known what came of so many decisions."""
        came = self._opened(wanted)
        if len(came) < count:
            raise ConfigError(
                f"{self._record} says what came of {len(came):,} decisions, and {count:,} were made: put it back"
            )

    def hear(self, number: int, wanted: int, outside: Outside, waiting: Callable[[str], None]) -> np.ndarray:
        """The values of a decision: as they were heard before, or the next line's."""
        came = self._opened(wanted)
        if number < len(came):
            return came[number]
        values = self._next(number, wanted, outside, waiting)
        if self._notes is not None:
            self._notes.append(values.view(np.int64))
        came.append(values)
        return values

    def close(self) -> None:
        """Let go of the file; lines that were read and not used yet stay."""
        if self._notes is not None:
            self._notes.close()
        self._notes = None

    def _opened(self, wanted: int) -> list[np.ndarray]:
        """What came so far."""
        if self._came is None:
            self._came = []
            if self._record is not None:
                self._notes = Notes(self._record, (wanted,), who=self._who)
                self._came = list(self._notes.words().view(np.float64))
            self._over = max(self._over, len(self._came))
            if self._cut is not None and len(self._came) > self._cut:
                del self._came[self._cut :]
                if self._notes is not None:
                    self._notes.cut(self._cut)
        return self._came

    def _next(self, number: int, wanted: int, outside: Outside, waiting: Callable[[str], None]) -> np.ndarray:
        """Of a decision that nothing is known of yet."""
        while (values := self._values(self._line(number, outside, waiting), number, wanted)) is None:
            pass
        return values

    def _values(self, line: bytes, number: int, wanted: int) -> np.ndarray | None:
        """None of a line that came before."""
        try:
            given = json.loads(line)
            values, of = np.array(given["values"], np.float64), given["decision"]
            fits = of == number and values.shape == (wanted,) and bool(np.isfinite(values).all())
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            fits, of = False, None
        if type(of) is int and 0 <= of < min(number, self._over):
            return None
        if not fits:
            like = json.dumps({"decision": number, "values": [0.0] * min(wanted, 3)})
            raise ConfigError(f"line {number + 1} on stdin is not that of decision {number}, such as {like}")
        return values

    def _line(self, number: int, outside: Outside, waiting: Callable[[str], None]) -> bytes:
        until = time.monotonic() + self._within
        while b"\n" not in self._raw:
            if len(self._raw) > _LONGEST:
                raise ConfigError(f"line {number + 1} on stdin has more than {_LONGEST:,} bytes")
            self._await(self._heard, until, outside, waiting, "no line came on stdin", number)
            if not (more := os.read(self._heard, 1 << 16)):
                raise ConfigError(f"stdin ended before the line of decision {number}")
            self._raw += more
        line, _, self._raw = self._raw.partition(b"\n")
        return line

    def _await(
        self, descriptor: int, until: float, outside: Outside, waiting: Callable[[str], None], missing: str,
        number: int,
    ) -> None:  # fmt: skip
        """Until something comes of a decision; the others are told once that this client waits.  missing: in words."""
        soon = until - (1.0 - _SOON) * self._within
        if (left := soon - time.monotonic()) > 0:
            if outside(descriptor, left):
                return
            waiting("the world outside")
        if not outside(descriptor, max(0.0, until - time.monotonic())):
            raise ConfigError(
                f"{missing} for {self._within:g} s, for decision {number}: give timeouts.round, at all roles, the time "
                "that it takes"
            )


class LineDesk(FileDesk):
    """A client that tells and hears by lines.  outside: how it waits for one."""

    def __init__(self, lines: Lines, *, outside: Outside | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._outside = outside or _came
        self._lines, self._out, self._in = lines, self.start, self.start

    def tell(self, words: np.ndarray) -> None:
        """A line for one decision."""
        self._lines.tell(self._out, words.reshape(-1).tolist())
        self._out += 1

    def hear_from(self, late: int, shape: tuple[int, ...]) -> None:
        """What comes of a decision is asked for `late` decisions behind it; of those before, it must be known."""
        self._in = max(0, self.start - late)
        self._lines.check_heard(self._in, int(np.prod(shape, dtype=np.int64)))

    def hear(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next line's values."""
        values = self._lines.hear(self._in, int(np.prod(shape, dtype=np.int64)), self._outside, self._waiting)
        self._in += 1
        return values.reshape(shape)

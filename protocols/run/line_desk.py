"""Where a client sits in a session between machines: what it learns leaves, and what came of it enters, line by line.

{"decision": 7, "values": [3]}        one decision, as JSON on a line of its own; several values in the order of
                                      replicas and batch

What was heard is written down at once, so that whoever goes on need not be told again.  Where a run that goes on has
the same coins, its decisions are told and heard once, however often they are made; else those made again are told and
heard again, and each line says which telling it is of:

{"decision": 7, "values": [3], "again": 1}     told before; the world gives `again` back with what comes of it

So it stays for the rest of a run that once went on with other coins, as what came of the first may be on its way still.
What comes of an earlier telling is passed over: it may be of another arm.  What was noted last may not have been told
yet when its role died: that one is told a second time.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpc.errors import ConfigError

from .dealer_process import before
from .desk import FileDesk
from .notes import Notes
from .program import Judge, anything
from .standing import Telling, times_told
from .terminal import write_line

_LONGEST = 1 << 20  # bytes of a line
_WATCHED = 1.1  # of a round's time; above 1, and below 1 and what follows
_STOPPING = 10.0  # seconds in which the others may say that all stop, where the world has ended
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
    resumed: what comes of decisions before the one that is due may come twice; so it may once all have gone back.
    """

    def __init__(
        self, heard: int, told: IO[str], *, timeout: float, record: Path | None = None, who: str = "",
        watched: bool = False, resumed: bool = False,
    ) -> None:  # fmt: skip
        self._heard, self._told, self._record, self._who = heard, told, record, who
        self._raw, self._known = b"", dict[int, list[float]]()
        self._notes: Notes | None = None
        self._came: list[np.ndarray] | None = None
        self._cut: int | None = None  # where decisions from here on are heard again
        self._twice, self._begun = resumed, False
        self._coins_differ, self._before = False, tuple[Telling, ...]()
        self._untold: tuple[int, np.ndarray] | None = None
        self._within = _WATCHED * timeout if watched else before(timeout)

    def begin(
        self, start: int, known: Iterable[np.ndarray] = (), last: np.ndarray | None = None, *, again: bool = False,
        told: Sequence[Telling] = (),
    ) -> None:  # fmt: skip
        """All go on from decision `start`.  known: what was noted from there on.  last: what was noted last, if it was.

        again: it is told and heard again.  told: which decisions were told before with other coins, as all know it.
        """
        self.close()
        self._twice |= self._begun or start > 0
        self._came, self._cut, self._begun = None, start if again else None, True
        self._coins_differ, self._before = again or bool(told), tuple(told)
        noted = {number: words.reshape(-1).tolist() for number, words in enumerate(known, start)}
        newest = start + len(noted) - 1
        is_told = newest in self._known
        self._known |= noted
        if last is not None and not is_told:
            self._known.pop(newest, None)
        if again:
            self._known = {number: words for number, words in self._known.items() if number < start}
        self._untold = (newest, last) if last is not None and not is_told and newest < start else None

    def tell_last(self) -> None:
        """What was noted last, where it is from before all go on and may not have been told."""
        if self._untold is not None:
            number, words = self._untold
            self.tell(number, words.reshape(-1).tolist())
        self._untold = None

    def tell(self, number: int, values: list[float]) -> None:
        """A line for one decision; nothing where it was told before."""
        if self._known.get(number) == values:
            return
        self._known[number] = values
        self._say(number, values)

    def _say(self, number: int, values: list[float]) -> None:
        try:
            write_line(self._like(number, values), self._told)
        except OSError as error:
            raise ConfigError(
                f"nobody takes the lines of this role ({error.strerror}), from decision {number} on: what stands "
                "behind its stdout ended first"
            ) from error

    def _like(self, number: int, values: list[float]) -> str:
        """A line of a decision."""
        which = {"again": times_told(self._before, number)} if self._coins_differ else {}
        return json.dumps({"decision": number, "values": values, **which})

    def check_heard(self, count: int, wanted: int) -> None:
        """ConfigError unless it is known what came of so many decisions."""
        came = self._opened(wanted)
        if len(came) < count:
            raise ConfigError(
                f"{self._record} says what came of {len(came):,} decisions, and {count:,} were made: put it back"
            )

    def is_known(self, number: int, wanted: int) -> bool:
        """Whether it was heard before what came of a decision."""
        return number < len(self._opened(wanted))

    def hear(
        self, number: int, wanted: int, outside: Outside, waiting: Callable[[str], None], judge: Judge = anything
    ) -> np.ndarray:
        """The values of a decision: as they were heard before, or the next line's, which `judge` lets into the record.

        Those of decisions before it that this client was not at are no numbers there.
        """
        came = self._opened(wanted)
        known = number < len(came)
        values = came[number] if known else self._next(number, wanted, outside, waiting)
        judge(values)
        if known:
            return values
        for row in [*([np.full(wanted, np.nan)] * (number - len(came))), values]:
            if self._notes is not None:
                self._notes.append(row.view(np.int64))
            came.append(row)
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
            self._twice |= bool(self._came)
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
        """None of a line that came before, or of what was told before all went back."""
        try:
            given = json.loads(line)
            values, of, telling = np.array(given["values"], np.float64), given["decision"], given.get("again")
            fits = of == number and values.shape == (wanted,) and bool(np.isfinite(values).all())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            fits, of, telling = False, None, None
        if self._twice and type(of) is int and 0 <= of < number:
            return None
        due = times_told(self._before, of) if type(of) is int else 0
        telling = telling if self._coins_differ else None
        if (telling is None and due and of != number) or (type(telling) is int and 0 <= telling < due):
            return None
        like = self._like(number, [0.0] * min(wanted, 3))
        if fits and telling is None and due:
            raise ConfigError(
                f"decision {number} was told anew, and line {number + 1} on stdin does not say which telling it is of: "
                f'give back "again" as it was told, such as {like}'
            )
        if not fits or telling not in (None, due) or isinstance(telling, bool):
            raise ConfigError(f"line {number + 1} on stdin is not that of decision {number}, such as {like}")
        return values

    def _line(self, number: int, outside: Outside, waiting: Callable[[str], None]) -> bytes:
        until = time.monotonic() + self._within
        while b"\n" not in self._raw:
            if len(self._raw) > _LONGEST:
                raise ConfigError(f"line {number + 1} on stdin has more than {_LONGEST:,} bytes")
            self._await(self._heard, until, outside, waiting, "no line came on stdin", number)
            if not (more := os.read(self._heard, 1 << 16)):
                raise self._cut_off(number, outside)
            self._raw += more
        line, _, self._raw = self._raw.partition(b"\n")
        return line

    def _cut_off(self, number: int, outside: Outside) -> ConfigError:
        """The world has ended.  Where all stop, the teller's end is the world's too: the others say so if asked."""
        if outside is not _came:
            never, ours = os.pipe()
            try:
                outside(never, min(_STOPPING, self._within / 2))
            finally:
                os.close(never)
                os.close(ours)
        return ConfigError(f"stdin ended before the line of decision {number}")

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

    def tell_last(self) -> None:
        """A line for the decision before the first."""
        self._lines.tell_last()

    def hear_from(self, late: int, shape: tuple[int, ...]) -> None:
        """What comes of a decision is asked for `late` decisions behind it; of those before, it must be known."""
        self._in = max(0, self.start - late)
        self._lines.check_heard(self._in, int(np.prod(shape, dtype=np.int64)))

    def hear(self, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """The next line's values."""
        values = self._lines.hear(self._in, int(np.prod(shape, dtype=np.int64)), self._outside, self._waiting, judge)
        self._in += 1
        return values.reshape(shape)

    def ask(self, decision: int, words: np.ndarray, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """A line for this decision and the values of the next one that is heard, where it is not known yet."""
        wanted = int(np.prod(shape, dtype=np.int64))
        if not self._lines.is_known(decision, wanted):
            self._lines.tell(decision, words.reshape(-1).tolist())
        return self._lines.hear(decision, wanted, self._outside, self._waiting, judge).reshape(shape)

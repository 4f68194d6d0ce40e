"""Progress of a long run on stderr.  Knows a count and a clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from mpc.launch import NOTE, place

from .terminal import bar, spoken, width_of, write_line


class Progress:
    """A line that is rewritten on a terminal, and a line every ten seconds elsewhere; silent for the first two.

    Its clock starts when it is told something first: what came before, as the start of processes, is no step's time.

    A launched party's lines go through its launcher.  batch: how many of `what` are done at once.  say: in place of
    stderr, where that is no terminal.
    """

    def __init__(
        self, total: int, what: str = "step", *, batch: int = 1, say: Callable[[str], None] | None = None
    ) -> None:  # fmt: skip
        self._say = say
        self._total, self._what, self._batch = total, what, batch
        self._live = sys.stderr.isatty()
        self._prefix = NOTE if place() is not None else ""
        self._said, self._shown = 0.0, False
        self._first: tuple[float, int] | None = None  # when it was told first, and of how many

    def __call__(self, done: int, more: str = "") -> None:
        now = time.monotonic()
        self._first = self._first or (now, done)
        passed = now - self._first[0]
        if passed < 2.0 or now - self._said < (0.2 if self._live else 10.0 if self._shown else 0.0):
            return
        self._said, self._shown = now, True
        each = passed / max(1, done - self._first[1])
        left, b = each * (self._total - done), self._batch
        count, times = (
            f"{self._what} {b * done:,} of {b * self._total:,}",
            f"{spoken(each / b)} each  {spoken(left)} left",
        )
        line = f"{count}{more}  {times}"
        if self._live:
            print(self._rewritten([line, f"{count}  {times}"], done), end="", file=sys.stderr, flush=True)
        elif self._say is not None:
            self._say(line)
        else:
            write_line(self._prefix + line, sys.stderr)

    def _rewritten(self, lines: list[str], done: int) -> str:
        """The first that fits one line of the terminal, with a bar where there is room: a second is not taken back."""
        width = (width_of(sys.stderr) or 80) - 1
        line = next((line for line in lines if len(line) <= width), lines[-1])
        room = width - len(line) - 1
        drawn = bar(done, self._total, sys.stderr, columns=min(24, room)) if room >= 8 else ""
        return f"\r{drawn}{line[:width]}\x1b[K"

    def end(self) -> None:
        """Leave the line that was rewritten."""
        if self._shown and self._live:
            print(file=sys.stderr)


_STEP = "step "
_BETWEEN_LINES = 0.2


class StepLines:
    """Tells its launcher on stdout how far a participant is, now and then; `heard` is the launcher's end."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, step: int) -> None:
        if (now := time.monotonic()) - self._said > _BETWEEN_LINES:
            self._said = now
            write_line(f"{_STEP}{step}")

    @staticmethod
    def heard(watch: Callable[[int], None] | None) -> Callable[[str, str], None]:
        """What `launch` may give a process's lines to."""

        def hear(_: str, line: str) -> None:
            if watch is not None and line.startswith(_STEP):
                watch(int(line.removeprefix(_STEP)))

        return hear

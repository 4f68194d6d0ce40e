"""What a role between machines says while it runs: lines for people on a terminal, JSON elsewhere.

{"time": "2026-11-19T09:30:00.123+00:00", "level": "info", "role": "party 0", "session": "trial", "message": "..."}

No line holds a value that a user brings or learns: of an error, what is no terminal has the words that may be kept.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TextIO

from mpc.errors import MaskedError

from .exits import of_machine
from .terminal import write_line

_WARNING = "warning: "


class Form(Enum):
    """auto: text on a terminal, else JSON."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class Log:
    """Of one role; called with a line.  stream: stderr."""

    def __init__(self, role: str, session: str, form: Form = Form.AUTO, stream: TextIO | None = None) -> None:
        self._who, self._stream = {"role": role, "session": session}, stream or sys.stderr
        self._alone = self._stream.isatty()
        self.as_json = form is Form.JSON or (form is Form.AUTO and not self._alone)

    def __call__(self, line: str) -> None:
        level = "warning" if line.startswith(_WARNING) else "info"
        self._say(level, line.removeprefix(_WARNING) if self.as_json else line)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Around all that a role does: an error is the last line, and exit code 2; after Ctrl-C that, and 130."""
        try:
            yield
        except (MaskedError, OSError, MemoryError, KeyboardInterrupt) as error:
            read = not self.as_json and self._alone
            if read or isinstance(error, BrokenPipeError) or isinstance(error.__context__, SystemExit):
                raise
            if isinstance(error, KeyboardInterrupt):
                self("stopped")
                raise SystemExit(130) from None
            line = error.logged if isinstance(error, MaskedError) else of_machine(error)
            self._say("error", line if self.as_json else f"error: {line}")
            raise SystemExit(2) from None

    def _say(self, level: str, line: str) -> None:
        if self.as_json:
            now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
            line = json.dumps({"time": now, "level": level, **self._who, "message": line})
        write_line(line, self._stream)

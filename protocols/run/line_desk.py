"""Where a client sits in a session between machines: what it learns leaves, and what came of it enters, line by line.

{"decision": 7, "values": [3]}        one decision, as JSON on a line of its own; several values in the order of
                                      replicas and batch
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import IO, Any

import numpy as np

from mpc.errors import ConfigError

from .dealer_process import before
from .desk import FileDesk

_LONGEST = 1 << 20  # bytes of a line
_SOON = 0.25  # of a round's time; then the parties are told that this client waits for the world


class LineDesk(FileDesk):
    """A client that tells and hears by lines.  heard: a descriptor to read from; told: a stream to write to."""

    def __init__(self, heard: int, told: IO[str], *, timeout: float, **rest: Any) -> None:
        super().__init__(timeout=timeout, **rest)
        self._heard, self._told = heard, told
        self._raw, self._lines, self._out = b"", 0, 0
        self._within = before(timeout)

    def tell(self, words: np.ndarray) -> None:
        """A line for one decision."""
        line = {"decision": self._out, "values": words.reshape(-1).tolist()}
        try:
            print(json.dumps(line), file=self._told, flush=True)
        except OSError as error:
            raise ConfigError(
                f"nobody takes the lines of this role ({error.strerror}), from decision {self._out} on: what stands "
                "behind its stdout ended first"
            ) from error
        self._out += 1

    def hear(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next line's values."""
        line, wanted, number = self._line(), int(np.prod(shape, dtype=np.int64)), self._lines
        self._lines += 1
        try:
            given = json.loads(line)
            values = np.array(given["values"], np.float64)
            fits = given["decision"] == number and values.shape == (wanted,) and bool(np.isfinite(values).all())
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            fits = False
        if not fits:
            like = json.dumps({"decision": number, "values": [0.0] * min(wanted, 3)})
            raise ConfigError(f"line {number + 1} on stdin is not that of decision {number}, such as {like}")
        return values.reshape(shape)

    def _line(self) -> bytes:
        now = time.monotonic()
        told, until = now + _SOON * self._within, now + self._within
        while b"\n" not in self._raw:
            if len(self._raw) > _LONGEST:
                raise ConfigError(f"line {self._lines + 1} on stdin has more than {_LONGEST:,} bytes")
            if not select.select([self._heard], [], [], max(0.0, min(told, until) - time.monotonic()))[0]:
                if told < until:
                    self._waiting("the world outside")
                    told = until
                    continue
                raise ConfigError(
                    f"no line came on stdin for {self._within:g} s, for decision {self._lines}: give timeouts.round, "
                    "at all roles, the time that it takes"
                )
            if not (more := os.read(self._heard, 1 << 16)):
                raise ConfigError(f"stdin ended before the line of decision {self._lines}")
            self._raw += more
        line, _, self._raw = self._raw.partition(b"\n")
        return line

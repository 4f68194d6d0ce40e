"""The same work on many rows of integers, spread over the cores of one role (`--cores`).  Knows integers and pipes; no
protocol.

    the role   -- which work, rows ------------>   helper 1, ..., helper n - 1,  and a share of its own
               <- an integer for each row ------

A helper is a fork of its role and has what the role has, keys with it: none is ever written.  It keeps no descriptor
but its pipes, draws from the system alone, and leaves when its role is gone, however that went.
"""

from __future__ import annotations

import math
import os
import signal
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, BinaryIO, NoReturn

from mpc.errors import ConfigError, MaskedError
from mpc.lifeline import ENDS, end_with

Work = Callable[..., Any]
"""From the integers of a row to one."""

MOST = 64
_HEAD = struct.Struct("<III")  # which work, rows, bytes that follow
_LENGTH = struct.Struct("<I")


def check_cores(cores: int) -> None:
    """Refuse a number that no machine has."""
    if not 1 <= cores <= MOST:
        raise ConfigError(f"--cores is 1 to {MOST}, not {cores}: as many as this machine has are {os.cpu_count()}")


class Cores:
    """Processes for these kinds of work, which each helper takes as they are now; close them when all is done.

    least: seconds of a list that is worth a message to helpers, by what its like took last; a shorter one stays here.
    """

    def __init__(self, cores: int, *works: Work, least: float = 2e-3) -> None:
        check_cores(cores)
        self.count, self._works, self._least = cores, works, least
        self._each = [math.inf] * len(works)  # seconds of a row
        self._helpers: list[_Helper] = []
        try:
            for _ in range(cores - 1):
                self._helpers.append(_Helper(works))
        except OSError as error:
            self.close()
            raise ConfigError(f"no process for {cores} cores: {error.strerror}; choose fewer with --cores") from error

    def map(self, work: Work, rows: Sequence[Sequence[int]]) -> list[Any]:
        """work(*row) of each row."""
        number = self._works.index(work)
        asked = self._helpers if rows and len(rows) * self._each[number] >= self._least else []
        ends = self._ends(len(rows)) if asked else [0]
        for helper, start, end in zip(asked, [0, *ends], ends):
            helper.ask(number, rows[start:end])
        began, rest = time.process_time(), rows[ends[-1] :]
        own = [work(*row) for row in rest]
        if rest:
            self._each[number] = (time.process_time() - began) / len(rest)
        return [value for helper in asked for value in helper.answers()] + own

    def _ends(self, rows: int) -> list[int]:
        """Where the shares of the helpers end; the role's own is no larger than theirs."""
        return [-(-rows * share // self.count) for share in range(1, self.count)]

    def close(self) -> None:
        """End the helpers."""
        for helper in self._helpers:
            helper.close()
        self._helpers = []

    def __enter__(self) -> Cores:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        self.close()


class _Helper:
    """One of them, as its role sees it."""

    def __init__(self, works: Sequence[Work]) -> None:
        with ExitStack() as opened:
            pipes = [os.pipe() for _ in range(3)]
            for end in (end for pipe in pipes for end in pipe):
                opened.callback(_close, end)
            (asked, ask), (answers, answer), (held, self._lifeline) = pipes
            if not (pid := os.fork()):
                _help(works, asked, answer, held)
            opened.pop_all()
        for end in (asked, answer, held):
            os.close(end)
        self._pid = pid
        self._ask, self._answers = os.fdopen(ask, "wb"), os.fdopen(answers, "rb")

    def ask(self, number: int, rows: Sequence[Sequence[int]]) -> None:
        """Have it work; it takes in all rows before it begins, so it never stands in the way of a longer list."""
        try:
            _write(self._ask, number, rows)
        except OSError as error:
            raise self._gone() from error

    def answers(self) -> list[int]:
        """What it found."""
        found = _read(self._answers)
        if found is None:
            raise self._gone()
        return [value for (value,) in found[1]]

    def close(self) -> None:
        """End it, whatever it does."""
        os.close(self._lifeline)
        for pipe in (self._ask, self._answers):
            with suppress(OSError):
                pipe.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _gone(self) -> MaskedError:
        return MaskedError(f"process {self._pid}, which helps with --cores, has ended: start the run anew")


def _help(works: Sequence[Work], asked: int, answer: int, held: int) -> NoReturn:
    """What a fork does, to its end."""
    code = 1
    try:
        for how in ENDS:  # its role hears Ctrl-C, and then closes the pipes
            signal.signal(how, signal.SIG_IGN if how is signal.SIGINT else signal.SIG_DFL)
        _keep_only(asked, answer, held)
        end_with(held)
        with os.fdopen(asked, "rb") as questions, os.fdopen(answer, "wb") as answers:
            while (asked_for := _read(questions)) is not None:
                number, rows = asked_for
                _write(answers, 0, [(int(works[number](*row)),) for row in rows])
        code = 0
    finally:
        os._exit(code)


def _keep_only(*kept: int) -> None:
    """Close every other descriptor: a link that a fork held would outlive its role."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    below = 3
    for descriptor in sorted(kept):
        os.closerange(below, descriptor)
        below = descriptor + 1
    os.closerange(below, os.sysconf("SC_OPEN_MAX"))


def _write(pipe: BinaryIO, number: int, rows: Sequence[Sequence[int]]) -> None:
    """Rows of equally many integers."""
    texts = []
    for row in rows:
        for value in row:
            whole = int(value)
            text = whole.to_bytes(whole.bit_length() // 8 + 1, "little", signed=True)
            texts += [_LENGTH.pack(len(text)), text]
    blob = b"".join(texts)
    pipe.write(_HEAD.pack(number, len(rows), len(blob)) + blob)
    pipe.flush()


def _read(pipe: BinaryIO) -> tuple[int, list[list[int]]] | None:
    """What was written; None where the other side has ended."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    number, count, size = _HEAD.unpack(head)
    blob, values, at = pipe.read(size), list[int](), 0
    if len(blob) < size:
        return None
    while at < size:
        (length,) = _LENGTH.unpack_from(blob, at)
        at += _LENGTH.size + length
        values.append(int.from_bytes(blob[at - length : at], "little", signed=True))
    width = len(values) // max(1, count)
    return number, [values[width * row : width * (row + 1)] for row in range(count)]


def _close(descriptor: int) -> None:
    with suppress(OSError):
        os.close(descriptor)

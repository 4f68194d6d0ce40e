"""Where a client sits whose world is a function of its owner's, MODULE:FUNCTION, in place of lines on stdout or stdin.

    tell(decision, values)    what was learned: whole numbers, in the order of replicas and batch
    hear(decision)            gives what came of it: a number, or as many as there are, in the same order

Where decisions that are made again have other coins, one that takes `again` by name hears which telling is meant, as on
a line: 0 at first, and more each time that the decision is told anew.  Who hears must take it then: what the world has
by that decision's number may be of another arm.

The second is called in a thread, and may take as long as the world does: this role meanwhile hears of what becomes of
the others.  A call that is under way when all go on from before is the one of that decision, unless that is made again.

What such a function raises may hold any value, so of an error only its kind and its place are said.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpc.errors import ConfigError

from .line_desk import Lines, Outside
from .standing import Telling, times_told

Call = Callable[..., Any]


class Calls(Lines):
    """tells, hears: None where that is by lines."""

    def __init__(
        self, heard: int, told: IO[str], *, tells: Call | None = None, hears: Call | None = None, **rest: Any
    ) -> None:  # fmt: skip
        super().__init__(heard, told, **rest)
        self._tells, self._hears = tells, hears
        self._call: _UnderWay | None = None

    def begin(
        self, start: int, known: Iterable[np.ndarray] = (), last: np.ndarray | None = None, *, again: bool = False,
        told: Sequence[Telling] = (),
    ) -> None:  # fmt: skip
        """As of lines; what a call gives of a decision that is made again is of no use."""
        super().begin(start, known, last, again=again, told=told)
        if again and self._call is not None and self._call.number >= start:
            self._call.let_go()
            self._call = None

    def _say(self, number: int, values: list[float]) -> None:
        if self._tells is None:
            super()._say(number, values)
        else:
            _called(self._tells, number, values, **self._which(self._tells, number))

    def _which(self, function: Call, number: int) -> Mapping[str, int]:
        """What a function that takes it hears of which telling is meant."""
        return {"again": times_told(self._before, number)} if _takes_again(function) else {}

    def _next(self, number: int, wanted: int, outside: Outside, waiting: Callable[[str], None]) -> np.ndarray:
        if self._hears is None:
            return super()._next(number, wanted, outside, waiting)
        if self._call is None or self._call.number != number:
            which = self._which(self._hears, number)
            if not which and times_told(self._before, number):
                raise ConfigError(
                    f"decision {number} was told anew, and {_name(self._hears)} is not asked of which telling: take it "
                    f"as in {_name(self._hears)}(decision, again), and give what came of that one"
                )
            self._call = _UnderWay(self._hears, number, which)
        missing = f"{_name(self._hears)} gave nothing"
        self._await(self._call.over, time.monotonic() + self._within, outside, waiting, missing, number)
        given, self._call = self._call.given(), None
        try:
            values = np.atleast_1d(np.asarray(given, np.float64))
            fits = values.shape == (wanted,) and bool(np.isfinite(values).all())
        except (ValueError, TypeError):
            fits = False
        if not fits:
            raise ConfigError(
                f"{_name(self._hears)}({number}) gives {type(given).__name__} where {wanted} finite "
                f"number{'s are' * (wanted > 1)}{' is' * (wanted == 1)} due"
            )
        return values


class _UnderWay:
    """A call in a thread.  over: readable when it has ended."""

    def __init__(self, function: Call, number: int, which: Mapping[str, int]) -> None:
        self.number, self._which, self._given = number, which, list[Any]()
        self._error: ConfigError | None = None
        self.over, self._ends = os.pipe()
        threading.Thread(target=self._run, args=(function,), daemon=True).start()

    def _run(self, function: Call) -> None:
        try:
            self._given.append(_called(function, self.number, **self._which))
        except ConfigError as error:
            self._error = error
        finally:
            os.close(self._ends)

    def let_go(self) -> None:
        """Nobody waits for it any more."""
        os.close(self.over)

    def given(self) -> Any:
        """What it gave; the error of one that failed."""
        os.read(self.over, 1)
        self.let_go()
        if self._error is not None:
            raise self._error
        return self._given[0]


def found(where: str, home: Path) -> Call:
    """The function that MODULE:FUNCTION names: an installed one's, or that of a file beside the role's."""
    module, _, name = where.partition(":")
    if str(home) not in sys.path:
        sys.path.append(str(home))  # behind all that is installed, which no file here takes the place of
    try:
        made = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise ConfigError(f"{where}: {module} cannot be imported, {_place(error)}") from error
    if not callable(made):
        raise ConfigError(f"{where}: {module} has no function {name}")
    return made


def _takes_again(function: Call) -> bool:
    try:
        return "again" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some that are not written in Python
        return False


def _called(function: Call, *given: Any, **which: int) -> Any:
    try:
        return function(*given, **which)
    except Exception as error:
        raise ConfigError(f"{_name(function)} of decision {given[0]} failed, {_place(error)}") from None


def _name(function: Call) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _place(error: Exception) -> str:
    """The kind of an error and where it was raised, and none of its words."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([f"by {type(error).__name__}", *(f"in {Path(each.filename).name}:{each.lineno}" for each in last)])

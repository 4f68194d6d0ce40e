"""Where a client sits whose world is a function of its owner's, MODULE:FUNCTION, in place of lines on stdout or stdin.

    tell(decision, values)    what was learned: whole numbers, in the order of replicas and batch
    hear(decision)            gives what came of it: a number, or as many as there are, in the same order

What such a function raises may hold any value, so of an error only its kind and its place are said.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpc.errors import ConfigError

from .line_desk import Lines, Outside

Call = Callable[..., Any]


class Calls(Lines):
    """tells, hears: None where that is by lines."""

    def __init__(
        self, heard: int, told: IO[str], *, tells: Call | None = None, hears: Call | None = None, **rest: Any
    ) -> None:  # fmt: skip
        super().__init__(heard, told, **rest)
        self._tells, self._hears = tells, hears

    def _say(self, number: int, values: list[float]) -> None:
        if self._tells is None:
            super()._say(number, values)
        else:
            _called(self._tells, number, values)

    def _next(self, number: int, wanted: int, outside: Outside, waiting: Callable[[str], None]) -> np.ndarray:
        if self._hears is None:
            return super()._next(number, wanted, outside, waiting)
        given = _called(self._hears, number)
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


def _called(function: Call, *given: Any) -> Any:
    try:
        return function(*given)
    except Exception as error:
        raise ConfigError(f"{_name(function)} of decision {given[0]} failed, {_place(error)}") from None


def _name(function: Call) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _place(error: Exception) -> str:
    """The kind of an error and where it was raised, and none of its words."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([f"by {type(error).__name__}", *(f"in {Path(each.filename).name}:{each.lineno}" for each in last)])

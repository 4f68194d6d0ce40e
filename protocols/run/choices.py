"""Values that are given by name or number: members of an enum, and counts of any package.  Knows no program."""

from __future__ import annotations

import operator
from contextlib import suppress
from enum import Enum
from typing import Any, TypeVar

from mpc.errors import ConfigError

_E = TypeVar("_E", bound=Enum)


def values(kind: type[Enum]) -> str:
    """The names that may be given."""
    return ", ".join(member.value for member in kind)


def chosen(kind: type[_E], name: str, flag: str) -> _E:
    """The member of that name; ConfigError with all names where there is none."""
    try:
        return kind(name)
    except ValueError:
        raise ConfigError(f"{flag} is one of {values(kind)}, not {name!r}") from None


def whole_number(given: Any, what: str, least: int | None = None) -> int:
    """An integer of Python's own, numpy's too; ConfigError for what is none, or less than the least."""
    with suppress(TypeError):
        number = int(operator.index(given))
        if least is None or number >= least:
            return number
    raise ConfigError(f"{what} is a whole number{'' if least is None else f' from {least} on'}, not {given!r}")

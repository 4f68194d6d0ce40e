"""Options that name a member of an enum.  Knows names; no program."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

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

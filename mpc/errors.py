"""Every error a user can meet.  A message carries names, counts, bounds and the cure, never a value."""

from __future__ import annotations


class MaskedError(Exception):
    """Base of all errors of this project."""


class ConfigError(MaskedError):
    """The set-up does not fit together: wrong party number, unknown role, missing file."""


class RangeError(MaskedError, ValueError):
    """A value does not fit the range that was declared for it."""


class Desync(MaskedError):
    """Two parties are at different places, or run different programs."""


class PeerLost(MaskedError):
    """A party died, closed its connection, or stayed silent beyond the timeout."""

    def __init__(self, message: str, *, peer: int) -> None:
        super().__init__(message)
        self.peer = peer


class OutOfMaterial(MaskedError):
    """The offline material is used up, or is not what the program draws."""


class StoreRefused(MaskedError):
    """A material store is damaged, foreign, rolled back or in use."""


def told_to_peers(error: BaseException) -> str:
    """What the others hear of an error that stops a process: its kind, and its text where no value can be in it.

    A RangeError may say by how much its owner's value missed a bound; that is for the owner alone.
    """
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, MaskedError) and not isinstance(error, RangeError) else kind

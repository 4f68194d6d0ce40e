"""Every error a user can meet.  A message carries names, counts, bounds and the cure, never a value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

DEALER = -1
"""The peer that a PeerLost names where it is the dealer, who is no node."""


class MaskedError(Exception):
    """Base of all errors of this project.

    own: a value, in place of the {} in the message, for this process and its owner alone: str(error) has it.  told:
    the message as others may read it, with an ellipsis there.  logged: as this process's own log may keep it; that has
    `own` too where this is `counted`, and no value.
    witness: whether another process failed, and this one only saw it or was told.  reporter: the node that told it.
    """

    witness: bool = False
    reporter: int | None = None

    def __init__(self, message: str = "", *, own: str | None = None, counted: bool = False) -> None:
        super().__init__(message if own is None else message.replace("{}", own))
        self.told = message if own is None else message.replace("{}", "...")
        self.logged = str(self) if counted else self.told


class ConfigError(MaskedError):
    """The set-up does not fit together: wrong party number, unknown role, missing file."""


class RangeError(MaskedError, ValueError):
    """A value does not fit the range that was declared for it."""


class ProcessFailed(ConfigError):
    """A launched process failed, and with it the run.

    name, node: which.  code: its exit code, negative where a signal ended it.  kind, peer, witness: the error that it
    gave a record of, the peer that this named and whether it only saw another's end; where it gave none, "", None and
    False.
    """

    def __init__(
        self, message: str, *, name: str, node: int, code: int, kind: str = "", peer: int | None = None,
        witness: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.name, self.node, self.code = name, node, code
        self.kind, self.peer, self.witness = kind, peer, witness


class Desync(MaskedError):
    """Two parties are at different places, or run different programs."""

    def __init__(self, message: str, *, reporter: int | None = None) -> None:
        super().__init__(message)
        self.witness, self.reporter = reporter is not None, reporter


class PeerLost(MaskedError):
    """A party died, closed its connection, or stayed silent beyond the timeout.

    peer: its node.  witness: true, but where the peer is none of the processes that were launched together.  failed:
    whether it said that it stops with an error of its own.  begun: whether there is anything to go on with.
    """

    begun = True

    def __init__(
        self, message: str, *, peer: int, witness: bool = True, reporter: int | None = None, failed: bool = False
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.peer, self.witness, self.reporter, self.failed = peer, witness, reporter, failed


class StoppedTogether(PeerLost):
    """The parties were asked to stop, and did so.  done: after how many decisions."""

    def __init__(self, message: str, *, peer: int, done: int) -> None:
        super().__init__(message, peer=peer)
        self.done = done


class RunOver(MaskedError):
    """Who was started again calls one that has come to the end of the run, and needs nobody any more."""


class OutOfMaterial(MaskedError):
    """The offline material is used up, or is not what the program draws."""


class StoreRefused(MaskedError):
    """A material store is damaged, foreign, rolled back or in use."""


FAILED = "PeerFailed"
"""The kind of a `Told` of a PeerLost whose peer had an error of its own."""
STOPPED = "Stopped"
"""The kind of a `Told` that is no error: the parties stop after the decision that is its text."""
_PLACE = re.compile(r"""(?<!\S)(['"(]?)\S*/(?:.*/)?\S*?(?=['",:;)]*(?:\s|$))""")
"""Names of files in a line: from the first word with a slash to the last such word, since folders may have blanks."""


@dataclass(frozen=True)
class Told:
    """What a node's peers hear of the error that stops it: its kind, its text, whom it names, who told it that."""

    kind: str
    text: str = ""
    peer: int | None = None
    reporter: int | None = None


def told_to_peers(error: BaseException) -> Told:
    """What the others hear of an error that stops a process: its text only where no value can be in it.

    A RangeError may say by how much its owner's value missed a bound; that is for the owner alone.  So are the names
    of its files, which an ellipsis stands for.
    """
    kind = FAILED if isinstance(error, PeerLost) and error.failed else type(error).__name__
    if isinstance(error, ConfigError) and isinstance(error.__cause__, OSError):  # its machine took or gave nothing
        kind = OSError.__name__
    if not isinstance(error, MaskedError) or isinstance(error, RangeError):
        return Told(kind)
    text = _PLACE.sub(r"\1...", error.told)
    return Told(kind, text, error.peer if isinstance(error, PeerLost) else None, error.reporter)


def told_by_client(error: BaseException) -> Told:
    """The same of one that holds no shares: the kind, and whom it lost.  What it learned may be in any word."""
    return replace(told_to_peers(error), text="")

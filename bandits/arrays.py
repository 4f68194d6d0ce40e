"""numpy's files in a process of several threads.  Knows no file, and not what is in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_TRIES = 5

T = TypeVar("T")


def unhurried(read: Callable[[], T]) -> T:
    """What `read` returns, which opens a file and reads arrays of numpy's.

    numpy has Python parse the header of each array.  Before 3.11.8 Python counts for all threads together how deep it
    is in what it parses, and where two parse at a time it may stop one with SystemError, though nothing is wrong with
    the file.  It is read again then.
    """
    for _ in range(_TRIES - 1):
        try:
            return read()
        except SystemError:
            continue
    return read()

"""Threads take turns: a call of one begins when that of another has ended.  Knows no object that they share."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Turn:
    """Held during a call; by one thread, which may call again in it.

    A forked process has a turn of its own, since the thread that held this one may not be there to give it back.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class HasTurn(Protocol):
    """What threads take turns with."""

    turn: Turn


S = TypeVar("S", bound=HasTurn)


def in_turn(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method, in this thread's turn."""

    @functools.wraps(method)
    def waiting(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.turn:
            return method(self, *args, **kwargs)

    return waiting

"""How a process is tied to its launcher: it ends when that is gone, and both hear Ctrl-C.  Knows pipes and signals.

A lifeline is a pipe: the launcher alone holds the end that is written to, and never writes.  However the launcher ends,
the kernel closes that end, and a thread of each process it started wakes up.  A process that is frozen itself
(SIGSTOP) ends when it goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import ParamSpec

_P = ParamSpec("_P")

_LIFELINE = "MASKED_LIFELINE"
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals by which a user ends a process that can still tidy up."""


@contextlib.contextmanager
def lifeline() -> Iterator[tuple[int, dict[str, str]]]:
    """For a launcher: the descriptor that each process it starts is to inherit, and what tells it so."""
    read, write = os.pipe()
    try:
        yield read, {_LIFELINE: str(read)}
    finally:
        os.close(read)
        os.close(write)


def end_with_launcher() -> None:
    """Leave when the launcher of this process is gone, however it went; nothing to do where there is none."""
    if (given := os.environ.pop(_LIFELINE, None)) is None:
        return
    held = int(given)
    try:
        os.set_inheritable(held, False)
    except OSError:  # whoever stands between this process and the launcher did not hand it on
        return
    end_with(held)


def end_with(held: int) -> None:
    """Leave, whatever is being done, when the other end of this pipe is closed."""

    def wait() -> None:
        os.read(held, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def hear_ctrl_c() -> None:
    """Ctrl-C interrupts, also where this process was started with it ignored, as a shell starts its background."""
    if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def by_its_maker(tidy: Callable[_P, None]) -> Callable[_P, None]:
    """The same, for this process alone: a fork of it that unwinds does nothing, since what is there is not its own."""
    maker = os.getpid()

    def tidied(*words: _P.args, **named: _P.kwargs) -> None:
        if os.getpid() == maker:
            tidy(*words, **named)

    return tidied


@contextlib.contextmanager
def to_the_end() -> Iterator[None]:
    """Within it, a signal that would end this process waits until it is left."""
    if not _in_main_thread():
        yield
        return
    came: list[int] = []
    before = {how: signal.getsignal(how) for how in ENDS}

    def note(how: int, _: FrameType | None) -> None:
        came.append(how)

    _handle(dict.fromkeys(before, note))
    try:
        yield
    finally:
        _handle({how: handler for how, handler in before.items() if handler is not None})
        for how in came[:1]:
            signal.raise_signal(how)


def _handle(handlers: dict[signal.Signals, Callable[[int, FrameType | None], object] | int]) -> None:
    for how, handler in handlers.items():
        signal.signal(how, handler)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

"""Ctrl-C as a wish that a loop asks for, so that a run ends between two steps and keeps what it reached."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class Interrupt:
    """While it is entered, the first Ctrl-C or SIGTERM is only noted; a second one interrupts at once."""

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Interrupt:
        for how in (signal.SIGINT, signal.SIGTERM):
            self._before[how] = signal.signal(how, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for how, before in self._before.items():
            signal.signal(how, before)  # type: ignore[arg-type]

    def _note(self, how: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = how

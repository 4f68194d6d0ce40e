"""Options of a small run of the private bandit, and a blow to one role of its launch."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from ..harness import LIMIT, awaited, children

SMALL = ("--data", "synthetic", "--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2")


def roles(parent: int, name: str) -> list[int]:
    """The processes of a launch that play this role, in the order they were started."""
    return children(parent, "protocols.run.role_process", name)


class Struck:
    """Sends a signal to the last process of a role, once the puller has noted an arm below `keep`."""

    def __init__(self, role: str, how: signal.Signals, keep: Path) -> None:
        self.pid = 0
        self._role, self._how, self._keep = role, how, keep
        self._thread = threading.Thread(target=self._strike, daemon=True)

    def _strike(self) -> None:
        awaited(lambda: any(path.stat().st_size for path in self._keep.rglob("arms.bin")))
        self.pid = roles(os.getpid(), self._role)[-1]
        os.kill(self.pid, self._how)

    def __enter__(self) -> Struck:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(LIMIT)

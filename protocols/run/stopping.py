"""Ctrl-C as a wish: a run ends between two decisions, and keeps what it reached; a second Ctrl-C ends it at once.

Knows small files in a run's folder:

    launcher                     role p, of those that keep checkpoints
    stop          ---------->    seen after its decision d_p;  stands-p = d_p,
                  <----------    and it goes no further than d_p + 1 before it knows where to stop
    stop-at = 1 + max d_p  ->    goes on to that decision, keeps a checkpoint of it, and ends

A decision takes messages from every such role, so two of them are never more than one decision apart: none has passed
`stop-at`, and none waits for one that stopped before it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType

from mpc.errors import ConfigError, MaskedError, PeerLost

from .tagged_file import write


class Stopped(Exception):
    """A run that was asked to stop: `done` decisions are kept, and nothing came out that follows the last one."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done


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


class Stop:
    """A role's side.

    patience: seconds that it waits for the launcher to say where.  keeping: by node, all who are to say where they are.
    """

    def __init__(self, folder: Path, node: int, patience: float, keeping: Mapping[int, str] | None = None) -> None:
        self._patience, self._keeping = patience, keeping or {}
        self._folder, self._asked, self._stands = folder, folder / "stop", _stands(folder, node)
        self._seen = False
        self._at: int | None = None

    def here(self, done: int) -> bool:
        """Whether to stop after decision `done`; asked after each."""
        if not self._seen:
            if self._asked.exists():
                self._seen = True
                _note(self._stands, done)
            return False
        if self._at is None:
            self._at = self._told()
        return done >= self._at

    def _told(self) -> int:
        deadline = time.monotonic() + self._patience
        while (at := stopped_at(self._folder)) is None:
            if time.monotonic() > deadline:
                raise self._not_told()
            time.sleep(0.002)
        return at

    def _not_told(self) -> MaskedError:
        """Whom the launcher waits for, as far as that is known."""
        within = f"within {self._patience:g} s where"
        asked = "when the run was asked to stop"
        silent = {node: name for node, name in self._keeping.items() if not _stands(self._folder, node).exists()}
        if silent:
            hangs = "it stands" if len(silent) == 1 else "they stand"
            return PeerLost(f"{' and '.join(silent.values())} did not say {within} {hangs} {asked}", peer=min(silent))
        if self._keeping:
            return ConfigError(f"the launcher did not say {within} to stop {asked}: is it frozen?")
        return ConfigError(f"not all roles said {within} they stand {asked}")


@contextmanager
def stoppable(folder: Path, nodes: int, cycle: int, say: Callable[[str], None], unit: str) -> Iterator[None]:
    """While a launch runs: pass the first Ctrl-C on as a wish to stop after the same decision; a second interrupts."""
    over = threading.Event()

    def follow(interrupt: Interrupt) -> None:
        while not over.wait(0.05):
            if interrupt.asked:
                say(f"stopping after this {unit}; Ctrl-C again stops at once")
                ask_to_stop(folder, nodes, cycle, over)
                return

    with Interrupt() as interrupt:
        follower = threading.Thread(target=follow, args=(interrupt,), daemon=True)
        follower.start()
        try:
            yield
        finally:
            over.set()
            follower.join(1.0)


def ask_to_stop(folder: Path, nodes: int, cycle: int, over: threading.Event) -> None:
    """The launcher's side, until `over`.  cycle: a run goes on from whole numbers of so many decisions."""
    (folder / "stop").touch()
    while None in (stands := [_noted(_stands(folder, node)) for node in range(nodes)]):
        if over.wait(0.005):
            return
    furthest = max(at for at in stands if at is not None)
    _note(folder / "stop-at", -(-(furthest + 1) // cycle) * cycle)


def stopped_at(folder: Path) -> int | None:
    """The decision after which all roles end, once the launcher has said it."""
    return _noted(folder / "stop-at")


def _stands(folder: Path, node: int) -> Path:
    return folder / f"stands-{node}"


def _note(path: Path, number: int) -> None:
    write(path, str(number))


def _noted(path: Path) -> int | None:
    return int(path.read_text()) if path.exists() else None

"""A launched command seen from outside: its processes in /proc, what it said, what it left.

Knows Linux and two things about a launch: a role's environment has its place, and the dealer's command line says so.
Every process that a launch started, however deep and whoever its parent is by now, is known by a mark in its
environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpc.errors import DEALER
from mpc.nursery import OFF, Forked

from .faults_loaded import MARK, PLACE, REGISTER, TELLER, Loaded, forget, registered

THE_DEALER = "the dealer"
_POLL = 0.05


@dataclass(frozen=True)
class Process:
    """One process of a launch.  names: as whom an error may name it; without any it is no role.  node: the role's."""

    pid: int
    node: int
    names: tuple[str, ...]
    command: str

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return self.names[0] if self.names else self.command

    def hit(self, how: signal.Signals) -> None:
        """Send it a signal, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)


def processes(mark: str, nodes: Sequence[str] = (), *, everywhere: bool = True) -> list[Process]:
    """All processes alive whose mark begins so, roles in the order of their nodes.

    nodes: what the roles are called, where their places do not say it.  everywhere: look at all processes there are,
    also where a loaded interpreter has forked those that are wanted.
    """
    found = []
    if forked := REGISTER in os.environ:
        found += [_process(pid, command, own.get(PLACE), nodes) for pid, own, command in registered(mark)]
    if everywhere or not forked:
        found += _marked(mark, nodes)
    return sorted(found, key=lambda process: (not process.names, process.node == DEALER, process.node, process.pid))


def _marked(mark: str, nodes: Sequence[str]) -> list[Process]:
    """Those whose mark the kernel shows."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
                environment = _fields((folder / "environ").read_bytes())
                values = dict(field.partition("=")[::2] for field in environment)
                if values.get(MARK, "").startswith(mark):
                    command = _fields((folder / "cmdline").read_bytes())
                    found.append(_process(int(folder.name), command, values.get(PLACE), nodes))
    return found


def _process(pid: int, command: list[str], place: str | None, nodes: Sequence[str]) -> Process:
    node, names = DEALER, tuple[str, ...]()
    if "dealer" in command:
        names = (THE_DEALER,)
    elif place is not None:
        node, names = _named(json.loads(place), nodes)
    return Process(pid, node, names, " ".join(command))


def _named(place: Mapping[str, object], nodes: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """A role's node, and its names: as its place has it, and as the case has it."""
    node = int(str(place["node"]))
    told = place.get("names") or ()
    own = [str(told[node])] if isinstance(told, list) and node < len(told) else []
    known = [nodes[node]] if node < len(nodes) else [] if own else [f"node {node}"]
    return node, tuple(dict.fromkeys([*own, *known]))


def _fields(raw: bytes) -> list[str]:
    return raw.decode(errors="replace").rstrip("\0").split("\0")


class Launched:
    """A launcher and its processes, until the `with` is left: then none is alive."""

    def __init__(
        self, words: Sequence[str], mark: str, scratch: Path, temporary: Path, *, told: bool = False,
        loaded: Loaded | None = None, by: str = TELLER,
    ) -> None:  # fmt: skip
        """scratch: a folder for what it says.  temporary: the place of temporary files.  told: whether it is to write
        down whom it blames.  loaded: what is to fork it.  by: the module that runs it then, and writes that down."""
        self.mark, self._scratch, self._temporary = mark, scratch, temporary
        self._blamed = scratch / "blamed"
        scratch.mkdir(parents=True, exist_ok=True)
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary)}
        self._process: Forked | subprocess.Popen[bytes]
        self._started = time.monotonic()
        plain = [*([] if words[0].endswith(".py") else ["-m", "protocols"]), *words]
        command = ["-m", by, str(self._blamed), *words] if told else plain
        with (scratch / "stdout").open("wb") as out, (scratch / "stderr").open("wb") as err:
            if loaded is not None:
                words = [str(self._blamed), *words]
                self._process = loaded.launch(words, environment, out.fileno(), err.fileno(), by=by)
                return
            self._process = subprocess.Popen(
                [sys.executable, *command], env={**environment, OFF: "no"}, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Launched:
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self.mark)
        self._process.kill()  # also where its mark was not seen
        self._process.wait()

    @property
    def code(self) -> int | None:
        """The launcher's exit code, once it has ended."""
        return self._process.poll()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started

    def signal(self, how: signal.Signals) -> None:
        """For the launcher alone: its processes have sessions of their own."""
        if self.code is None:
            os.kill(self._process.pid, how)

    def ended_within(self, seconds: float) -> bool:
        """Wait so long for the launcher's end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))
        return self.code is not None

    def find(self, name: str, nodes: Sequence[str]) -> Process | None:
        """The process of a role, as soon as there is one; None when the launcher ends first."""
        while self.code is None:
            for process in processes(self.mark, nodes, everywhere=False):
                if name in process.names:
                    return process
            time.sleep(_POLL)
        return None

    def orphans(self, nodes: Sequence[str], patience: float = 5.0) -> list[str]:
        """Which processes outlive the launcher by so many seconds; a look takes a while on a busy machine."""
        deadline, looked = time.monotonic() + patience, 0.0
        while looked < deadline:
            time.sleep(2 * _POLL)
            looked = time.monotonic()
            if not (alive := processes(self.mark, nodes)):
                break
        return [process.name for process in alive]

    def said(self, stream: str = "stderr") -> str:
        """All of its stderr, or its stdout; a line of progress that is written over is a line."""
        return (self._scratch / stream).read_text(errors="replace").replace("\r", "\n")

    def blamed(self) -> int | None:
        """The node that its error stands for."""
        return None if (told := self.told()) in ("", "None") else int(told)

    def told(self) -> str:
        """What was written down."""
        return self._blamed.read_text() if self._blamed.exists() else ""

    def litter(self) -> list[str]:
        """Temporary files that are still there."""
        return sorted(str(path.relative_to(self._temporary)) for path in self._temporary.rglob("*") if path.is_file())


def end_all(mark: str) -> None:
    """Kill every process whose mark begins so, those too that they start meanwhile."""
    while alive := processes(mark):
        for process in alive:
            process.hit(signal.SIGKILL)
        time.sleep(_POLL)
    if REGISTER in os.environ:
        forget(mark)

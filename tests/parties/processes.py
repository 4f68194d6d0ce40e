"""Parties as processes under the launcher, and what they said."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from mpc.net import ports
from mpc.nursery import Nursery

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0  # seconds: nobody waits so long but for a machine that is busy
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "default",
}
DEAF = [
    sys.executable, "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
]  # fmt: skip
"""In front of a command: it begins with Ctrl-C ignored, as what a shell puts in the background."""
PARTY = own_command("tests.parties.party")
_LOADED = ("mpc.launch", "mpc.cases", "mpc.net.tcp", "offline")
"""What they import, and a process that they are forked off has loaded."""


def script(text: str) -> list[str]:
    """A process that runs Python text; the launcher forks it, as it does roles."""
    return own_command("tests.parties.newborn", text)


def ended_of(
    nursery: Nursery, load: Sequence[str], words: Sequence[str], environment: Mapping[str, str], *, limit: float
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """A process that is forked off a nursery and may launch others, when it has ended: it runs the first module."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, open(os.devnull) as nothing:
        streams = dict(enumerate(stream.fileno() for stream in (nothing, out, err)))
        child = nursery.forked(load, words, environment, streams, launches=True)
        try:
            code = child.wait(limit)
        finally:
            child.kill()
        said = [(stream.seek(0), stream.read())[1] for stream in (out, err)]
    return subprocess.CompletedProcess([load[0], *words], code, *said)


class Launched:
    """What the processes of one launch said, by name, and the launcher's error."""

    def __init__(
        self,
        command: Sequence[str],
        parties: int,
        *,
        hears: Callable[[Launched, str, str], None] | None = None,
        limit: float = PATIENCE,
        load: Sequence[str] = (),
        **rest: Any,
    ) -> None:
        self.pids: list[int] = []
        self.said: dict[str, list[str]] = {}
        self.error: ConfigError | None = None

        def output(name: str, line: str) -> None:
            self.said.setdefault(name, []).append(line)
            if hears is not None:
                hears(self, name, line)

        load = [*_LOADED, *(["mpc.net.gloo"] if rest.get("transport") == "gloo" else []), *load]
        try:
            launch(
                command, parties, environment=ENVIRONMENT, limit=limit, output=output, started=self.pids.extend,
                load=load, **rest,
            )  # fmt: skip
        except ConfigError as error:
            self.error = error

    def told(self, name: str) -> list[dict[str, Any]]:
        """The JSON lines of a process."""
        return [json.loads(line) for line in self.said.get(name, []) if line.startswith("{")]

    def outcome(self, name: str) -> dict[str, Any]:
        """Its only JSON line."""
        told = self.told(name)
        assert len(told) == 1, (name, self.said.get(name), self.error)
        return told[0]


def gone(pid: int) -> bool:
    """No such process, or only its entry."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ended(pid: int) -> bool:
    """Wait until a process that is not our child has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE)[0])
    finally:
        os.close(handle)


def free_port() -> str:
    """A port that nobody listens on, now or when it is needed."""
    return str(ports.free_port())

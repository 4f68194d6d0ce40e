"""Running `masked ... ppcb` in this process or in one of its own, and finding what a launch has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from protocols.cli import main

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0
SMALL = ("--data", "synthetic", "--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2")


def masked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process."""
    before = {how: signal.getsignal(how) for how in (signal.SIGTERM, signal.SIGHUP)}
    capsys.readouterr()
    code: Any = 0
    try:
        main(arguments)
    except SystemExit as stop:
        code = stop.code
    finally:
        for how, handler in before.items():
            signal.signal(how, handler)
    said = capsys.readouterr()
    return code, said.out, said.err


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON document of a command that succeeds."""
    code, out, err = masked(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def started(*arguments: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in ("MASKED_PLACE", "RANK")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "protocols", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=cwd, env=environment,
    )  # fmt: skip


def awaited(happened: Callable[[], Any]) -> Any:
    """What `happened` gives, as soon as it is true."""
    deadline = time.monotonic() + LIMIT
    while not (given := happened()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return given


def roles(parent: int, name: str) -> list[int]:
    """The processes of a launch that play this role, in the order they were started."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            try:
                line = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if b"protocols.ppcb.roles" in line and name.encode() in line:
                found.append(child)
    return sorted(found)


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

"""Running `masked ...` as a user does, in this process or in one of its own, and finding what a launch has started."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mpc.nursery import OFF, Nursery
from protocols.cli import COMMANDS, main
from tests.parties.processes import DEAF, ended_of

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300.0
Output = pytest.CaptureFixture[str]
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as roles have it, so that a launcher's nursery serves its roles and dealer
_PROGRESS = re.compile(r"(party 0: )?\w+ [\d,]+ of [\d,]+ ")


def masked(capsys: Output, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process; its words may be given one by one or as a line."""
    capsys.readouterr()
    code: Any = 0
    try:
        main([word for line in words for word in line.split()])
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    return code or 0, said.out, said.err


def document(capsys: Output, *words: str) -> dict[str, Any]:
    """The JSON document of a command that succeeds."""
    code, out, err = masked(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def refused(given: tuple[int, str, str], words: str) -> None:
    """A user's mistake: exit code 2 and one line with its cure, behind the usage where an option cannot be read."""
    code, out, err = given
    *before, last = err.splitlines()
    assert code == 2 and out == "" and "Traceback" not in err
    assert "error: " in last and words in last
    assert before[0].startswith("usage: ") if before else last.startswith("error: ")


def finished(*arguments: str, program: tuple[str, ...] = ("-m", "protocols")) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, when it has ended; `masked` is forked off one that has loaded its modules."""
    if program == ("-m", "protocols") and (warm := _warm()) is not None:
        with suppress(OSError):
            return _forked(warm, arguments)
    return subprocess.run(
        [sys.executable, *program, *arguments], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT,
        env=_environment(), check=False,
    )  # fmt: skip


@functools.cache
def _warm() -> Nursery | None:
    """None where there are no forks, or none are wanted, or where this is not the place that `finished` runs in."""
    if sys.platform != "linux" or os.environ.get(OFF) == "no" or Path.cwd() != ROOT:
        return None
    nursery = Nursery.new({**_environment(), **_ONE_THREAD})
    atexit.register(nursery.close)
    return nursery


def _forked(warm: Nursery, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    load = ["protocols", "protocols.cli", *(f"protocols.commands.{module}" for module in COMMANDS.values())]
    return ended_of(warm, load, arguments, {**_environment(), **_ONE_THREAD}, limit=LIMIT)


def started(
    *arguments: str, cwd: Path | str = ROOT, path: str = str(ROOT), deaf: bool = False
) -> subprocess.Popen[str]:  # fmt: skip
    """A command in a process of its own, which finds its modules in `path`.  deaf: to Ctrl-C, as in the background."""
    environment = _environment()
    environment["PYTHONPATH"] = os.pathsep.join([path, environment.get("PYTHONPATH", "")])
    command = [*(DEAF if deaf else []), sys.executable, "-m", "protocols", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment
    )  # fmt: skip


def awaited(happened: Callable[[], Any]) -> Any:
    """What `happened` gives, as soon as it is true."""
    deadline = time.monotonic() + LIMIT
    while not (given := happened()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return given


def children(parent: int, *words: str) -> list[int]:
    """The processes below a process whose command has all of these words, in the order they were started."""
    found, below = [], [parent]
    while below:
        with suppress(FileNotFoundError, ProcessLookupError):
            process = Path(f"/proc/{(one := below.pop())}")
            if one != parent and set(words) <= set(shown(process).split()):
                found.append(one)
            for task in (process / "task").iterdir():
                below += map(int, (task / "children").read_text().split())
    return sorted(found)


def without_progress(said: str) -> list[str]:
    """The lines of a command's stderr; how far a long run is, it says after two seconds."""
    return [line for line in said.splitlines() if not _PROGRESS.match(line)]


def shown(process: Path) -> str:
    """The command of a process as `ps` shows it."""
    return (process / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").replace("\0", " ")


def _environment() -> dict[str, str]:
    """This process's own, without what would make a party of it."""
    return {key: value for key, value in os.environ.items() if key not in ("MASKED_PLACE", "RANK")}

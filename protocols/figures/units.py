"""Figures as lists of units of work, each kept in a file, so that a figure that was stopped goes on where it was.

A unit is a name and a function that gives rows.  What is kept lies below the figures' own folder under a name that
belongs to the code that made it: once a module that the unit depends on has changed, it is made anew, or taken as it is
where that was asked for.  Knows files and processes; no bandit.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from mpc.errors import ConfigError
from mpc.lifeline import lifeline
from mpc.nursery import ONE_THREAD

from ..run.exits import say
from ..run.tagged_file import write
from .size import Size
from .sources import fingerprint

Rows = list[dict[str, Any]]
_ERROR = "error: "


@dataclass(frozen=True)
class Unit:
    """A piece of a figure: `make(*arguments)` gives its rows.  weight: its work, beside that of the other units."""

    name: str
    make: Callable[..., Rows]
    arguments: tuple[Any, ...]
    weight: float = 1.0

    @property
    def key(self) -> str:
        """A name for what its rows depend on, its size aside, which is in the folder's name."""
        given = [same_anywhere(argument) for argument in self.arguments if not isinstance(argument, Size)]
        text = f"{fingerprint(self.make.__module__)} {self.make.__qualname__} {given}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def same_anywhere(argument: Any) -> Any:
    """What stands for an argument in every process: a function's own text has its place in memory."""
    return f"{argument.__module__}.{argument.__qualname__}" if inspect.isfunction(argument) else argument


def keeping(out: Path) -> Path:
    """The folder below `out` for what is kept."""
    kept = out / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    (kept / ".gitignore").write_text("*\n")
    return kept


def collect(units: Sequence[Unit], folder: Path, *, jobs: int, command: Sequence[str], older: bool = False) -> Rows:
    """The rows of all units; those that are kept in `folder` are read, the others made and kept.

    command: what makes one unit, whose name follows, in a process of its own, where several jobs run.  older: whether
    what other code has made is taken where this has not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    here = {unit.name for unit in units if _path(folder, unit).exists()}
    of_others = {unit.name: found for unit in units if (found := _of_others(folder, unit))}
    taken = {name: found[-1] for name, found in of_others.items() if older and name not in here}
    if passed_over := sum(map(len, of_others.values())) - len(taken):
        say(f"{folder} has {passed_over} unit(s) of other code: not used, may be deleted")
    if taken:
        made = sorted({json.loads(path.read_text())["made"] for path in taken.values()})
        say(f"{len(taken)} of {len(units)} units are of other code, of {made[0]} to {made[-1]}: taken as they are")
    if here:
        say(f"{len(here)} of {len(units)} units are kept in {folder}")
    waiting = [unit for unit in units if unit.name not in here | taken.keys()]
    if jobs == 1 or len(waiting) < 2:
        progress = _Progress(waiting)
        for unit in waiting:
            started = time.monotonic()
            make(unit, folder)
            progress.made(unit, started)
    else:
        _in_processes([(unit, [*command, unit.name]) for unit in waiting], jobs)
    places = [taken.get(unit.name) or _path(folder, unit) for unit in units]
    return [row for place in places for row in json.loads(place.read_text())["rows"]]


def make(unit: Unit, folder: Path) -> None:
    """Make a unit's rows and keep them."""
    rows = unit.make(*unit.arguments)
    made = datetime.now(timezone.utc).isoformat(timespec="minutes")
    write(_path(folder, unit), json.dumps({"made": made, "rows": rows}))


def _of_others(folder: Path, unit: Unit) -> list[Path]:
    """What other code has kept of it, the newest last."""
    found = [path for path in folder.glob(f"{unit.name}.*.json") if path != _path(folder, unit)]
    return sorted(found, key=lambda path: (json.loads(path.read_text())["made"], path.name))


def write_csv(rows: Rows, path: Path) -> None:
    """Rows as a table; the columns are those of all rows, in order of appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _in_processes(work: Sequence[tuple[Unit, list[str]]], jobs: int) -> None:
    """Run the commands, `jobs` at a time; the first that fails ends all, and however this process ends, they do."""
    waiting, running = list(work), dict[subprocess.Popen[bytes], tuple[Unit, float, IO[bytes]]]()
    progress = _Progress([unit for unit, _ in work])
    with lifeline() as (held, tie):
        environment = {**ONE_THREAD, **os.environ, **tie}
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    unit, command = waiting.pop(0)
                    # a session of its own: Ctrl-C is heard here, and said once, as is what several stumble over
                    said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
                    process = subprocess.Popen(
                        command, env=environment, pass_fds=[held], start_new_session=True, stderr=said
                    )  # fmt: skip
                    running[process] = unit, time.monotonic(), said
                time.sleep(0.05)
                for process in [process for process in running if process.poll() is not None]:
                    unit, started, said = running.pop(process)
                    with said:
                        if process.returncode:
                            raise ConfigError(_why(unit, process.returncode, said))
                    progress.made(unit, started)
        finally:
            for process, (_, _, said) in running.items():
                process.terminate()
                process.wait()
                said.close()


def _why(unit: Unit, code: int, said: IO[bytes]) -> str:
    """What a process said last, where that is an error for a user; else all that it said is shown."""
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()
    if lines and lines[-1].startswith(_ERROR):
        return lines[-1].removeprefix(_ERROR)
    for line in lines:
        say(line)
    return f"unit {unit.name} failed with exit code {code}"


class _Progress:
    """Says what was made, and how long the others take if their work takes as long as that of those before."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._count, self._left = len(units), sum(unit.weight for unit in units)
        self._done, self._worked, self._begun = 0, 0.0, time.monotonic()

    def made(self, unit: Unit, started: float) -> None:
        """One more; it was started then."""
        now = time.monotonic()
        self._done, self._worked, self._left = self._done + 1, self._worked + unit.weight, self._left - unit.weight
        left = (now - self._begun) / self._worked * self._left
        more = f"; about {left / 60:.0f} min to go" if left >= 60 else ""
        say(f"{self._done} of {self._count}: {unit.name}, {now - started:.0f} s{more}")


def _path(folder: Path, unit: Unit) -> Path:
    return folder / f"{unit.name}.{unit.key}.json"

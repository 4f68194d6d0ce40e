"""Figures as lists of units of work, each kept in a file, so that a figure that was stopped goes on where it was.

A unit is a name and a function that gives rows.  Knows files and processes; no bandit.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Unit:
    """A piece of a figure: `make(*arguments)` gives its rows; a function of a module, so that a process can call it."""

    name: str
    make: Callable[..., Rows]
    arguments: tuple[Any, ...]


def collect(units: Sequence[Unit], folder: Path, *, jobs: int) -> Rows:
    """The rows of all units; those that are kept in `folder` are read, the others made and kept."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [unit for unit in units if not _path(folder, unit).exists()]
    if len(waiting) < len(units):
        _say(f"{len(units) - len(waiting)} of {len(units)} units are kept in {folder}")
    for done, (unit, rows, seconds) in enumerate(_made(waiting, jobs), 1):
        fresh = _path(folder, unit).with_suffix(".new")
        fresh.write_text(json.dumps(rows))
        fresh.replace(_path(folder, unit))
        _say(f"{done} of {len(waiting)}: {unit.name}, {seconds:.0f} s")
    return [row for unit in units for row in json.loads(_path(folder, unit).read_text())]


def write_csv(rows: Rows, path: Path) -> None:
    """Rows as a table; the columns are those of all rows, in order of appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _made(units: Sequence[Unit], jobs: int) -> Iterator[tuple[Unit, Rows, float]]:
    if jobs < 1:
        raise ConfigError(f"at least 1 job, not {jobs}")
    if jobs == 1 or len(units) < 2:
        for unit in units:
            started = time.monotonic()
            yield unit, unit.make(*unit.arguments), time.monotonic() - started
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # the processes share the cores
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running: dict[Future[tuple[Rows, float]], Unit] = {pool.submit(_timed, unit): unit for unit in units}
        try:
            for future in as_completed(running):
                rows, seconds = future.result()
                yield running[future], rows, seconds
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _timed(unit: Unit) -> tuple[Rows, float]:
    started = time.monotonic()
    return unit.make(*unit.arguments), time.monotonic() - started


def _path(folder: Path, unit: Unit) -> Path:
    return folder / f"{unit.name}.json"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

"""Mutants: small changes of the product's code, one at a time; each should make a test fail.

Changes are drawn at random from all that can be made in the rooms: a comparison, an operator, a number by 1, a
condition, a call left out, arguments swapped, nothing returned.  Each is made in a private copy of the project, and
pytest runs there until a test fails: first the tests named after the changed module, then those of its room that name
the module or the changed function, then the rest of the room, then those of other rooms that import the module.
A test that fails is run again without the change: only if it passes there has it killed the mutant; else it is left
out from then on.  A test that hangs is ended by its own timeout, and all tests of a mutant after --limit seconds.

An `alive` mutant is a test that is missing, or means the same as the code: look at each.  What cannot change a meaning
is not drawn (texts, errors that are raised, assertions, __repr__, annotations, sizes of buffers, seconds of patience).

The table goes to stdout, a line for each mutant to stderr, everything to --json; exit code 1 if any is alive.

examples:
  scripts/mutants                                  40 mutants of all rooms: about an hour
  scripts/mutants --seed 2 --count 200 --jobs 2    other ones, and more; a core for each job
  scripts/mutants --rooms mpc/ops offline          of folders, or of one file: --rooms mpc/ops/lookup.py
  scripts/mutants --show --seed 1                  draws them, and runs nothing
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from mpc.errors import ConfigError
from mpc.tables import markdown

from ..run.exits import exit_codes, say
from .faults_processes import MARK, end_all
from .mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("mpc", "offline", "bandits", "protocols")
_BESIDE = ("protocols/bench", "protocols/figures")  # measure and draw; what they say is looked at
_COLUMNS = ("place", "s"), ("change", "s"), ("killed by", "s")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.  killer: the test that failed, "" where it is alive."""

    mutant: Mutant
    killer: str
    seconds: float


class Copy:
    """A private copy of a project, with one mutant in it at a time."""

    def __init__(self, root: Path, home: Path, mark: str, limit: float) -> None:
        self.tree, self._mark, self._limit, self._changes = home / "tree", mark, limit, 0
        shutil.copytree(root, self.tree, ignore=shutil.ignore_patterns(".*", "runs", "__pycache__"))
        (self.tree / ".venv").symlink_to(root / ".venv")
        (home / "shared").symlink_to(root.parent / "shared")
        (home / "tmp").mkdir()
        places = {"PYTHONPATH": self.tree, "PYTHONPYCACHEPREFIX": home / "cache", "TMPDIR": home / "tmp"}
        self._environment = {**os.environ, **{name: str(place) for name, place in places.items()}, MARK: mark}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def change(self, file: str, source: bytes) -> None:
        """Write a module, with a time of its own: Python takes an older one of its size and second for the same."""
        self._changes += 1
        (self.tree / file).write_bytes(source)
        os.utime(self.tree / file, (self._changes, self._changes))

    def test(self, *arguments: str) -> tuple[int, str]:
        """pytest's exit code, -SIGKILL where it took too long, and what it said."""
        command = [sys.executable, "-m", "pytest", "-x", "--tb=no", "-rfE", *arguments]
        with subprocess.Popen(
            command, cwd=self.tree, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            said = ""
            with contextlib.suppress(subprocess.TimeoutExpired):
                said, _ = process.communicate(timeout=self._limit)
            end_all(self._mark)
        return process.returncode, said


def seen_by(mutant: Mutant, root: Path) -> list[str]:
    """Files of tests that may see a mutant, those that look at it first."""
    parts = Path(mutant.file).with_suffix("").parts
    stem = parts[-2] if parts[-1] == "__init__" else parts[-1]
    room = root / "tests" / Path(*parts[:-1])
    while not [*room.glob("**/test_*.py")] and room != root / "tests":
        room = room.parent
    named = {"test_" + "_".join(parts[at:]) for at in range(len(parts))}
    words = re.compile(r"\b(" + "|".join(map(re.escape, {stem, *mutant.within[:1]})) + r")\b")
    package = r"\.".join(parts[:-1])
    importing = re.compile(rf"^\s*(from|import) {package}(\.{stem}\b| import .*\b{stem}\b)", re.M)

    def rank(file: Path) -> int | None:
        if file.is_relative_to(room):
            return 0 if file.stem in named else 1 if words.search(file.read_text()) else 2
        return 3 if importing.search(file.read_text()) else None

    files = ((rank(file), file.relative_to(root).as_posix()) for file in (root / "tests").rglob("test_*.py"))
    return [name for _, name in sorted((place, name) for place, name in files if place is not None)]


def outcome(mutant: Mutant, copy: Copy, unsound: set[str]) -> Outcome:
    """Make the change, run tests until one fails, take the change back.  unsound: tests that fail without it, too."""
    started, source = time.monotonic(), (copy.tree / mutant.file).read_bytes()
    while True:
        copy.change(mutant.file, mutant.applied(source))
        code, said = copy.test(*seen_by(mutant, copy.tree), *(f"--deselect={test}" for test in sorted(unsound)))
        copy.change(mutant.file, source)
        failed = _FAILED.search(said)
        killer = failed[1] if failed else f"pytest ended with {code}"
        if code == 1 and (killer in unsound or copy.test(killer)[0] != 0):
            unsound.add(killer)
            continue
        alive = code in (0, 5)  # 5: there are none but unsound ones
        return Outcome(mutant, "" if alive else killer, time.monotonic() - started)


def drawn(root: Path, rooms: Sequence[str], *, count: int, seed: int) -> list[Mutant]:
    """So many of all that can be made; in the order of their files."""
    found: list[Mutant] = []
    for room in rooms:
        files = [root / room] if (root / room).is_file() else sorted((root / room).rglob("*.py"))
        if not files:
            raise ConfigError(f"--rooms {room}: there is no such folder or module")
        for file in files:
            if not (name := file.relative_to(root).as_posix()).startswith(_BESIDE):
                found += mutants(file.read_bytes(), name)
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    return sorted(chosen, key=lambda mutant: (mutant.file, mutant.start, mutant.after))


def campaign(
    root: Path, chosen: Sequence[Mutant], *, jobs: int = 1, limit: float = 900.0
) -> Generator[Outcome, None, None]:
    """Outcomes as they come; no process and no copy is left afterwards."""
    mark, unsound = secrets.token_hex(8), set[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch, ThreadPoolExecutor(jobs) as pool:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for job in range(jobs):
            copies.put(Copy(root, Path(scratch) / str(job), f"{mark}-{job}-", limit))

        def play(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                return outcome(mutant, copy, unsound)
            finally:
                copies.put(copy)

        first = copies.get()
        code, said = first.test("--collect-only", "tests")
        copies.put(first)
        if code != 0:
            raise ConfigError(f"the tests cannot be collected without any mutant: {said.strip().splitlines()[-1]}")
        waiting = [pool.submit(play, mutant) for mutant in chosen]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            while not all(future.cancel() or future.done() for future in waiting):
                end_all(mark)
                time.sleep(0.1)


def table(outcomes: Iterable[Outcome]) -> str:
    """Markdown: those alive first, and how many were killed."""
    found = sorted(outcomes, key=lambda each: (each.killer != "", each.mutant.file, each.mutant.line))
    cells = (
        (f"{each.mutant.file}:{each.mutant.line}", f"`{each.mutant}`", each.killer or "**alive**") for each in found
    )
    rows = markdown(_COLUMNS, ([cell.replace("|", "\\|") for cell in row] for row in cells))
    return "\n".join([*rows, "", f"{sum(bool(each.killer) for each in found)} of {len(found)} mutants were killed."])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--count", type=int, default=40, help="how many are drawn (40)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument(
        "--rooms", nargs="+", metavar="ROOM", default=ROOMS, help=f"folders or modules ({' '.join(ROOMS)})"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (1); more only where cores are free")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for all tests of one mutant (900)")
    parser.add_argument("--show", action="store_true", help="say what is drawn, and run nothing")
    parser.add_argument("--json", type=Path, help="write every mutant and what became of it to this file")
    return parser.parse_args()


def _played(options: argparse.Namespace, chosen: Sequence[Mutant]) -> list[Outcome]:
    """Play all; what there is when it is stopped is printed and written too."""
    found: list[Outcome] = []
    try:
        with contextlib.closing(campaign(ROOT, chosen, jobs=options.jobs, limit=options.limit)) as outcomes:
            for each in outcomes:
                found.append(each)
                place = f"{len(found)} of {len(chosen)}: {each.mutant.file}:{each.mutant.line} {each.mutant}"
                say(f"{place}: {each.killer or 'ALIVE'} ({each.seconds:.0f} s)")
    finally:
        print(table(found))
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return found


def main() -> None:
    """Draw, change, test, print."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with exit_codes():
        for name in ("count", "jobs", "limit"):
            if (given := getattr(options, name)) < 1:
                raise ConfigError(f"--{name} is at least 1, not {given:g}")
        chosen = drawn(ROOT, options.rooms, count=options.count, seed=options.seed)
        if options.show:
            print("\n".join(f"{mutant.file}:{mutant.line} {mutant}" for mutant in chosen))
            return
        found = _played(options, chosen)
    if not all(each.killer for each in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

"""Mutants: small changes of the product's code, one at a time; each should make a test fail.

Changes are drawn at random from all that can be made in the rooms: a comparison, an operator, a number by 1, a
condition, a call left out, arguments swapped, nothing returned.  Each is made in a private copy of the project, and
those tests that run the changed line are run there until one fails, the quickest first, as many as take --most
seconds without a change.  Which tests these are is found by a first run of all, which takes about twice the suite's
time; --lines keeps what it found for other runs on the same code and tests.  A test that fails is run again without
the change: only if it passes there has it killed the mutant; else it is left out from then on.  A test that hangs is
ended by its own timeout; a mutant whose tests together take over --limit seconds counts as alive.

An `alive` mutant is a test that is missing, or means the same as the code: look at each.  What cannot change a meaning
is not drawn (texts, errors that are raised, assertions, __repr__, annotations, sizes of buffers, seconds of patience).

The table goes to stdout, a line for each mutant to stderr, everything to --json as it comes: a mutant that is in the
file is not played again, so a run that was stopped goes on.  Who has looked at one that is alive and found that it
means the same writes the "reason" into the file; --again plays the others that were alive, on today's code.  Exit code
1 if any is alive without a reason.

examples:
  scripts/mutants                                  40 mutants of all rooms
  scripts/mutants --seed 2 --count 200 --jobs 2    other ones, and more; a core for each job
  scripts/mutants --rooms mpc/ops offline          of folders, or of one file: --rooms mpc/ops/lookup.py
  scripts/mutants --show --seed 1                  draws them, and runs nothing
  scripts/mutants --json found.json --again        after tests were written for those alive
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
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mpc.errors import ConfigError
from mpc.nursery import OFF

from ..run.exits import exit_codes, say
from . import tests_of_lines, warm_pytest
from .faults_processes import MARK, end_all
from .mutants_outcomes import Outcome, again, change, keep, kept, table
from .mutations import Mutant, mutants
from .tests_of_lines import TOLD, TestsOfLines, collected

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("mpc", "offline", "bandits", "protocols")
_BESIDE = ("protocols/bench", "protocols/figures", "mpc/cases.py")  # measure, draw, are played by tests
_FIRST = 10.0
"""Seconds of the tests that are run in a first turn: pytest takes longer to begin where it is given many."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)


class Copy:
    """A private copy of a project, with one mutant in it at a time, and a process whose forks run its tests."""

    def __init__(self, root: Path, home: Path, mark: str, limit: float) -> None:
        self.tree, self.home, self._limit, self._mark, self._changes = home / "tree", home, limit, mark, 0
        shutil.copytree(root, self.tree, ignore=shutil.ignore_patterns(".*", "runs", "__pycache__"))
        for made in (".venv", ".venv-crypten"):
            (self.tree / made).symlink_to(root / made)
        (home / "shared").symlink_to(root.parent / "shared")
        (home / "tmp").mkdir()
        self.environment = {**os.environ, "PYTHONPATH": str(self.tree), "TMPDIR": str(home / "tmp")}
        for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTEST_CURRENT_TEST"):
            self.environment.pop(name, None)
        self._server: subprocess.Popen[str] | None = None
        self._fork = 0

    def change(self, file: str, source: bytes) -> None:
        """Write a module, with a time of its own: Python takes an older one of its size and second for the same."""
        self._changes += 1
        (self.tree / file).write_bytes(source)
        os.utime(self.tree / file, (self._changes, self._changes))

    def test(self, *arguments: str) -> tuple[int, str]:
        """pytest's exit code, -SIGKILL where it took too long or was ended, and what it said."""
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-m", warm_pytest.__name__], cwd=self.tree, env=self.environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        asks, answers = self._server.stdin, self._server.stdout
        assert asks is not None and answers is not None
        said = self.home / "said"
        words = ("-x", "--tb=no", "-rfE", *arguments)
        asks.write(json.dumps({"arguments": words, "environment": {MARK: self._mark}, "said": str(said)}) + "\n")
        asks.flush()
        self._fork = int(answers.readline())
        timer = threading.Timer(self._limit, self.end)
        timer.start()
        code = int(answers.readline())
        timer.cancel()
        self._fork = 0
        end_all(self._mark)
        return code, said.read_text(errors="replace")

    def end(self) -> None:
        """End the tests that run, and what they have started."""
        if self._fork:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._fork, signal.SIGKILL)
        end_all(self._mark)

    def close(self) -> None:
        """End the process that forks."""
        if self._server is not None:
            with self._server:
                self._server.kill()


def recorded(copy: Copy, jobs: int) -> TestsOfLines:
    """Run all tests without any mutant; which ran which lines."""
    (settings := copy.home / "coverage.ini").write_text(tests_of_lines.settings(copy.tree, copy.home))
    words = ("tests", "--tb=no", *TOLD, "--timeout=600", "-p", tests_of_lines.__name__)
    shared = ("-n", str(jobs)) if jobs > 1 else ()
    said = copy.home / "all_tests"
    with said.open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *shared], cwd=copy.tree, stdout=output, stderr=output, check=False,
            env={**copy.environment, "COVERAGE_PROCESS_START": str(settings), OFF: "no"}, start_new_session=True,
        )  # fmt: skip
    if done.returncode not in (0, 1):
        raise ConfigError(f"the tests cannot be run without any mutant: {said.read_text().strip().splitlines()[-1]}")
    return collected(copy.tree, copy.home, said.read_text())


def turns(tests: Sequence[str], seconds: Mapping[str, float], most: float) -> list[list[str]]:
    """As many tests as take `most` seconds, in two turns, the first a short one."""
    parts: list[list[str]] = [[], []]
    spent = 0.0
    for test in tests:
        if (spent := spent + seconds[test]) <= most or not parts[0]:
            parts[spent > _FIRST and bool(parts[0])].append(test)
    return [part for part in parts if part]


def outcome(mutant: Mutant, copy: Copy, parts: Sequence[Sequence[str]], unsound: set[str]) -> Outcome:
    """Make the change, run tests until one fails, take the change back.  unsound: tests that fail without it, too."""
    started, source = time.monotonic(), (copy.tree / mutant.file).read_bytes()
    killer = ""
    for part in parts:
        while not killer and (tests := [test for test in part if test not in unsound]):
            copy.change(mutant.file, mutant.applied(source))
            code, said = copy.test(*tests)
            copy.change(mutant.file, source)
            if code in (0, -signal.SIGKILL):
                break
            failed = _FAILED.search(said)
            killer = failed[1] if failed else f"pytest ended with {code}"
            if failed and copy.test(killer)[0] != 0:
                unsound.add(killer)
                killer = ""
    return Outcome(mutant, killer, time.monotonic() - started)


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
    root: Path,
    chosen: Sequence[Mutant],
    *,
    jobs: int = 1,
    limit: float = 900.0,
    most: float = 120.0,
    lines: Path | None = None,
) -> Generator[Outcome, None, None]:
    """Outcomes as they come; no process and no copy is left afterwards.  lines: where the record is, or is kept."""
    unsound = set[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch, ThreadPoolExecutor(jobs) as pool:
        mark = secrets.token_hex(8)
        copies = [Copy(root, Path(scratch) / str(job), f"{mark}-{job}-", limit) for job in range(jobs)]
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        if lines is not None and lines.exists():
            record = TestsOfLines.read(lines)
        else:
            record = recorded(copies[0], jobs)
            if lines is not None:
                record.write(lines)

        def play(mutant: Mutant) -> Outcome:
            copy = free.get()
            try:
                tests = record.seeing(mutant.file, mutant.line)
                return outcome(mutant, copy, turns(tests, record.seconds, most), unsound)
            finally:
                free.put(copy)

        for copy in copies:
            free.put(copy)
        waiting = [pool.submit(play, mutant) for mutant in chosen]
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            while not all(future.cancel() or future.done() for future in waiting):
                for copy in copies:
                    copy.end()
                time.sleep(0.1)
            for copy in copies:
                copy.close()


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
    parser.add_argument("--most", type=float, default=120.0, help="seconds of tests tried for one mutant (120)")
    parser.add_argument("--lines", type=Path, help="file of which tests run which lines; made where it is missing")
    parser.add_argument("--again", action="store_true", help="play those of --json that are alive without a reason")
    parser.add_argument("--show", action="store_true", help="say what is drawn, and run nothing")
    parser.add_argument("--json", type=Path, help="file of every mutant and what became of it, added to")
    return parser.parse_args()


def _played(options: argparse.Namespace, found: list[Outcome], chosen: Sequence[Mutant]) -> list[Outcome]:
    """Play all; what there is when it is stopped is printed and written too."""
    ways = {name: getattr(options, name) for name in ("jobs", "limit", "most", "lines")}
    try:
        with contextlib.closing(campaign(ROOT, chosen, **ways)) as outcomes:
            for number, each in enumerate(outcomes, 1):
                found.append(each)
                place = f"{number} of {len(chosen)}: {each.mutant.file}:{each.mutant.line} {each.mutant}"
                say(f"{place}: {each.killer or 'ALIVE'} ({each.seconds:.0f} s)")
                if options.json is not None:
                    keep(options.json, found)
    finally:
        print(table(found))
    return found


def main() -> None:
    """Draw, change, test, print."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with exit_codes():
        for name in ("count", "jobs", "limit", "most"):
            if (given := getattr(options, name)) < 1:
                raise ConfigError(f"--{name} is at least 1, not {given:g}")
        before = kept(options.json) if options.json is not None and options.json.exists() else []
        if options.again:
            if not before:
                raise ConfigError("--again plays mutants of an earlier run: name its file with --json")
            before, chosen = again(ROOT, before)
        else:
            played = {(change(each.mutant), each.mutant.line) for each in before}
            chosen = drawn(ROOT, options.rooms, count=options.count, seed=options.seed)
            chosen = [mutant for mutant in chosen if (change(mutant), mutant.line) not in played]
        if options.show:
            print("\n".join(f"{mutant.file}:{mutant.line} {mutant}" for mutant in chosen))
            return
        found = _played(options, before, chosen)
    if not all(each.killer or each.reason for each in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

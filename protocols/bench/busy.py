"""All tests that make processes or sockets, again and again beside two processes at full load, with Ctrl-C ignored.

First each file of tests is run once, undisturbed, to see which of its tests do.  Then these are run, file
by file, as often as --rounds says, as what a shell puts in the background: SIGINT is ignored there, until a test or a
launcher takes it over.  A test that fails and a process that outlives its file by 20 s are counted.  With --json what
was seen is kept file by file, and the same command goes on behind it.  Where the machine has other work anyway,
--busy 0 adds none; the table has the load average.  It goes to stdout, a line for each file to stderr; exit code 1 if
anything was wrong.

examples:
  scripts/loaded --json runs/loaded.json --rounds 1      how long a round takes here
  scripts/loaded --json runs/loaded.json --rounds 20     nineteen more, and the table of all
  scripts/loaded --json runs/loaded.json --rounds 20 --jobs 3   quicker, and more loaded
  scripts/loaded --tests tests/mpc/test_launch.py        three rounds of one file
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mpc.errors import ConfigError
from mpc.files import write_new

from ..run.exits import exit_codes, say
from .faults_processes import MARK, end_all, processes
from .process_starts import SAID

_COMPUTES = (
    "import os, sys, threading\n"
    "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()\n"
    "while True: pass"
)
_DEAF = [
    sys.executable, "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
]  # fmt: skip
"""In front of a command: it begins with Ctrl-C ignored."""
_OURS = secrets.token_hex(8)  # how the marks of this process begin
_LEAVES = 20.0  # seconds that a process may outlive the file that started it


@dataclass(frozen=True)
class Run:
    """Some tests of a file, run once.  tests: how many ended.  starts: those that made a process or a socket.
    failed: what each that failed said.  left: processes that outlived the run.  load: the machine's load average of a
    minute, at the end."""

    seconds: float
    tests: int
    starts: list[str]
    failed: dict[str, str]
    left: list[str]
    load: float = 0.0


@dataclass
class Seen:
    """A file of tests.  alone: the run that showed which tests are played again; loaded: the rounds."""

    alone: Run
    loaded: list[Run] = field(default_factory=list)


def files_of(places: Sequence[Path]) -> list[Path]:
    """All files of tests, those below folders too."""
    found = [file for place in places for file in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])]
    if missing := [file for file in found if not file.exists()]:
        raise ConfigError(f"there is no {missing[0]}: name files or folders of tests")
    return list(dict.fromkeys(found))


def run(tests: Sequence[str], *, limit: float, deaf: bool = False) -> Run:
    """Run these in a process of their own.  deaf: it begins with Ctrl-C ignored."""
    mark, begun = f"{_OURS}{secrets.token_hex(8)}", time.monotonic()
    words = ["-m", "pytest", "-q", "-p", "protocols.bench.process_starts", *tests]
    with tempfile.TemporaryDirectory(prefix="loaded-") as home:
        (said := Path(home) / "said").touch()
        process = subprocess.Popen(
            [*(_DEAF if deaf else []), sys.executable, *words],
            env={**os.environ, SAID: str(said), MARK: mark}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        failed, left = dict[str, str](), list[str]()
        try:
            complained, _ = process.communicate(timeout=limit)
            left = _left(mark)
            if process.returncode not in (0, 1, 5):  # 5: there was no test
                failed[tests[0]] = complained[-2000:]
        except subprocess.TimeoutExpired:
            failed[tests[0]] = f"not ended after {limit:g} s"
        finally:
            end_all(mark)
            process.communicate()
        told = [json.loads(line) for line in said.read_text().splitlines()]
    failed |= {one["test"]: one["words"] for one in told if one["outcome"] == "failed"}
    starts = [one["test"] for one in told if one["starts"]]
    return Run(time.monotonic() - begun, len(told), starts, failed, left, round(os.getloadavg()[0], 2))


def _left(mark: str) -> list[str]:
    until = time.monotonic() + _LEAVES
    while (left := processes(mark)) and time.monotonic() < until:
        time.sleep(0.2)
    return [process.command for process in left]


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute all the time, and end with this one, however it ends."""
    started = [subprocess.Popen([sys.executable, "-c", _COMPUTES], stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


def table(seen: dict[str, Seen]) -> str:
    """Markdown, a row for each file with tests that are played again, and one for all."""
    rows = {name: of for name, of in seen.items() if of.alone.starts}
    lines = [
        "| file | tests | rounds | failed | left behind | seconds a round | load average |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    sums = [0, 0, 0, 0, 0.0]
    loads = [one.load for of in rows.values() for one in of.loaded]
    for name, of in rows.items():
        failed, left = (sum(len(getattr(one, what)) for one in of.loaded) for what in ("failed", "left"))
        seconds = sum(one.seconds for one in of.loaded) / max(1, len(of.loaded))
        row = [len(of.alone.starts), len(of.loaded), failed, left, seconds]
        sums = [sum(pair) for pair in zip(sums, row, strict=True)]
        lines.append(_row(name, row, [one.load for one in of.loaded]))
    sums[1] = min((len(of.loaded) for of in rows.values()), default=0)
    return "\n".join([*lines, _row("all", sums, loads)])


def _row(name: str, row: Sequence[float], loads: Sequence[float]) -> str:
    *counts, seconds = row
    load = sum(loads) / max(1, len(loads))
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {seconds:.0f} | {load:.1f} |"


def read(file: Path | None) -> dict[str, Seen]:
    """What an earlier command saw."""
    if file is None or not file.exists():
        return {}
    told = json.loads(file.read_text())
    return {name: Seen(Run(**of["alone"]), [Run(**one) for one in of["loaded"]]) for name, of in told.items()}


def _keep(file: Path | None, seen: dict[str, Seen]) -> None:
    if file is not None:
        (new := file.with_suffix(".new")).unlink(missing_ok=True)
        write_new(new, json.dumps({name: asdict(of) for name, of in seen.items()}, indent=1).encode())
        new.replace(file)


def _say(name: str, what: str, one: Run) -> None:
    wrong = [*(f"FAILED {test}" for test in one.failed), *(f"LEFT {process}" for process in one.left)]
    say(f"{name}, {what}: {one.tests} tests in {one.seconds:.0f} s" + "".join(f"\n  {line}" for line in wrong))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/loaded", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="in all, with those that --json has (3)")
    parser.add_argument("--tests", nargs="+", type=Path, metavar="PLACE", default=[Path("tests")], help="(tests)")
    parser.add_argument("--busy", type=int, default=2, help="processes at full load beside them; 0: none (2)")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time, which load the machine as well (1)")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds that a file may take (1800)")
    parser.add_argument("--json", type=Path, help="file of what was seen, gone on from and added to")
    return parser.parse_args()


def _play(options: argparse.Namespace, seen: dict[str, Seen]) -> None:
    """What is missing in `seen`, several files at a time; a round is over before the next begins."""
    names, keeping, over = [file.as_posix() for file in files_of(options.tests)], threading.Lock(), threading.Event()

    def alone(name: str) -> None:
        if name in seen or over.is_set():
            return
        told = Seen(run([name], limit=options.limit))
        if over.is_set():  # it was ended, and says nothing
            return
        with keeping:
            seen[name] = told
            _say(name, "alone", told.alone)
            _keep(options.json, seen)

    def again(name: str, number: int) -> None:
        of = seen[name]
        if not of.alone.starts or len(of.loaded) >= number or over.is_set():
            return
        told = run(of.alone.starts, limit=options.limit, deaf=True)
        if over.is_set():
            return
        with keeping:
            of.loaded.append(told)
            _say(name, f"round {number}", told)
            _keep(options.json, seen)

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            list(pool.map(alone, names))
            with busy(options.busy):
                for number in range(1, options.rounds + 1):
                    list(pool.map(again, names, [number] * len(names)))
        except BaseException:
            over.set()
            end_all(_OURS)
            raise


def main() -> None:
    """Look, load, run, print."""
    options = _options()
    with exit_codes():
        for name, least in (("rounds", 1), ("busy", 0), ("jobs", 1), ("limit", 1)):
            if (given := getattr(options, name)) < least:
                raise ConfigError(f"--{name} is at least {least}, not {given:g}")
        seen = read(options.json)
        try:
            _play(options, seen)
        finally:
            print(table(seen))
    if any(one.failed or one.left for of in seen.values() for one in of.loaded):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

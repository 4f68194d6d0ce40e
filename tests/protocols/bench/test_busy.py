"""The loaded rounds in short: they find the tests that start processes, run these deaf, count, keep, and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from protocols.bench.busy import Run, Seen, read, table

from ..harness import ROOT

_FORKS = """
import os, subprocess
from mpc.nursery import own_command, start

def fork():
    process = start(own_command("mpc.curves"), os.environ, keep=[], stdout=None, stderr=2)
    assert process.wait() == 0

def test_that_is_the_first_to_fork():
    fork()

def test_that_forks_off_what_is_there():
    fork()
"""
_TESTS = """
import signal, socket, subprocess, sys
from pathlib import Path
PLACE = Path(__file__).parent

def test_that_starts_nothing():
    assert 1 + 1 == 2

def test_that_makes_a_socket():
    socket.socket().close()

def test_that_is_deaf_after_the_first_time():
    subprocess.run([sys.executable, "-c", ""], check=True)
    (PLACE / "count").open("a").write("x")
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN or (PLACE / "count").read_text() == "x"

def test_that_fails_the_third_time():
    subprocess.run([sys.executable, "-c", ""], check=True)
    print("the cause", file=sys.stderr)
    (PLACE / "times").open("a").write("x")
    assert (PLACE / "times").read_text() != "xxx"
"""


def test_rounds_are_counted_and_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tests := tmp_path / "tests" / "test_some.py").write_text(_TESTS)
    (forks := tmp_path / "tests" / "test_forks.py").write_text(_FORKS)
    (tmp_path / "tests" / "test_none.py").write_text("def test_nothing():\n    pass\n")
    kept = tmp_path / "seen.json"

    def loaded(rounds: int) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "protocols.bench.busy",
            "--tests",
            str(tmp_path / "tests"),
            "--busy",
            "0",
            "--jobs",
            "2",
        ]
        return subprocess.run(
            [*command, "--rounds", str(rounds), "--json", str(kept)], capture_output=True, text=True, timeout=300,
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip

    first = loaded(1)
    assert first.returncode == 0, first.stdout + first.stderr
    seen = read(kept)[tests.as_posix()]
    assert [test.rpartition("::")[2] for test in seen.alone.starts] == [
        "test_that_makes_a_socket", "test_that_is_deaf_after_the_first_time", "test_that_fails_the_third_time"
    ]  # fmt: skip
    assert len(read(kept)[forks.as_posix()].alone.starts) == 2
    assert [(one.tests, one.failed) for one in seen.loaded] == [(3, {})]
    second = loaded(2)
    assert second.returncode == 1 and "alone" not in second.stderr and "round 1" not in second.stderr
    assert "FAILED" in second.stderr and "test_that_fails_the_third_time" in second.stderr
    assert (tmp_path / "tests" / "count").read_text() == "xxx"
    again = json.loads(kept.read_text())[tests.as_posix()]["loaded"]
    assert [["the cause" in words for words in one["failed"].values()] for one in again] == [[], [True]]
    assert again[0]["seconds"] == seen.loaded[0].seconds
    assert "test_none" not in second.stdout and " | 3 | 2 | 1 | 0 | " in second.stdout


def test_the_table_adds_up() -> None:
    def one(**more: object) -> Run:
        return Run(**{"seconds": 2.0, "tests": 1, "starts": ["a"], "failed": {}, "left": [], "load": 1.0, **more})  # type: ignore[arg-type]

    seen = {
        "a": Seen(one(), [one(failed={"a": "no"}, left=["x", "y"]), one(seconds=4.0, load=4.0)]),
        "b": Seen(one(), [one()]),
    }
    assert table({**seen, "c": Seen(one(starts=[]))}).splitlines()[2:] == [
        "| a | 1 | 2 | 1 | 2 | 3 | 2.5 |", "| b | 1 | 1 | 0 | 0 | 2 | 1.0 |", "| all | 2 | 1 | 1 | 2 | 5 | 2.0 |"
    ]  # fmt: skip

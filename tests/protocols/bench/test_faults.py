"""The fault campaign in short: it strikes, judges what comes of it, keeps a log, and goes on behind it."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpc.errors import DEALER, ConfigError, ProcessFailed
from protocols.bench.faults import _ended, logged, table, tables
from protocols.bench.faults_loaded import MARK, REGISTER, _register, forget, registered
from protocols.bench.faults_told import blamed
from protocols.bench.faults_trial import claimed_twice

from ..harness import ROOT


def _campaign(log: Path, *words: str, system: str = "linucb-ds mpc") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "protocols.bench.faults", "--system", system, "--timeout", "30"]
    return subprocess.run(
        [*command, "--jobs", "2", "--forked", "--log", str(log), *words],
        capture_output=True, text=True, timeout=500, cwd=ROOT, check=False,
    )  # fmt: skip


@pytest.mark.timeout(550)  # on a busy machine it takes minutes to load all modules
def test_a_run_that_was_hit_says_so_once_and_goes_on_to_the_same_end(tmp_path: Path) -> None:
    log, faults = tmp_path / "faults.jsonl", ("--fault", "kill9", "ctrl-c-twice", "flip")
    done = _campaign(log, *faults)
    assert done.returncode == 0, done.stdout + done.stderr
    trials = logged(log)
    assert {trial.fault for trial in trials} == {"kill9", "ctrl-c-twice", "flip"}
    assert all(trial.ended and trial.same and not trial.wrong for trial in trials)
    log.write_text(log.read_text() + '{"system": "cut sh')
    again = _campaign(log, *faults, "--table", str(tmp_path / "faults.md"))
    assert again.returncode == 0 and "undisturbed" not in again.stderr
    assert logged(log) == trials
    assert (tmp_path / "faults.md").read_text() == table(trials) + "\n" == again.stdout


def test_a_role_between_machines_that_was_killed_is_started_again_alone(tmp_path: Path) -> None:
    log = tmp_path / "faults.jsonl"
    done = _campaign(log, "--machines", "--fault", "kill9 of a party", system="ppcb 2 machines, a dealer")
    assert done.returncode == 0, done.stdout + done.stderr
    (trial,) = logged(log)
    assert trial.resumed in ("alone", "unharmed", "all others had ended") and trial.same and not trial.wrong, trial
    assert done.stdout == tables([trial]) + "\n"


def test_a_trial_that_went_wrong_is_counted(tmp_path: Path) -> None:
    fine = {"system": "samba", "mode": "mpc", "fault": "kill9", "number": 0, "seed": 1, "role": "DC", "moment": 1.0,
            "ended": True, "exit_code": 2, "named": True, "resumed": "went on", "same": True}  # fmt: skip
    wrong = {**fine, "number": 1, "named": False, "same": False, "orphans": ["DC"], "drawn_twice": 2, "wrong": ["all"]}
    skipped = {**fine, "number": 2, "skipped": "no reason"}
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(trial) + "\n" for trial in (fine, wrong, skipped)))
    counts = "2 | 0 | 1 | 1 | 2 | 1 of 2 | 2: 2 | 2 went on | 1 | 1 | 0.0 |"
    assert table(logged(log)).splitlines()[2:] == [f"| samba | mpc | kill9 | {counts}", f"| all |  |  | {counts}"]


def test_only_processes_that_have_ended_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that began between a look and the forgetting is still seen, and ended by the next look."""
    monkeypatch.setenv(REGISTER, str(tmp_path))
    monkeypatch.setenv(MARK, "mark")
    _register(["alive"])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / f"mark.{gone.pid}").write_text(json.dumps(["1", {}, ["gone"]]))
    forget("mark")
    assert [(pid, command) for pid, _, command in registered("mark")] == [(os.getpid(), ["alive"])]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_campaign_that_is_stopped_launches_nothing_more() -> None:
    """Else trials that are ended begin anew, and it is never over."""
    over = threading.Event()

    def trial() -> None:
        while not over.is_set():
            time.sleep(0.01)

    with ThreadPoolExecutor(2) as pool:
        trials = _ended("no such mark", [pool.submit(trial), pool.submit(lambda: None)], over)
        next(trials)
        trials.close()  # type: ignore[attr-defined]
    assert over.is_set()


def test_whom_an_error_stands_for() -> None:
    killed = ProcessFailed("", name="party 1", node=1, code=-9, peer=0)
    lost = ProcessFailed("", name="party 1", node=1, code=2, kind="PeerLost", peer=DEALER, witness=True)
    own = ProcessFailed("", name="party 1", node=1, code=2, kind="RangeError")
    assert [blamed(error) for error in (killed, lost, own, ConfigError(), None)] == [1, DEALER, 1, None, None]
    with_cure = ConfigError()
    with_cure.__cause__ = lost
    assert blamed(with_cure) == DEALER


def test_a_block_that_is_claimed_twice_is_found() -> None:
    def claims(*given: tuple[int, int]) -> bytes:
        return b"".join(struct.pack("<QQ16s", block, used_up, b"tag") for block, used_up in given)

    before = claims((1, 0), (2, 0))
    assert claimed_twice(before, claims((1, 0), (2, 0), (2, 1), (3, 0))) == 0
    assert claimed_twice(before + b"cut", claims((1, 0), (2, 0), (2, 0))) == 1
    assert claimed_twice(before, claims((1, 0), (3, 0))) == 1
    assert claimed_twice(before, claims((3, 0)), b"") == 0
    assert claimed_twice(before, claims((2, 0), (3, 0)), b"") == 1
    assert claimed_twice(before, claims((1, 0), (3, 0)), claims((1, 0))) == 0

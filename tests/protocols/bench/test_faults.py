"""The fault campaign in short: it strikes, judges what comes of it, keeps a log, and goes on behind it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from mpc.errors import DEALER, ConfigError, ProcessFailed
from protocols.bench.faults import logged, table
from protocols.bench.faults_told import blamed
from protocols.bench.faults_trial import claimed_twice

from ..harness import ROOT


def _campaign(log: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "protocols.bench.faults", "--system", "linucb-ds mpc", "--timeout", "30"]
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


def test_a_trial_that_went_wrong_is_counted(tmp_path: Path) -> None:
    fine = {"system": "samba", "mode": "mpc", "fault": "kill9", "number": 0, "seed": 1, "role": "DC", "moment": 1.0,
            "ended": True, "exit_code": 2, "named": True, "resumed": "went on", "same": True}  # fmt: skip
    wrong = {**fine, "number": 1, "named": False, "same": False, "orphans": ["DC"], "drawn_twice": 2, "wrong": ["all"]}
    skipped = {**fine, "number": 2, "skipped": "no reason"}
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(trial) + "\n" for trial in (fine, wrong, skipped)))
    counts = "2 | 0 | 1 | 1 | 2 | 1 of 2 | 2: 2 | 2 went on | 1 | 1 | 0.0 |"
    assert table(logged(log)).splitlines()[2:] == [f"| samba | mpc | kill9 | {counts}", f"| all |  |  | {counts}"]


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

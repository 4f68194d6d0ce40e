"""The fault campaign in short: it strikes, judges what comes of it, keeps a log, and goes on behind it."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpc.errors import DEALER, ConfigError, ProcessFailed
from protocols.bench import faults_trial
from protocols.bench.faults import Ground, _ended, campaign, logged, table, tables
from protocols.bench.faults_cases import _LENGTHS, CASES, Case, Result
from protocols.bench.faults_kinds import FAULTS, Fault
from protocols.bench.faults_loaded import MARK, REGISTER, _register, forget, registered
from protocols.bench.faults_processes import Launched, Process
from protocols.bench.faults_told import blamed
from protocols.bench.faults_trial import Trial, Undisturbed, claimed_twice

from ..harness import ROOT

KEEPS = """
import pathlib, signal, sys
home = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]) / "checkpoints" / "party-0"
file = home / "checkpoint-1.npz"
if "--resume" not in sys.argv:
    home.mkdir(parents=True)
    (home / "new").write_bytes(b"kept")
    (home / "new").rename(file)
    signal.pause()
if file.read_bytes() != b"kept":
    print("error: it is damaged", file=sys.stderr)
    raise SystemExit(2)
print("{}")
"""


_BEHIND = [
    sys.executable, "-c",
    "import os, signal as s, sys\nfor how in (s.SIGINT, s.SIGHUP, s.SIGQUIT):\n    s.signal(how, s.SIG_IGN)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]  # fmt: skip
"""In front of a command: as nohup and a shell leave it in the background."""


def _campaign(log: Path, *words: str, system: str = "linucb-ds mpc") -> subprocess.CompletedProcess[str]:
    command = [*_BEHIND, sys.executable, "-m", "protocols.bench.faults", "--system", system, "--timeout", "30"]
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


def test_a_run_that_had_forgotten_what_it_kept_is_not_the_one_that_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a run may end between the look and the blow: another one is hit."""
    (script := tmp_path / "keeps.py").write_text(KEEPS)
    case = Case("any", "mpc", "any", ("party 0",), lambda run, undisturbed: "", script=str(script))
    beside = Undisturbed(0.1, {"party 0": (0.0, 0.1)}, 0.0, frozenset({"party-0"}), Result({}, {}))
    flip = next(fault for fault in FAULTS if fault.name == "flip")
    has_kept, looks = faults_trial._Scene._has_kept, list[bool]()

    def forgets_once(scene: faults_trial._Scene, launched: Launched) -> bool:
        looks.append(has_kept(scene, launched))
        if len(looks) == 1:
            shutil.rmtree(scene.disk / "out" / "checkpoints")
        return looks[-1]

    monkeypatch.setattr(faults_trial._Scene, "_has_kept", forgets_once)
    trial = faults_trial.play(
        case, flip, 0, beside, "kept and forgotten", tmp_path, None, timeout=30.0, seed=1, over=threading.Event()
    )  # fmt: skip
    assert looks == [True, True] and trial.refused and trial.resumed == "went on" and trial.same
    assert trial.file.endswith("checkpoint-1.npz") and not trial.wrong, trial


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


def test_where_a_trial_cannot_be_played_none_behind_it_is() -> None:
    """Such as one whose material has no room on its disk: an error of the campaign, and not of what it plays."""
    played: list[int] = []

    def play(case: Case, fault: Fault, number: int, *_: object, over: threading.Event, **__: object) -> Trial:
        played.append(number)
        if number:  # it takes its time
            over.wait(300)
        raise ChildProcessError("no room")

    case, undisturbed = CASES[0], Undisturbed(1.0, {"party 0": (0.0, 1.0)}, 0.0, frozenset(), Result({}, {}))
    ground = Ground([case], FAULTS, lambda *_: undisturbed, play)
    with pytest.raises(ChildProcessError, match="no room"):
        list(campaign(ground, [(case, FAULTS[0], number) for number in range(9)], say=lambda _: None))
    assert len(played) <= 2


@pytest.mark.parametrize(("fault", "steps", "right"), [("gone", 9, True), ("gone", 8, False), ("kill9", 9, False)])
def test_a_file_that_went_with_its_folder_is_no_wrong_result(
    fault: str, steps: int, right: bool, tmp_path: Path
) -> None:  # fmt: skip
    """Behind the last write: the run has ended well, and its document was printed."""
    whole = Undisturbed(1.0, {}, 0.0, frozenset(), Result({"steps": 9}, {"arms": np.zeros(9)}))
    (of,) = (each for each in FAULTS if each.name == fault)
    trial = Trial("ppcb", "material", fault, 0, 1, "launcher", 0.5)
    case = replace(CASES[0], same=lambda run, _: pytest.fail("there are no steps to compare"))
    scene = faults_trial._Scene(
        case, of, whole, "mark", tmp_path, tmp_path, 1.0, random.Random(1), trial, None, threading.Event()
    )
    scene._judge_result(Result({"steps": steps}, {}), {}, {})
    assert trial.same == right and (trial.wrong == []) == right


def test_longer_runs_keep_and_are_dealt_as_much_more() -> None:
    for case in CASES:
        longer, more = case.longer(10), _LENGTHS.findall(case.command)
        assert _LENGTHS.findall(longer.command) == [(name, f"{count}0") for name, count in more] and more
        assert longer.name == case.name and case.longer(1) == case
        assert (longer.plan is None) == (case.plan is None)
        if longer.plan is not None and case.plan is not None:
            assert longer.plan[1] == 10 * case.plan[1]


def test_a_run_that_was_over_before_anybody_was_seen_is_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles of a quick run on a quick machine may come and go between two looks."""
    (script := tmp_path / "quick.py").write_text("import time\n\ntime.sleep(1.0)\nprint('{}')\n")
    case = Case("any", "mpc", "any", ("party 0",), lambda run, undisturbed: "", script=str(script))
    looks, seen = list[str](), [Process(1, 0, ("party 0",), "")]

    def look(mark: str, *_: object, **__: object) -> list[Process]:
        looks.append(mark)
        return seen if mark != looks[0] else []

    monkeypatch.setattr(faults_trial, "processes", look)
    found = faults_trial.undisturbed(case, "quick-", tmp_path, 0, None)
    assert list(found.roles) == ["party 0"] and len(set(looks)) == 2

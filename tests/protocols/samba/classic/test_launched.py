"""Classic SAMBA with a process for each of its K + 3 participants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.samba import BernoulliArms, Seeds
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from protocols.published import participant
from protocols.published.participant import Cast, input_path
from protocols.run.checkpoint import Checkpoint
from protocols.run.folder import Keep
from protocols.samba.classic import run as classic_run
from protocols.samba.classic.cast import cast_of
from protocols.samba.classic.checkpoints import RunKept
from protocols.samba.classic.messages import Spec
from tests.parties.processes import ENVIRONMENT, script

from .runs import classic, same

MEANS = [0.2, 0.8, 0.5]
ALONE = [range(i, i + 1) for i in range(3)]
PROCESS = own_command("protocols.published.participant", "protocols.samba.classic.cast:PUBLISHED")


def launched(policy: Any = "ucb", budget: int = 60, means: Any = MEANS, **rest: Any) -> Any:
    return classic(policy, means, budget, processes=True, **rest)


@pytest.mark.parametrize("name", ["epsilon-greedy", "pursuit"])
def test_k_plus_three_processes_give_what_one_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    before = participant.launch

    def looking(command: list[str], *given: Any, **rest: Any) -> None:
        before(command, *given, **rest)
        left.append(len(list(Path(command[-1]).glob("*.in.json"))))

    monkeypatch.setattr(participant, "launch", looking)
    spec = Spec(name, eps=0.3)
    run, alone = launched(spec), classic(spec, MEANS, 60)
    assert same(run) and run.game.equals(alone.game) and run.total == alone.total
    assert run.counts == alone.counts and set(run.ledger) == set(alone.ledger)
    assert set(run.outcomes) == {"DC", "Controller", "Comp", "owner 0", "owner 1", "owner 2"}
    assert run.seconds_per_step > 0 and min(run.seconds.values()) > 0
    assert left == [0]  # a participant deletes its input


def test_twenty_owners() -> None:
    told: list[int] = []
    assert same(launched("ucb", 150, np.linspace(0.1, 0.9, 20), watch=told.append))
    assert told == sorted(told)


def test_a_killed_owner_is_named_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner that is pulled after step 60 kills itself."""
    text = """
import os, signal, sys
import protocols.samba.classic.cast as cast
from mpc.launch import party_main
from protocols.published.participant import main
reward = cast.reward
cast.reward = lambda *which: os.kill(os.getpid(), signal.SIGKILL) if which[-1] > 60 else reward(*which)
party_main(main)
"""
    before = participant.launch

    def fatal(command: list[str], *given: Any, **rest: Any) -> None:
        before([*script(text), *command[-2:]], *given, environment=ENVIRONMENT, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(participant, "launch", fatal)
        with pytest.raises(ConfigError, match=r"^owner \d was ended by SIGKILL"):
            launched("thompson", 90, MEANS[:2], folder=tmp_path, every=20)
    run = launched("thompson", 90, MEANS[:2], folder=tmp_path, resume=True)
    assert same(run) and run.sitting == 30
    with pytest.raises(ConfigError, match="no checkpoint of the owners: run without --resume, or in as many processes"):
        classic("thompson", MEANS[:2], 90, folder=tmp_path, resume=True)


@pytest.mark.usefixtures("one_hangs")
def test_an_owner_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped, not ended, so that its connection stays open."""
    before, process = participant.launch, {}

    def halting(*given: Any, **rest: Any) -> None:
        def started(pids: list[int]) -> None:
            process["owner 1"] = pids[4]

        def hear(name: str, line: str) -> None:
            if process and line.startswith("step "):
                os.kill(process.pop("owner 1"), signal.SIGSTOP)

        before(*given, **{**rest, "started": started, "output": hear})

    monkeypatch.setattr(participant, "launch", halting)
    with pytest.raises(ConfigError, match=r"Controller failed .*owner 1 was silent for 4 s: it hangs"):
        launched("ucb", 100_000, MEANS[:2], timeout=4.0)


@pytest.mark.parametrize(
    ("who", "change", "words"),
    [
        (
            "owner 1",
            {"key": "00" * 32},
            "Controller failed with exit code 2: owner 1's score at step 3 does not open at Comp",
        ),
        ("DC", {"budget": 1}, "Controller failed with exit code 2: DC orders 1 pulls of 2 arms"),
        ("owner 0", {"arms": 3}, "owner 0 failed with exit code 2: Controller plays with 2 owners, owner 0 with 3"),
    ],
)
def test_the_first_cause_is_reported_once(
    who: str, change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Cast.write

    def changed(cast: Cast, scratch: Path) -> None:
        write(cast, scratch)
        path = input_path(scratch, who)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    monkeypatch.setattr(Cast, "write", changed)
    with pytest.raises(ConfigError, match=words) as caught:
        launched(means=MEANS[:2])
    assert "party" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_each_process_is_given_its_own_input_only(tmp_path: Path) -> None:
    seeds = Seeds.of(1)
    cast = cast_of(
        RunKept(Spec("ucb"), MEANS, 9, seeds), ALONE, masks=b"\7" * 32, bits=256, insecure=True, start=0, keep=None
    )
    cast.write(tmp_path)
    names = list(cast.inputs)
    given = [json.loads(input_path(tmp_path, name).read_text()) for name in names]
    assert names == ["Controller", "Comp", "DC", "owner 0", "owner 1", "owner 2"]
    assert all(input_path(tmp_path, name).stat().st_mode & 0o077 == 0 for name in names)
    own = [set(one) - {"arms", "bits"} for one in given]
    owner = {"key", "common", "masks", "rewards", "keep", "means", "noise", "rows"}
    assert own == [{"seed", "start", "hosts"}, {"seed", "key"}, {"spec", "budget", "insecure"}, owner, owner, owner]
    assert given[0]["seed"] == seeds.order.hex() != given[1]["seed"]
    assert "07" * 32 not in json.dumps(given[:3]) and given[1]["key"] == given[3]["key"] == given[5]["key"]
    assert seeds.common.hex() not in json.dumps(given[:3]) and seeds.noise.hex() not in json.dumps(given)
    assert len({*given[3]["noise"], *given[4]["noise"], *given[5]["noise"]}) == 3
    assert [one["means"] for one in given[3:]] == [[mean] for mean in MEANS]


def test_a_participant_that_never_comes_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc.launch._SECONDS_TO_START", 0.5)
    cast = cast_of(
        RunKept(Spec("ucb"), MEANS[:2], 9, Seeds.of(1)), ALONE[:2], masks=bytes(32), bits=256, insecure=True, start=0,
        keep=None,
    )  # fmt: skip
    cast.write(tmp_path)
    role = "import protocols.published.participant as c; c.party_main(c.main)"
    absent = f"import json, os\nif json.loads(os.environ['MASKED_PLACE'])['node'] != 4:\n {role}"
    with pytest.raises(ConfigError, match="owner 1 did not join"):
        launch([*script(absent), PROCESS[-1], str(tmp_path)], 5, environment=ENVIRONMENT, timeout=2.5)


def test_a_participant_alone_says_how_it_is_started(tmp_path: Path) -> None:
    done = subprocess.run([*PROCESS, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and "masked launch samba" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_keeps_what_was_reached(tmp_path: Path) -> None:
    """The interrupt reaches the launcher alone; then the run goes on."""

    def press() -> None:
        while not all(list(tmp_path.glob(f"owner-{i}/*.npz")) for i in range(2)):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        launched("ucb", 1200, MEANS[:2], folder=tmp_path, every=50)
    run = launched("ucb", 1200, MEANS[:2], folder=tmp_path, resume=True)
    assert same(run) and 0 < run.sitting < 1198


def test_what_an_earlier_sitting_left_further_on_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner 0 was a checkpoint ahead when all were ended: from step 10 on that one is of no use."""
    arms = BernoulliArms(np.array(MEANS))
    this = RunKept(Spec("ucb"), arms.means.tolist(), 40, Seeds.of(1))
    this.begin(Keep(tmp_path, overwrite=True))
    for name, numbers in {"owner-0": [10, 30], "owner-1": [5, 10], "owner-2": [10]}.items():
        for done in numbers:
            Checkpoint(done, {}, {}).save(tmp_path / name)
    (tmp_path / "owner-1/checkpoint-000000015.new").touch()

    def ended(_: Any, cast: Cast, **__: Any) -> None:
        raise ConfigError(f"ended after {cast.inputs['Controller']['start']}")

    monkeypatch.setattr(classic_run, "launched", ended)
    with pytest.raises(ConfigError, match="ended after 10"):
        classic("ucb", folder=tmp_path, resume=True, processes=True)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("owner-*/checkpoint-*"))
    names = ["owner-0/checkpoint-000000010.npz", "owner-1/checkpoint-000000005.npz"]
    assert left == [*names, "owner-1/checkpoint-000000010.npz", "owner-2/checkpoint-000000010.npz"]
    this.begin(Keep(tmp_path, overwrite=True))
    assert not list(tmp_path.glob("owner-*/*"))

"""A process for each role: the twin's arms, the same document, and what is said when a process is lost or stopped."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ppcb_commands import LIMIT, SMALL, Struck, awaited, document, masked, roles, started
from ppcb_runs import ENVIRONMENT, SEED, name_of, played, settings

from mpc import ConfigError
from mpc.errors import MaskedError
from mpc.ledger import Entry
from offline import Plan
from protocols.ppcb.checkpoint import Checkpoint, checkpoint_at, checkpoints
from protocols.ppcb.launched import Launch, launched, plan_of
from protocols.ppcb.program import PULLER
from protocols.ppcb.roles import Task, payer
from protocols.ppcb.run import Run
from protocols.ppcb.settings import Division, Policy, Settings, Variant

Output = pytest.CaptureFixture[str]


def launch(given: Settings, parties: int, steps: int, home: Path, **rest: Any) -> Run:
    scratch = home / f"scratch{len(list(home.iterdir()))}"
    scratch.mkdir()
    how = Launch(parties, steps, SEED, home / "keep", **{"every": 8, "timeout": 20.0, **rest})
    return launched(ENVIRONMENT, given, how, scratch)


@pytest.mark.parametrize(
    ("changes", "parties"),
    [
        ({}, 3),
        ({"refresh": 2}, 2),
        ({"refresh": 30, "batch": 4, "division": Division.TABLE_NEWTON}, 2),
        ({"refresh": 11, "delay": 2, "batch": 2, "policy": Policy.THOMPSON}, 2),
        ({"variant": Variant.PUBLISHED}, 2),
    ],
    ids=lambda value: name_of(value) if isinstance(value, dict) else f"N{value}",
)
def test_a_launched_run_pulls_its_twins_arms(changes: dict[str, Any], parties: int, tmp_path: Path) -> None:
    """And costs what the simulated one costs."""
    given = settings(**changes)
    steps = 20 * given.batch
    run, simulated = launch(given, parties, steps, tmp_path), played(given, parties, steps)
    assert run.twin_arms is not None
    assert (run.arms == run.twin_arms).all() and run.differences == ()
    assert run.arms.shape == (steps, 3)
    assert run.ledger == simulated.ledger == (Entry(PULLER, "arm", 3 * steps, "it is pulled"),)
    for name in ("rounds", "opened_bytes", "client_hops"):
        assert getattr(run.cost, name) == getattr(simulated.cost, name), name
    assert run.seconds > 0 and run.offline_seconds > 0
    assert run.offline_bytes >= simulated.offline_bytes


def test_a_plan_is_what_a_turn_draws(parties: int) -> None:
    given = settings()
    plan, _, cost = plan_of(given, parties)
    run = played(given, parties, 10)
    assert plan.step_bytes == run.offline_bytes / 10
    assert (cost.rounds, cost.opened_bytes) == (12, run.cost.opened_bytes / 10)
    with_refresh = plan_of(settings(refresh=10), parties).plan
    assert with_refresh.step_bytes == played(settings(refresh=10), parties, 10).offline_bytes


KEYS = {
    "steps", "parties", "arms", "dim", "eps", "seed", "average_reward", "twin_average_reward", "first_difference",
    "rounds_per_step", "bytes_per_step_per_party", "offline_bytes_per_step", "seconds_per_step",
    "offline_seconds_per_step", "eta_per_step", "ledger",
}  # fmt: skip
EXTRAS = {"replicas", "client_hops_per_step", "sent_bytes_per_step_per_party"}


def test_run_and_launch_print_the_same_document(capsys: Output) -> None:
    """Whatever depends on the coins differs: a launched run's are fresh."""
    same = (*SMALL, "--steps", "24", "--seed", "3")
    run, launched_ = (document(capsys, how, "ppcb", *same) for how in ("run", "launch"))
    assert run.keys() == launched_.keys() == KEYS | EXTRAS
    for name in KEYS - {"average_reward", "twin_average_reward", "seconds_per_step", "offline_seconds_per_step"}:
        assert run[name] == launched_[name], name
    assert launched_["first_difference"] is None
    assert launched_["average_reward"] == launched_["twin_average_reward"]
    assert (launched_["steps"], launched_["parties"], launched_["arms"], launched_["dim"]) == (24, 2, 4, 8)


def arms_in(out: Path) -> dict[str, np.ndarray]:
    with np.load(out / "steps.npz") as kept:
        return dict(kept)


def test_an_interrupted_launch_goes_on_where_all_parties_stood(tmp_path: Path, capsys: Output) -> None:
    """Late rewards, refreshes and checkpoints every ten decisions; two processes are told apart by their files."""
    out = tmp_path / "run"
    how = (*SMALL, "--steps", "160", "--delay", "2", "--refresh", "5", "--checkpoint-every", "10", "--out", str(out))
    launcher = started("launch", "ppcb", *how)
    kept = [out / "checkpoints" / f"party-{party}" for party in range(2)]
    awaited(lambda: all(checkpoints(home) for home in kept))
    launcher.send_signal(signal.SIGINT)
    _, complained = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 130, complained
    assert "go on with --resume and --out" in complained and "Traceback" not in complained
    reached = json.loads((out / "result.json").read_text())["steps"]
    assert 0 < reached < 160 and reached % 10 == 0
    before = arms_in(out)
    assert (before["arms"] == before["twin_arms"]).all() and len(before["arms"]) == reached
    assert {path.stat().st_mode & 0o777 for home in kept for path in home.iterdir()} == {0o600}
    assert (out / "checkpoints" / "coin.key").stat().st_mode & 0o777 == 0o600

    code, _, complained = masked(capsys, "launch", "ppcb", *how, "--eps", "0.3", "--resume")
    assert code == 2 and "eps = 0.2, this one has 0.3" in complained
    code, _, complained = masked(capsys, "launch", "ppcb", *how, "--resume")
    assert code == 0, complained
    after = arms_in(out)
    assert after["arms"].shape == (160, 1)
    assert (after["arms"] == after["twin_arms"]).all()
    assert (after["arms"][:reached] == before["arms"]).all()
    result = json.loads((out / "result.json").read_text())
    assert result["ledger"] == [{"role": PULLER, "what": "arm", "count": 160, "why": "it is pulled"}]
    assert result["client_hops_per_step"] == 2


def test_parties_that_kept_different_steps_go_on_from_one_they_share(tmp_path: Path) -> None:
    """Party 1 lost its last checkpoint; both begin at the one before it."""
    given = settings(delay=1)
    launch(given, 2, 24, tmp_path)
    checkpoint_at(tmp_path / "keep" / "party-1", 24).unlink()
    again = launch(given, 2, 24, tmp_path, resume=True)
    assert again.twin_arms is not None and (again.arms == again.twin_arms).all()
    noted = np.fromfile(tmp_path / "keep" / "arms.bin", np.int64)
    assert (noted.reshape(24, 3) == again.arms).all(), "what was noted after that step is forgotten"
    assert Checkpoint.load(checkpoint_at(tmp_path / "keep" / "party-1", 24)).done == 24
    for party in range(2):
        for kept in checkpoints(tmp_path / "keep" / f"party-{party}"):
            kept.unlink()
    with pytest.raises(ConfigError, match=r"no checkpoint of all parties in .*: run without --resume"):
        launch(given, 2, 24, tmp_path, resume=True)


@pytest.mark.parametrize("role", ["owner", "payer"])
def test_a_process_that_is_killed_is_said_once(role: str, tmp_path: Path, capsys: Output) -> None:
    how = (*SMALL, "--steps", "60000", "--timeout", "5", "--out", str(tmp_path))
    with Struck(role, signal.SIGKILL, tmp_path):
        code, _, complained = masked(capsys, "launch", "ppcb", *how)
    assert code == 2
    lines = [line for line in complained.splitlines() if not line.startswith("step ")]
    assert lines == [f"error: {'party 1' if role == 'owner' else role} was ended by SIGKILL"]
    assert not any(roles(os.getpid(), name) for name in ("owner", "puller", "payer"))


def test_a_payer_whose_puller_left_says_so(tmp_path: Path) -> None:
    """The pipe between them ends: the payer is a witness, with a line and no traceback."""
    pipe, given = tmp_path / "world", settings(replicas=1)
    pipe.write_bytes(b"")
    task = Task(given, 2, decisions=3, start=0, every=1, keep=tmp_path, facts={})
    with pytest.raises(MaskedError, match="puller"):
        next(payer(np.zeros((3, 1, 1, 4)), task, pipe))


def test_a_payer_that_never_answers_is_named_within_the_timeout(tmp_path: Path, capsys: Output) -> None:
    """Half a second without a reward, and a few for the others to leave."""
    how = (*SMALL, "--steps", "60000", "--refresh", "0", "--timeout", "0.5", "--out", str(tmp_path))
    began = time.monotonic()
    with Struck("payer", signal.SIGSTOP, tmp_path) as struck:
        code, _, complained = masked(capsys, "launch", "ppcb", *how)
    assert code == 2 and time.monotonic() - began < 20
    lines = [line for line in complained.splitlines() if not line.startswith("step ")]
    assert len(lines) == 1 and "was silent for 0.5 s" in lines[0]
    assert not Path(f"/proc/{struck.pid}").exists()
    assert "payer" in lines[0] or "client 1" in lines[0], lines[0]


def test_material_that_was_dealt_before_is_enough(tmp_path: Path, capsys: Output) -> None:
    """No dealer, so no twin: its coins are nobody's here."""
    plan, home = tmp_path / "plan.json", tmp_path / "material"
    bandit = ("--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2", "--delay", "1")
    assert masked(capsys, "offline", "plan", "ppcb", *bandit, "-o", str(plan))[0] == 0
    assert Plan.load(plan).parties == 2
    assert masked(capsys, "offline", "deal", str(plan), "--steps", "16", "--out", str(home))[0] == 0
    how = ("launch", "ppcb", "--data", "synthetic", *bandit, "--material", str(home))
    facts = document(capsys, *how, "--steps", "12")
    assert (facts["steps"], facts["twin_average_reward"], facts["first_difference"]) == (12, None, None)
    assert facts["rounds_per_step"] == 9
    code, _, complained = masked(capsys, *how, "--steps", "12", "--json")
    assert code == 2 and "masked offline deal" in complained and complained.count("\n") == 1

"""A run that goes on is the run that was never stopped; of another run, or damaged, nothing is gone on from."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.coins import Noise
from bandits.fixed_point import words
from bandits.linear_problem import LinearProblem
from mpc import ConfigError
from mpc.correlations import Correlation
from offline import deal
from protocols.cli import main
from protocols.linucb_ds.mpc.run import Outsourced, Run, pulled
from protocols.linucb_ds.mpc.settings import Settings
from protocols.run import options as command
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints
from protocols.run.folder import Keep, settle
from protocols.run.stopping import Stopped

from .runs import launched, normal, of, plan_of, simulate, simulation_of, spectral

ROOT = Path(__file__).resolve().parents[4]
BUDGET, LIMIT = 14, 300.0
SHOWN_AND_HIDDEN = pytest.mark.parametrize("hide", [False, True], ids=["shown", "hidden"])


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """What a command in this process changes is put back."""
    before = {how: signal.getsignal(how) for how in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for how, handler in before.items():
        signal.signal(how, handler)


def until(stop: int) -> Callable[[int], bool]:
    return lambda done: done < stop


def counted(run: Run) -> dict[str, Any]:
    return {name: value for name, value in asdict(run.cost).items() if name != "seconds"}


@SHOWN_AND_HIDDEN
@pytest.mark.parametrize("problem", [normal(3, 6), spectral(8)], ids=["LinUCB", "SpectralUCB"])
def test_a_run_that_goes_on_is_the_run_that_was_never_stopped(
    problem: LinearProblem, hide: bool, parties: int, tmp_path: Path
) -> None:
    """Stopped behind the first pull, and again: arms, sum, ledger, costs and shares are the same."""
    settings = Settings.of(problem, BUDGET, hide=hide)
    whole = simulation_of(problem, settings, parties=parties, seed=3)
    for _ in range(BUDGET):
        whole.turn()
    for stop, resume in ((1, False), (9, True)):
        with pytest.raises(Stopped) as stopped:
            simulate(
                problem, settings, parties=parties, seed=3, progress=until(stop), keep=Keep(tmp_path, 100, resume)
            )  # fmt: skip
        assert stopped.value.done == stop
    half = simulation_of(problem, settings, parties=parties, seed=3, kept=Checkpoint.load(checkpoint_at(tmp_path, 9)))
    for _ in range(BUDGET - 9):
        half.turn()
    held = half.player.state()
    for name, shares in whole.player.state().items():
        clear, again = (w if name == "arms" else w.sum(axis=0, dtype=np.uint64) for w in (shares, held[name]))
        assert (clear == again).all(), name

    wanted = whole.result()
    found = simulate(problem, settings, parties=parties, seed=3, keep=Keep(tmp_path, 100, True))
    assert pulled(half.player) == pulled(whole.player) and half.result().word == found.word == wanted.word
    assert (found.arms, found.ledger, found.difference) == (wanted.arms, wanted.ledger, wanted.difference)
    assert counted(found) == counted(wanted) and found.offline_bytes == wanted.offline_bytes
    assert found.seconds > 0


def test_what_is_dealt_behind_the_last_pull_is_no_time_of_the_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dealer that takes long there made a run of no seconds."""
    problem = normal(2, 4)
    simulation = simulation_of(problem, Settings.of(problem, BUDGET), parties=2, seed=3)
    while not simulation.finished:
        simulation.turn()
    make = simulation.dealer.make

    def slowly(item: Correlation) -> np.ndarray:
        simulation.dealer.seconds += 1e6
        return make(item)

    monkeypatch.setattr(simulation.dealer, "make", slowly)
    ended = simulation.ended()
    assert ended.seconds > 0 and ended.offline_seconds > 1e6


def test_a_run_keeps_the_last_two_and_at_its_end_nothing(tmp_path: Path) -> None:
    problem = normal(2, 4)
    settings = Settings.of(problem, BUDGET)
    seen: list[list[str]] = []

    def look(_: int) -> None:
        seen.append([path.name for path in checkpoints(tmp_path)])

    simulate(problem, settings, parties=2, seed=1, progress=look, keep=Keep(tmp_path, 4))
    assert seen[-1] == ["checkpoint-000000008.npz", "checkpoint-000000012.npz"]
    settle(Outsourced(settings, 2, 1, problem), tmp_path)
    assert not tmp_path.exists()
    with pytest.raises(ConfigError, match="the run reached its end, or never started; run without --resume"):
        simulate(problem, settings, parties=2, seed=1, keep=Keep(tmp_path, 4, True))


def test_asked_to_stop_at_its_last_pull_a_run_ends(tmp_path: Path) -> None:
    problem = normal(2, 4)
    run = simulate(
        problem, Settings.of(problem, 5), parties=2, seed=1, progress=lambda done: done < 5, keep=Keep(tmp_path)
    )
    assert run.arms is not None and len(run.arms) == 5


CHANGES: list[tuple[str, LinearProblem, dict[str, Any], dict[str, Any]]] = [
    ("budget = 14, this one has 15", normal(3, 6), {"budget": 15}, {}),
    ("seed = 3, this one has 4", normal(3, 6), {}, {"seed": 4}),
    ("parties = 2, this one has 3", normal(3, 6), {}, {"parties": 3}),
    ("hide = False, this one has True", normal(3, 6), {"hide": True}, {}),
    ("noise-kind = sign, this one has normal", normal(3, 6), {"noise": Noise.NORMAL}, {}),
    ("gamma = 1.0, this one has 2.0", normal(3, 6, gamma=2.0), {}, {}),
    ("kind = linucb, this one has spectralucb", spectral(6), {}, {}),
    ("other theta", of(normal(3, 6).arms, normal(3, 6).theta * 1.01), {}, {}),
    ("other arms", of(normal(3, 6).arms[:, ::-1], normal(3, 6).theta), {}, {}),
]


@pytest.mark.parametrize(("said", "problem", "given", "rest"), CHANGES, ids=[row[0] for row in CHANGES])
def test_another_run_is_refused(
    said: str, problem: LinearProblem, given: dict[str, Any], rest: dict[str, Any], tmp_path: Path
) -> None:
    begun = normal(3, 6)
    with pytest.raises(Stopped):
        simulate(begun, Settings.of(begun, BUDGET), parties=2, seed=3, progress=until(5), keep=Keep(tmp_path))
    settings = Settings.of(problem, **{"budget": BUDGET, **given})
    with pytest.raises(ConfigError, match=said) as refused:
        simulate(problem, settings, **{"parties": 2, "seed": 3, **rest}, keep=Keep(tmp_path, 100, True))
    assert "\n" not in str(refused.value)
    assert checkpoints(tmp_path), "what was kept is still there"


@SHOWN_AND_HIDDEN
def test_shares_of_another_shape_are_refused(hide: bool, tmp_path: Path) -> None:
    problem = normal(3, 6)
    settings = Settings.of(problem, BUDGET, hide=hide)
    simulation = simulation_of(problem, settings, parties=2, seed=3)
    simulation.turn()
    whole = simulation.checkpoint()
    for name, array in whole.arrays.items():
        if not name.startswith("parties/"):
            continue
        for spoilt in (array[..., :-1] if array.ndim > 1 else array[:-1], array.astype(np.float64)):
            broken = Checkpoint(1, whole.facts, {**whole.arrays, name: spoilt})
            with pytest.raises(ConfigError, match="does not hold the"):
                simulation_of(problem, settings, parties=2, seed=3, kept=broken)


def with_parties_that(do: str, scratch: Path, when: str = "== 12") -> str:
    """A PYTHONPATH on which a computing party does this after pull 12, or after all later ones as well.

    It is another environment, so roles come off a nursery that was begun on it.
    """
    site = scratch / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "from protocols.linucb_ds.mpc import player as players\n"
        "for kind in (players.ShownArms, players.HiddenArms):\n"
        "    def turn(self, whole=kind.turn):\n"
        "        whole(self)\n"
        f"        if sys.argv[-1] == 'party' and self.done {when}:\n"
        f"            {do}\n"
        "    kind.turn = turn\n"
    )
    return os.pathsep.join([str(site), str(ROOT)])


def stopped_launch(
    problem: LinearProblem, settings: Settings, keep: Keep, scratch: Path, monkeypatch: Any, **how: Any
) -> int:  # fmt: skip
    """A launch in which the parties die in the middle: checkpoints are at 5 and 10."""
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", with_parties_that("os._exit(9)", scratch))
        with pytest.raises(ConfigError, match=r"exit code 9.*all roles kept pull 10: --resume goes on"):
            launched(problem, settings, keep=keep, scratch=scratch, **how)
    return max(int(path.stem.split("-")[1]) for path in checkpoints(keep.folder / "party-1"))


@SHOWN_AND_HIDDEN
def test_a_launch_goes_on_after_a_party_died(hide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From where all parties stood, with the same coins; shown arms and their sum are the reference's to the end."""
    problem = normal(3, 8)
    settings, home = Settings.of(problem, 25, hide=hide), tmp_path / "keep"
    assert stopped_launch(problem, settings, Keep(home, 5), tmp_path / "one", monkeypatch) == 10
    files = [path for path in home.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    if not hide:  # theta is in both shares together, and in none
        shares = [Checkpoint.load(checkpoint_at(home / f"party-{p}", 10)).arrays["theta"][0] for p in range(2)]
        clear = words(problem.theta, settings.scales.theta).astype(np.int64).view(np.uint64)
        assert (sum(shares) == clear).all() and not any((share == clear).any() for share in shares)
    with pytest.raises(ConfigError, match="other theta"):
        again = LinearProblem(problem.arms, problem.theta * 1.01, problem.exploration)
        launched(again, settings, keep=Keep(home, 5, True), scratch=tmp_path / "two")
    (tmp_path / "three").mkdir()
    run = launched(problem, settings, keep=Keep(home, 5, True), scratch=tmp_path / "three")
    assert run.reference is not None
    if hide:
        assert run.word == run.reference.word
        assert [entry.role for entry in run.ledger] == ["DC"]
    else:
        assert (run.arms, run.word) == (run.reference.arms, run.reference.word)
        assert [entry.count for entry in run.ledger] == [1, 25, 24, 1]
    rounds = simulate(problem, settings, parties=2, seed=5).cost
    assert (run.cost.rounds, run.cost.client_hops) == (rounds.rounds, rounds.client_hops)
    settle(Outsourced(settings, 2, 5, problem), home)
    assert not home.exists(), "nothing is kept of a run that ended"


def test_what_an_earlier_sitting_kept_later_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a stale checkpoint takes the place of a fresh one, and the parties may end with none in common."""
    problem = normal(3, 8)
    settings, home = Settings.of(problem, 25), tmp_path / "keep"
    stopped_launch(problem, settings, Keep(home, 5), tmp_path / "one", monkeypatch)
    shutil.copy(checkpoint_at(home / "party-0", 10), checkpoint_at(home / "party-0", 20))
    checkpoint_at(home / "party-1", 10).unlink()
    stopped_launch(problem, settings, Keep(home, 5, True), tmp_path / "two", monkeypatch)
    for party in range(2):
        assert [path.name for path in checkpoints(home / f"party-{party}")] == [
            "checkpoint-000000005.npz", "checkpoint-000000010.npz",
        ]  # fmt: skip


def test_a_launch_from_material_goes_on_where_the_stores_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn behind the checkpoint is lost; the coins that break ties are new, where nothing ties."""
    problem = normal(3, 4)
    settings, keep, material = Settings.of(problem, 25), Keep(tmp_path / "keep", 5), tmp_path / "material"
    deal(plan_of(settings, 2, problem), 40, material, block_steps=4)
    stopped_launch(problem, settings, keep, tmp_path / "one", monkeypatch, material=material)
    assert not (keep.folder / "coin.key").exists()
    (tmp_path / "two").mkdir()
    run = launched(problem, settings, material=material, keep=Keep(keep.folder, 5, True), scratch=tmp_path / "two")
    whole = simulate(problem, settings, parties=2, seed=5)
    assert run.reference is None and (run.arms, run.word) == (whole.arms, whole.word)


def files_of(problem: LinearProblem, folder: Path) -> list[str]:
    np.save(folder / "arms.npy", problem.arms)
    np.save(folder / "theta.npy", problem.theta)
    given = ["--arms-file", f"{folder}/arms.npy", "--theta", f"{folder}/theta.npy", "--budget", "25"]
    return [*given, "--checkpoint-every", "5", "--out", f"{folder}/out"]


def test_ctrl_c_keeps_what_a_simulation_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["run", "linucb-ds", *files_of(normal(3, 6), tmp_path)]

    class Impatient:
        def __init__(self, total: int, what: str) -> None: ...

        def __call__(self, done: int, more: str = "") -> None:
            if done == 12:
                os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(command, "Progress", Impatient)
        main(given)
    said = capsys.readouterr()
    assert stop.value.code == 130 and not said.out
    assert said.err.startswith("stopped at pull 12 of 25, before DC was told anything: go on with --resume and --out")
    main([*given, "--resume", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["arms"]) == 25 and facts["cumulative_reward"] == facts["reference_cumulative_reward"]


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_ctrl_c_keeps_what_a_launch_reached(times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once: all parties keep the same pull.  Twice, while they stand still: the last checkpoint.

    --resume then ends with the reference's arms and sum.
    """
    given = ["launch", "linucb-ds", *files_of(normal(3, 6), tmp_path)]
    slow = with_parties_that("time.sleep(0.3)" if times == 1 else "time.sleep(600)", tmp_path, ">= 12")
    process = subprocess.Popen(
        [sys.executable, "-m", "protocols", *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": slow},
    )  # fmt: skip
    deadline = time.monotonic() + LIMIT
    while len(list((tmp_path / "out").rglob("checkpoint-000000010.npz"))) < 2:
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "stopping after this pull; Ctrl-C again stops at once\n"
    if times == 2:
        process.send_signal(signal.SIGINT)
    out, complained = process.communicate(timeout=LIMIT)
    assert process.returncode == 130 and not out, complained
    said = re.fullmatch(
        r"stopped at pull (\d+) of 25, before DC was told anything: go on with --resume and --out .*\n", complained
    )
    assert said is not None, complained
    reached = int(said[1])
    assert reached == 10 if times == 2 else 12 <= reached < 25
    assert len(list((tmp_path / "out").rglob(f"checkpoint-{reached:09d}.npz"))) == 2
    main([*given, "--resume", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["arms"]) == 25 and facts["first_difference"] is None
    assert facts["cumulative_reward"] == facts["reference_cumulative_reward"]

"""A process for each role: the reference's pulls, the simulated run's ledger and costs, and roles that fail."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from protocols.run.keeping import Keep, Stopped

from mpc import ConfigError
from mpc.errors import OutOfMaterial
from offline import deal
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints
from protocols.samba.mpc import launch as mpc_launch
from protocols.samba.mpc.checkpoint import COIN_KEY, SEEDS
from protocols.samba.mpc.launch import Launch, launched, prepared
from protocols.samba.mpc.roles import Task
from protocols.samba.mpc.run import Run
from protocols.samba.mpc.settings import Settings
from protocols.samba.mpc.simulate import plan_of, simulate

from .runs import agrees, played, rising


def launch(settings: Settings, scratch: Path, **how: Any) -> Run:
    scratch.mkdir(exist_ok=True)
    return launched(
        rising(settings.arms), settings, Launch(**{"parties": 2, "seed": 5, "timeout": 20.0, **how}), scratch
    )


@pytest.mark.parametrize(("policy", "parties", "hosts"), [("pursuit", 3, 2), ("epsilon-decreasing", 2, 1)])
def test_a_launch_is_the_run(policy: str, parties: int, hosts: int, tmp_path: Path) -> None:
    settings = Settings(policy, 6, 21, hosts)
    run = launch(settings, tmp_path, parties=parties)
    agrees(run)
    simulated = played(rising(6), policy, 21, seed=5, parties=parties, hosts=hosts)
    assert run.ledger == simulated.ledger
    for name in ("rounds", "opened_bytes", "sent_bytes", "client_hops"):
        assert getattr(run.cost, name) == getattr(simulated.cost, name), name
    assert run.offline_bytes == simulated.offline_bytes
    assert run.seconds > 0 and run.offline_seconds > 0
    assert not (tmp_path / "keep").exists(), "what roles kept is gone with the run"


@pytest.mark.parametrize(("arms", "budget"), [(1, 4), (3, 3)])
def test_the_smallest_launches(arms: int, budget: int, tmp_path: Path) -> None:
    run = launch(Settings("ucb", arms, budget), tmp_path)
    agrees(run)
    assert run.cost.rounds == 0


def test_an_owner_with_a_score_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host says so, and the run ends; the others never hear the score."""
    before = mpc_launch.prepared

    def spoilt(*given: Any) -> Task:
        task = before(*given)
        path = checkpoint_at(task.host(1), 0)
        kept = Checkpoint.load(path)
        chances = kept.arrays["own chance"].copy()
        chances[-1] = np.nan
        Checkpoint(0, kept.facts, {**kept.arrays, "own chance": chances}).save(task.host(1))
        return task

    monkeypatch.setattr(mpc_launch, "prepared", spoilt)
    with pytest.raises(ConfigError, match=r"owners 2 to 3 failed .*owner 3's score at step 5 is not a number"):
        launch(Settings("pursuit", 4, 30, hosts=2), tmp_path)


@contextmanager
def struck(scratch: Path, role: str, how: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Signal the process of a role of the run in this folder, once all have kept something; says whether it did."""
    over, found = threading.Event(), threading.Event()
    name, *rest = role.split()
    command = ["protocols.samba.mpc.roles", name, str(scratch), *rest]

    def watch() -> None:
        while not over.wait(0.05):
            kept = checkpoints(scratch / "keep/party-0")
            if kept and kept[-1] >= checkpoint_at(kept[-1].parent, 20) and (process := process_of(command)):
                os.kill(process, how)
                found.set()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found.is_set
    finally:
        over.set()
        thread.join()


def process_of(command: list[str]) -> int:
    """The process whose command line ends so; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode().split("\0")[:-1]
            if words[-len(command) :] == command:
                return int(process.name)
    return 0


@pytest.mark.parametrize(
    ("role", "how", "said"),
    [
        ("host 1", signal.SIGSTOP, "owners 2 to 3 was silent for 4 s"),
        ("party", signal.SIGKILL, r"party \d was ended by SIGKILL"),
    ],
)
def test_a_role_that_dies_or_hangs_is_named(role: str, how: signal.Signals, said: str, tmp_path: Path) -> None:
    settings = Settings("ucb", 4, 200_000, hosts=2)
    with struck(tmp_path, role, how) as was, pytest.raises(ConfigError, match=said):
        launch(
            settings, tmp_path, timeout=4.0 if how is signal.SIGSTOP else 30.0, keep=Keep(tmp_path / "keep", every=5)
        )
    assert was()


def test_a_launch_goes_on(tmp_path: Path) -> None:
    """After a host died: the dealer's coins go on where they stood, and all pulls are the reference's."""
    settings, folder = Settings("thompson", 4, 160, hosts=2), tmp_path / "keep"
    with (
        struck(tmp_path, "host 0", signal.SIGKILL) as was,
        pytest.raises(
            ConfigError, match=r"owners 0 to 1 was ended by SIGKILL; all roles kept pull \d+: --resume goes on"
        ),
    ):
        launch(settings, tmp_path, keep=Keep(folder, every=5))
    assert was()
    for other, said in (
        ({"keep": Keep(folder, 5, True), "seed": 6}, "a run with seed = 5, this one has 6"),
        ({"keep": Keep(tmp_path / "nowhere", 5, True)}, "there is no checkpoint in"),
    ):
        with pytest.raises(ConfigError, match=said):
            launch(settings, tmp_path, **other)
    run = launch(settings, tmp_path, keep=Keep(folder, 5, True))
    agrees(run)
    assert run.cost.rounds == 4 * settings.steps and not folder.exists()
    assert sum(entry.count for entry in run.ledger) == 4 * settings.steps + 1


@contextmanager
def interrupted(scratch: Path, *, hanging: str = "") -> Iterator[None]:
    """Ctrl-C for this process once all have kept something; where a role hangs, which it is made to, a second one."""
    over = threading.Event()

    def watch() -> None:
        home = scratch / "keep/party-0"
        while not any(path > checkpoint_at(home, 20) for path in checkpoints(home)):
            if over.wait(0.005):
                return
        if hanging:
            os.kill(process_of(["protocols.samba.mpc.roles", "host", str(scratch), hanging]), signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)
        while hanging and not over.wait(0.05):
            if (scratch / "stop").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("coins", ["dealt beside", "material"])
def test_ctrl_c_lets_all_roles_keep_the_same_pull(
    coins: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Between two checkpoints; the run then goes on from there to its end."""
    settings, folder, how = Settings("ucb", 4, 1500, hosts=2), tmp_path / "keep", dict[str, Any]()
    if coins == "material":
        how = {"material": tmp_path / "material"}
        deal(plan_of(settings, 2), 1600, how["material"], block_steps=50)
    with interrupted(tmp_path), pytest.raises(Stopped) as stopped:
        launch(settings, tmp_path, keep=Keep(folder, 7), **how)
    done = stopped.value.done
    homes = [folder / name for name in ("party-0", "party-1", "host-0", "host-1")]
    assert [checkpoints(home)[-1].stem for home in homes] == [f"checkpoint-{done:09d}"] * 4 and 20 < done < 1500
    said = capfd.readouterr().err
    assert said.count("stopping after this pull; Ctrl-C again stops at once") == 1 and "Traceback" not in said
    assert (folder / COIN_KEY).exists() == (folder / SEEDS).exists() == (not how)
    run = launch(settings, tmp_path / "again", keep=Keep(folder, 500, True), **how)
    assert ("are made with other coins" in capfd.readouterr().err) == bool(how)
    assert run.total == run.game.total and run.game.pulls.sum() == 1500 and not folder.exists()
    if not how:
        agrees(run)


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While a role stands still, so that there is no pull that all could keep; the last one that all kept is there."""
    settings = Settings("ucb", 4, 100_000, hosts=2)
    with interrupted(tmp_path, hanging="1"), pytest.raises(Stopped) as stopped:
        launch(settings, tmp_path, keep=Keep(tmp_path / "keep", 7), timeout=600.0)
    assert stopped.value.done % 7 == 0
    assert "stopping after this pull" in capfd.readouterr().err


ENDS = {"Ctrl-C": KeyboardInterrupt(), "a role that fails": ConfigError("owner 0 failed")}


def broken_off(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch, how: Launch, *,
    reached: dict[str, list[int]], error: BaseException,
) -> None:  # fmt: skip
    """A launch in which roles keep what they are said to, and which then ends so."""

    def instead(*_: Any, **__: Any) -> None:
        for name, numbers in reached.items():
            for done in numbers:
                Checkpoint(done, {}, {}).save(folder / "keep" / name)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(mpc_launch, "launch", instead)
        scratch = folder / f"scratch-{len(list(folder.iterdir()))}"
        scratch.mkdir()
        launched(rising(settings.arms), settings, how, scratch)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("error", ENDS.values(), ids=ENDS)
def test_what_an_earlier_sitting_left_further_on_takes_no_place(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles one checkpoint apart had pull 55 here and 10 there; on the way from 10 none loses what all have."""
    settings = Settings("ucb", 4, 100, hosts=1)
    keep, ended = tmp_path / "keep", (Stopped, ConfigError, KeyboardInterrupt)
    first = {"party-0": [5, 10, 55], "party-1": [5, 10], "host-0": [10, 55]}
    for home in ("party-0", "host-0"):
        (keep / home).mkdir(parents=True)
        (keep / home / "checkpoint-000000060.new").touch()
    with pytest.raises(ended):
        broken_off(settings, tmp_path, monkeypatch, Launch(2, 5, Keep(keep, 5)), reached=first, error=error)
    for number in (60, 70):
        (keep / f"party-1/checkpoint-{number:09d}.new").touch()
    second = {"party-0": [15, 20], "party-1": [15], "host-0": [15, 20]}
    how = Launch(2, 5, Keep(keep, 5, True))
    with pytest.raises(ended) as caught:
        broken_off(settings, tmp_path, monkeypatch, how, reached=second, error=error)
    assert "15" in str(caught.value)
    assert files(keep) == [
        "coin.key", "host-0/checkpoint-000000015.npz", "host-0/checkpoint-000000020.npz",
        "party-0/checkpoint-000000015.npz", "party-0/checkpoint-000000020.npz", "party-1/checkpoint-000000010.npz",
        "party-1/checkpoint-000000015.npz", "run.json", "seeds.json",
    ]  # fmt: skip


@pytest.mark.parametrize("error", ENDS.values(), ids=ENDS)
def test_a_launch_that_breaks_off_deletes_nothing_that_was_kept(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where a role has lost its part, nor where roles have no pull in common; only where nobody played."""
    settings, keep = Settings("ucb", 4, 100, hosts=1), tmp_path / "keep"
    fresh = Launch(2, 5, Keep(keep, 5))
    with pytest.raises(type(error)):
        broken_off(settings, tmp_path, monkeypatch, fresh, reached={"party-0": [5]}, error=error)
    assert "party-0/checkpoint-000000005.npz" in files(keep) and "coin.key" in files(keep)
    with pytest.raises(type(error)):
        broken_off(settings, tmp_path, monkeypatch, fresh, reached={}, error=error)
    assert not keep.exists()


def test_coins_of_a_dealer_and_of_material_do_not_mix(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings, arms = Settings("ucb", 4, 30, hosts=1), rising(4)
    material, keep = tmp_path / "material", tmp_path / "keep"
    deal(plan_of(settings, 2), 40, material, block_steps=10)

    def how(source: Path | None, *, resume: bool) -> Launch:
        return Launch(2, 5, Keep(keep, 5, resume), material=source)

    for source, other, said in (
        (None, material, "the coins of its own dealer: go on without --material"),
        (material, None, "the coins of material that was dealt before: go on with --material"),
    ):
        task = prepared(arms, settings, how(source, resume=False), tmp_path)
        for home in task.homes(2):
            Checkpoint(10, {}, {}).save(home)
        assert (keep / COIN_KEY).exists() == (keep / SEEDS).exists() == (source is None)
        with pytest.raises(ConfigError, match=said):
            prepared(arms, settings, how(other, resume=True), tmp_path)
        capfd.readouterr()
        assert prepared(arms, settings, how(source, resume=True), tmp_path).start == 10
        assert capfd.readouterr().err.count("pulls after 10 are made with other coins") == (source is not None)


def test_material_that_does_not_fit_is_refused_before_anything_is_removed(tmp_path: Path) -> None:
    settings, arms, keep = Settings("ucb", 4, 30, hosts=1), rising(4), tmp_path / "keep"
    prepared(arms, settings, Launch(2, 5, Keep(keep)), tmp_path)
    before = files(keep)
    few, other = tmp_path / "few", tmp_path / "other"
    deal(plan_of(settings, 2), 10, few, block_steps=10)
    deal(plan_of(Settings("pursuit", 4, 30), 2), 40, other, block_steps=10)
    for material, said in ((few, "deal"), (other, "was dealt for another run: .*masked offline plan samba")):
        with pytest.raises(OutOfMaterial, match=said):
            prepared(arms, settings, Launch(2, 5, Keep(keep), material=material), tmp_path)
    assert files(keep) == before


def test_a_run_of_processes_and_one_in_this_process_are_told_apart(tmp_path: Path) -> None:
    settings, arms = Settings("ucb", 4, 30, hosts=1), rising(4)
    prepared(arms, settings, Launch(2, 5, Keep(tmp_path / "a")), tmp_path)
    with pytest.raises(ConfigError, match="is one of processes: go on with 'masked launch samba --resume'"):
        simulate(arms, settings, parties=2, seed=5, keep=Keep(tmp_path / "a", 5, True))
    with pytest.raises(Stopped):
        simulate(arms, settings, parties=2, seed=5, keep=Keep(tmp_path / "b"), progress=lambda done: done < 9)
    with pytest.raises(ConfigError, match="is one in this process: go on with 'masked run samba --resume'"):
        prepared(arms, settings, Launch(2, 5, Keep(tmp_path / "b", 5, True)), tmp_path)

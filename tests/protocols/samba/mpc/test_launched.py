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

from mpc import ConfigError
from offline import deal
from protocols.run import launch as run_launch
from protocols.run.checkpoint import checkpoint_at, checkpoints
from protocols.run.folder import COIN_KEY, SEEDS_KEY, Keep, settle
from protocols.run.launch import Prepared
from protocols.run.role_process import private_path
from protocols.run.stopping import Stopped
from protocols.samba.mpc.clients import Host
from protocols.samba.mpc.run import Federation, Run
from protocols.samba.mpc.settings import Settings

from ...harness import shown
from .runs import agrees, launched, plan_of, played, rising


def launch(settings: Settings, scratch: Path, **how: Any) -> Run:
    scratch.mkdir(exist_ok=True)
    return launched(rising(settings.arms), settings, scratch=scratch, **how)


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
    before = run_launch.prepare
    settings = Settings("pursuit", 4, 30, hosts=2)

    def spoilt(*given: Any, **more: Any) -> Prepared:
        made = before(*given, **more)
        path = private_path(made.folder, settings.roles[1])
        with np.load(path) as own:
            host = Host.of(settings, settings.blocks[1], own)
        host.first_pulls()
        state = host.state()
        state["own chance"][-1] = np.nan
        np.savez(path, **state)
        return made

    monkeypatch.setattr(run_launch, "prepare", spoilt)
    with pytest.raises(ConfigError, match=r"owners 2 to 3 failed .*owner 3's score at step 5 is not a number"):
        launch(settings, tmp_path)


@contextmanager
def struck(scratch: Path, role: str, how: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Signal the process of a role of the run in this folder, once all have kept something; says whether it did."""
    over, found = threading.Event(), threading.Event()
    command = ["protocols.run.role_process", str(scratch), role]

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
            if shown(process).endswith(" ".join(command)):
                return int(process.name)
    return 0


@pytest.mark.usefixtures("one_hangs")
@pytest.mark.parametrize(
    ("role", "how", "said"),
    [
        ("owners 2 to 3", signal.SIGSTOP, "owners 2 to 3 was silent for 6 s"),
        ("party", signal.SIGKILL, r"party \d was ended by SIGKILL"),
    ],
)
def test_a_role_that_dies_or_hangs_is_named(role: str, how: signal.Signals, said: str, tmp_path: Path) -> None:
    settings = Settings("ucb", 4, 200_000, hosts=2)
    with struck(tmp_path, role, how) as was, pytest.raises(ConfigError, match=said):
        launch(
            settings, tmp_path, timeout=6.0 if how is signal.SIGSTOP else 30.0, keep=Keep(tmp_path / "keep", every=5)
        )
    assert was()


def test_a_launch_goes_on(tmp_path: Path) -> None:
    """After a host died: the dealer's coins go on where they stood, and all pulls are the reference's."""
    settings, folder = Settings("thompson", 4, 160, hosts=2), tmp_path / "keep"
    with (
        struck(tmp_path, "owners 0 to 1", signal.SIGKILL) as was,
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
    run = launch(settings, tmp_path / "again", keep=Keep(folder, 5, True))
    agrees(run)
    assert run.cost.rounds == 4 * settings.steps and folder.exists()
    settle(Federation(settings, 2, 5, rising(4)), folder)
    assert not folder.exists()
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
            os.kill(process_of(["protocols.run.role_process", str(scratch), hanging]), signal.SIGSTOP)
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
    settings, folder, how = Settings("ucb", 4, 600, hosts=2), tmp_path / "keep", dict[str, Any]()
    if coins == "material":
        how = {"material": tmp_path / "material"}
        deal(plan_of(settings, 2), 700, how["material"], block_steps=50)
    with interrupted(tmp_path), pytest.raises(Stopped) as stopped:
        launch(settings, tmp_path, keep=Keep(folder, 7), **how)
    done = stopped.value.done
    homes = [folder / name for name in ("party-0", "party-1", "host-0", "host-1")]
    assert [checkpoints(home)[-1].stem for home in homes] == [f"checkpoint-{done:09d}"] * 4 and 20 < done < 600
    said = capfd.readouterr().err
    assert said.count("stopping after this pull; Ctrl-C again stops at once") == 1 and "Traceback" not in said
    assert (folder / COIN_KEY).exists() == (folder / SEEDS_KEY).exists() == (not how)
    run = launch(settings, tmp_path / "again", keep=Keep(folder, 200, True), **how)
    assert ("are made with other coins" in capfd.readouterr().err) == bool(how)
    assert run.total == run.game.total and run.game.pulls.sum() == 600
    if not how:
        agrees(run)


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While a role stands still, so that there is no pull that all could keep; the last one that all kept is there."""
    settings = Settings("ucb", 4, 100_000, hosts=2)
    with interrupted(tmp_path, hanging="owners 2 to 3"), pytest.raises(Stopped) as stopped:
        launch(settings, tmp_path, keep=Keep(tmp_path / "keep", 7), timeout=600.0)
    assert stopped.value.done % 7 == 0
    assert "stopping after this pull" in capfd.readouterr().err

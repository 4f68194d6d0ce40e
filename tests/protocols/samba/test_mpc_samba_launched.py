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
from mpc_samba_runs import agrees, played, rising

from mpc import ConfigError
from protocols.ppcb.checkpoint import Checkpoint, checkpoint_at, checkpoints
from protocols.samba import mpc_launch
from protocols.samba.mpc_checkpoint import Keep
from protocols.samba.mpc_launch import Launch, launched
from protocols.samba.mpc_result import Run
from protocols.samba.mpc_roles import Task
from protocols.samba.mpc_settings import Settings


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
    command = ["protocols.samba.mpc_roles", name, str(scratch), *rest]

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

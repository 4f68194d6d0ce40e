"""A run that is stopped and goes on is the run that was never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpc import ConfigError
from protocols.run.folder import Keep, settle
from protocols.run.stopping import Stopped
from protocols.samba.mpc.run import Federation, Run
from protocols.samba.mpc.settings import Settings

from .runs import POLICIES, agrees, played, rising, simulate


def until(stop: int, folder: Path, *, resume: bool, policy: str = "ucb", seed: int = 4, **more: Any) -> Run:
    settings = Settings(policy, 6, 60, **{"hosts": 2, **more})
    keep = Keep(folder, 10, resume)
    return simulate(rising(6), settings, parties=2, seed=seed, keep=keep, progress=lambda done: done < stop)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_goes_on(policy: str, tmp_path: Path) -> None:
    """Twice stopped between two checkpoints: the same pulls, ledger and costs, and nothing is left behind."""
    folder = tmp_path / "keep"
    whole = played(rising(6), policy, 60, seed=4, hosts=2)
    for stop in (7, 33):
        with pytest.raises(Stopped) as stopped:
            until(stop, folder, resume=stop > 7, policy=policy)
        assert stopped.value.done == stop
    run = until(100, folder, resume=True, policy=policy)
    agrees(run)
    assert run.game.equals(whole.game) and run.ledger == whole.ledger
    for name in ("rounds", "opened_bytes", "client_hops"):
        assert getattr(run.cost, name) == getattr(whole.cost, name)
    assert run.offline_bytes == whole.offline_bytes
    settle(Federation(run.settings, 2, 4, rising(6)), folder)
    assert not list(tmp_path.rglob("*"))


def test_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        until(33, tmp_path, resume=False)
    with pytest.raises(ConfigError, match="a run with seed = 4, this one has 5"):
        until(100, tmp_path, resume=True, seed=5)
    with pytest.raises(ConfigError, match="a run with policy = ucb, this one has thompson"):
        until(100, tmp_path, resume=True, policy="thompson")
    with pytest.raises(ConfigError, match="a run with other means"):
        settings = Settings("ucb", 6, 60, hosts=2)
        simulate(rising(7).__class__(rising(6).means / 2), settings, parties=2, seed=4, keep=Keep(tmp_path, 10, True))
    for kept in tmp_path.glob("*.npz"):
        kept.write_bytes(b"damaged")
    with pytest.raises(ConfigError, match="is damaged"):
        until(100, tmp_path, resume=True)
    with pytest.raises(ConfigError, match="there is no checkpoint in"):
        until(100, tmp_path / "nowhere", resume=True)


def test_a_run_that_is_refused_leaves_what_was_kept(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        until(33, tmp_path, resume=False)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ConfigError, match="settings for 6 arms and 7 means"):
        simulate(rising(7), Settings("ucb", 6, 60), parties=2, seed=4, keep=Keep(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    agrees(until(100, tmp_path, resume=True))

"""A process for each role: the simulated run's arms and integer, its ledger and its costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
<<<<<<< HEAD:tests/protocols/linucb_ds/test_mpc_launched.py
from mpc_linucb_runs import normal, played, spectral
from protocols.linucb_ds.mpc.launch import Launch, launched
from protocols.linucb_ds.mpc.roles import draws_of
from protocols.linucb_ds.mpc.simulate import plan_of
=======
>>>>>>> library:tests/protocols/linucb_ds/mpc/test_launched.py

from bandits.linear_problem import LinearProblem
from mpc import ConfigError
from mpc.errors import OutOfMaterial
from offline import deal
from protocols.linucb_ds.mpc.run import Run
from protocols.linucb_ds.mpc.settings import Settings

from .runs import normal, played, spectral


def launch(problem: LinearProblem, settings: Settings, scratch: Path, **how: Any) -> Run:
    return launched(problem, settings, Launch(**{"parties": 2, "seed": 5, "timeout": 20.0, **how}), scratch)


@pytest.mark.parametrize(("problem", "parties"), [(normal(3, 8), 2), (spectral(8), 3)], ids=["LinUCB", "SpectralUCB"])
def test_arms_shown(problem: LinearProblem, parties: int, tmp_path: Path) -> None:
    run = launch(problem, Settings.of(problem, 25), tmp_path, parties=parties)
    assert run.reference is not None
    assert (run.arms, run.word) == (run.reference.arms, run.reference.word)
    simulated = played(problem, 25, seed=5, parties=parties)
    if parties == 2:  # on a graph indices tie, and each deal breaks ties otherwise
        assert (run.arms, run.word) == (simulated.arms, simulated.word)
    assert run.ledger == simulated.ledger
    for name in ("rounds", "opened_bytes", "client_hops"):
        assert getattr(run.cost, name) == getattr(simulated.cost, name), name
    assert run.operations == simulated.operations
    assert run.seconds > 0 and run.offline_seconds > 0


def test_arms_hidden(tmp_path: Path) -> None:
    """No file that a role leaves names an arm."""
    problem = normal(3, 8)
    run = launch(problem, Settings.of(problem, 25, hide=True), tmp_path)
    assert run.arms is None and run.reference is not None
    assert run.cumulative_reward == pytest.approx(run.reference.total, abs=1e-6)
    assert [entry.role for entry in run.ledger] == ["DC"]
    assert '"arms": null' in (tmp_path / "party-0.json").read_text()
    assert not list(tmp_path.glob("*.bin"))


def test_one_pull(tmp_path: Path) -> None:
    problem = normal(2, 3)
    run = launch(problem, Settings.of(problem, 1), tmp_path)
    assert run.reference is not None and run.word == run.reference.word and run.cost.rounds == 0


def test_material_that_was_dealt_before_is_enough(tmp_path: Path) -> None:
    """No dealer, so no reference: its coins are nobody's here.  It is spent once."""
    problem = normal(3, 5)
    settings = Settings.of(problem, 10)
    deal(plan_of(settings, 2), draws_of(settings), tmp_path / "material", block_steps=9)
    (tmp_path / "one").mkdir()
    run = launch(problem, settings, tmp_path / "one", material=tmp_path / "material")
    assert run.reference is None and run.arms is not None and len(run.arms) == 10
    (tmp_path / "two").mkdir()
    with pytest.raises(OutOfMaterial, match="masked offline deal"):
        launch(problem, settings, tmp_path / "two", material=tmp_path / "material")


def test_an_owner_that_breaks_its_promise_is_named_without_its_norm(tmp_path: Path) -> None:
    """theta is longer than what is declared: DO says so on its own side, and the run ends."""
    problem = normal(3, 5)
    settings = Settings.of(problem, 10)
    longer = LinearProblem(problem.arms, problem.theta, problem.exploration)
    object.__setattr__(longer, "theta", problem.theta * 100.0)
    with pytest.raises((ConfigError, ValueError), match="theta"):
        launch(longer, settings, tmp_path)

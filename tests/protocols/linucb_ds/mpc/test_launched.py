"""A process for each role: the simulated run's arms and integer, its ledger and its costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bandits.linear_problem import LinearProblem
from mpc import ConfigError
from mpc.errors import OutOfMaterial
from offline import deal
from protocols.linucb_ds.mpc.run import Outsourced, Run
from protocols.linucb_ds.mpc.settings import Settings

from .runs import launched, normal, plan_of, played, spectral


def launch(problem: LinearProblem, settings: Settings, scratch: Path, **how: Any) -> Run:
    return launched(problem, settings, scratch=scratch, **how)


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
    assert run.word == run.reference.word
    assert [entry.role for entry in run.ledger] == ["DC"]
    assert "arms" not in (tmp_path / "ended.json").read_text()
    assert not list(tmp_path.rglob("*.bin"))


def test_one_pull(tmp_path: Path) -> None:
    problem = normal(2, 3)
    run = launch(problem, Settings.of(problem, 1), tmp_path)
    assert run.reference is not None and run.word == run.reference.word and run.cost.rounds == 4


def test_material_that_was_dealt_before_is_enough(tmp_path: Path) -> None:
    """No dealer, so no reference: its coins are nobody's here.  It is spent once."""
    problem = normal(3, 5)
    settings = Settings.of(problem, 10)
    deal(plan_of(settings, 2, problem), Outsourced(settings, 2, 5).draws(), tmp_path / "material", block_steps=9)
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

"""CrypTen's measurements without CrypTen: their command lines refuse what cannot be, and the bandit's judge judges."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
ARMS, DIM = 4, 3


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return {name: importlib.import_module(name) for name in ("peer_crypten", "peer_crypten_bandit")}


@pytest.fixture
def bandit(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["peer_crypten_bandit"]


@pytest.mark.parametrize("name", ["peer_crypten", "peer_crypten_bandit"])
def test_help_needs_no_crypten(name: str) -> None:
    command = [sys.executable, "-B", str(SCRIPTS / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "--parties" in done.stdout
    assert "max_error" in done.stdout


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("peer_crypten", "--parties 1"),
        ("peer_crypten", "--repeats 0"),
        ("peer_crypten", "--only sine"),
        ("peer_crypten", "--json /no/such/folder/rows.json"),
        ("peer_crypten_bandit", "--parties 1"),
        ("peer_crypten_bandit", "--parties two"),
        ("peer_crypten_bandit", "--arms 1"),
        ("peer_crypten_bandit", "--dim 0"),
        ("peer_crypten_bandit", "--steps -1"),
        ("peer_crypten_bandit", "--timeout 0.5"),
        ("peer_crypten_bandit", "--eps 1.5"),
        ("peer_crypten_bandit", "--eps nan"),
        ("peer_crypten_bandit", "--methods fastest"),
        ("peer_crypten_bandit", "--json /no/such/folder/rows.json"),
    ],
)
def test_a_wrong_option_is_named(
    scripts: dict[str, ModuleType], name: str, wrong: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *wrong.split()])
    with pytest.raises(SystemExit) as ended:
        scripts[name].main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    option, value = wrong.split()
    assert option in said.err.splitlines()[-1]
    assert value in said.err.splitlines()[-1]
    assert said.out == ""


def test_a_missing_crypten_is_said_with_the_cure(
    bandit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["peer_crypten_bandit.py"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        bandit.main()
    assert ended.value.code == 2
    assert "scripts/setup_crypten" in capsys.readouterr().err


def test_the_world_is_the_same_for_all_parties(bandit: ModuleType) -> None:
    setting = bandit.Setting(arms=ARMS, dim=DIM, steps=50, eps=0.1, method="pairwise", known_sign=False)
    contexts, outcomes = bandit.draw_world(setting, 50)
    assert contexts.shape == (50, DIM)
    assert outcomes.shape == (50, ARMS)
    assert np.allclose(np.linalg.norm(contexts, axis=1), 1.0)
    assert set(np.unique(outcomes)) == {0.0, 1.0}
    for mine, theirs in zip((contexts, outcomes), bandit.draw_world(setting, 50), strict=True):
        assert (mine == theirs).all()


def test_the_twin_is_ridge_regression(bandit: ModuleType) -> None:
    rng = np.random.default_rng(5)
    contexts, arms, rewards = rng.normal(size=(40, DIM)), rng.integers(ARMS, size=40), rng.random(40)
    twin = bandit.Twin(ARMS, DIM)
    for x, arm, reward in zip(contexts, arms, rewards, strict=True):
        twin.update(x, arm, reward)
    for arm in range(ARMS):
        x, r = contexts[arms == arm], rewards[arms == arm]
        assert np.allclose(twin.weights()[arm], np.linalg.solve(np.eye(DIM) + x.T @ x, x.T @ r))


def test_a_wrong_choice_is_a_fault(bandit: ModuleType) -> None:
    """With one lesson learned, arm 2 scores 1/2 where the others score 0."""
    twin, x, onehot = bandit.Twin(ARMS, DIM), np.eye(DIM)[0], np.eye(ARMS)
    assert twin.fault(x, onehot[1], 0.0) == 0.0  # all scores are equal
    twin.update(x, 2, 1.0)
    assert twin.fault(x, onehot[2], 0.0) == 0.0
    assert twin.fault(x, onehot[1], 0.0) == 0.5
    assert twin.fault(x, onehot[1], 1.0) == 0.0  # it explored
    assert twin.fault(x, onehot[2], 3.0) == 2.0  # no coin shows that
    assert twin.fault(x, onehot[1] + onehot[2], 1.0) == 1.0
    assert twin.fault(x, np.zeros(ARMS), 1.0) == 1.0

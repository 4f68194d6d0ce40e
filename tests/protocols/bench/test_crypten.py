"""CrypTen's measurements: one of each kind on CrypTen itself, and the judge of the bandit's steps."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.linear import LinearBandit
from mpc import ConfigError
from protocols.bench import crypten
from protocols.bench.crypten_operations import TRANSPORT
from protocols.bench.crypten_steps import fault

ARMS, DIM = 4, 3


@pytest.mark.needs("torch")
def test_operations_are_timed_counted_and_checked() -> None:
    found = crypten.measure(2, 2, only=["addition", "product", TRANSPORT])
    assert set(found) == {("addition", 100), ("product", 100), ("product", 1000), (TRANSPORT, 1)}
    rounds = {op: row["rounds"] for op, row in found.items()}
    assert rounds == {("addition", 100): 0, ("product", 100): 1, ("product", 1000): 1, (TRANSPORT, 1): 1}
    assert found["product", 1000]["bytes_per_party"] == 2 * 2 * 8 * 1000, "two numbers for each, to and from the other"
    assert all(row["microseconds"] > 0 and row["max_error"] < 0.01 for row in found.values())


@pytest.mark.needs("torch")
def test_a_step_is_timed_counted_and_checked() -> None:
    rows = crypten.measure_bandit(2, ARMS, DIM, 1)
    assert [row["method"] for row in rows] == ["log_reduction", "pairwise"]
    for row in rows:
        assert "error" not in row and row["rounds"] > 50 and row["max_error"] <= 0.01


def test_what_cannot_run_is_said_and_leaves_no_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> str:
        raise ConfigError("CrypTen is not here: run scripts/setup_crypten")

    monkeypatch.setattr("protocols.run.crypten_parties.crypten_python", missing)
    assert crypten.measure(2, 1) == {} and crypten.measure_bandit(2, ARMS, DIM, 1) == []
    assert capsys.readouterr().err.count("CrypTen: CrypTen is not here: run scripts/setup_crypten") == 2


def test_a_wrong_choice_is_a_fault() -> None:
    """With one lesson learned, arm 2 scores 1/2 where the others score 0."""
    twin, x, onehot = LinearBandit(1, ARMS, DIM), np.eye(DIM)[0], np.eye(ARMS)
    assert fault(twin, x, onehot[1], 0.0) == 0.0  # all scores are equal
    twin.update(x[None, None], np.array([[2]]), np.array([[1.0]]))
    assert fault(twin, x, onehot[2], 0.0) == 0.0
    assert fault(twin, x, onehot[1], 0.0) == 0.5
    assert fault(twin, x, onehot[1], 1.0) == 0.0  # it explored
    assert fault(twin, x, onehot[2], 3.0) == 2.0  # no coin shows that
    assert fault(twin, x, onehot[1] + onehot[2], 1.0) == 1.0
    assert fault(twin, x, np.zeros(ARMS), 1.0) == 1.0

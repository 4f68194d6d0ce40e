"""Eight seeds in every mode: the integer reference bit for bit, and near ties alone where float64 pulls another arm.

On movies, if their file is beside the project, else on normal arms.  `scripts/agreement_linucb` is the long version.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.linear_problem import LinearProblem
from bandits.movielens import movielens
from bandits.oful import Confidence
from protocols.bench import linucb_agreement
from protocols.bench.linucb_agreement import Beside, classic, hidden, main, measure, shown

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
MOVIES = (SHARED / "movielens-100k").is_dir()
SIZES = pytest.mark.parametrize(("dim", "arms", "budget"), [(3, 15, 25), (5, 50, 10), (18, 6, 25)])
SEEDS, BITS = 8, 256


def problem(dim: int, arms: int, seed: int) -> LinearProblem:
    if MOVIES:
        return movielens(SHARED, dim=dim, arms=arms, user=seed)
    rng = np.random.default_rng([seed, dim, arms])
    x, theta = rng.normal(size=(arms, dim)), rng.normal(size=dim)
    return LinearProblem(x, theta, Confidence.of(x, theta))


@SIZES
def test_classic(dim: int, arms: int, budget: int) -> None:
    runs = [classic(problem(dim, arms, seed), budget, seed, BITS) for seed in range(SEEDS)]
    assert all(run.exact and run.near and run.precision < 1e-7 for run in runs)


@SIZES
def test_arms_shown(dim: int, arms: int, budget: int) -> None:
    runs = [shown(problem(dim, arms, seed), budget, seed) for seed in range(SEEDS)]
    assert all(run.exact and run.near and run.precision < 1e-6 for run in runs)


@SIZES
def test_arms_hidden(dim: int, arms: int, budget: int) -> None:
    runs = [hidden(problem(dim, arms, seed), budget, seed) for seed in range(SEEDS // 2)]
    assert all(run.exact and run.near and run.precision < 1e-3 for run in runs)


def test_sets_that_tie() -> None:
    rows = measure(None, seeds=SEEDS, budget=6, bits=BITS)
    assert [(row.problem, row.mode) for row in rows][:2] == [
        ("orthonormal", "classic"),
        ("orthonormal", "mpc, arms shown"),
    ]
    assert len(rows) == 9 and all(row.near and row.exact == SEEDS for row in rows)
    assert min(row.closest for row in rows) < 1e-9, "nothing tied"
    assert any(row.parted for row in rows), "and float64 parts somewhere, or the comparison could not fail"


def test_what_is_no_near_tie_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    far = Beside(True, 1e-3, 1e-3, 1e-6)
    assert not far.near and replace(far, gap=None).near and replace(far, gap=1.9e-6).near
    monkeypatch.setattr(linucb_agreement, "shown", lambda *_: far)
    monkeypatch.setattr(sys, "argv", ["script", "--seeds", "1", "--budget", "4", "--bits", "256"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1 and "1.0e-03" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["script", "--seeds", "0"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2 and "at least 1 seed" in capsys.readouterr().err

"""What is said and drawn of a run: how near two scores were, what needs no context, and what is not counted as time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import Episode
from mpc import RangeError
from mpc.bilinear import Bilinear
from mpc.correlations import ProductMask, SquareMask
from protocols.ppcb.report import reward_curve, text
from protocols.ppcb.run import Difference, Run, baselines_of
from protocols.run.checkpoint import checkpoints
from protocols.run.dealer_process import warm_up

from ..harness import ROOT
from .runs import ENVIRONMENT, SEED, paying, played, settings, simulate


@pytest.fixture(scope="module")
def run() -> Run:
    return played(settings(), 2, 30)


@pytest.mark.parametrize(
    ("state_bits", "gap", "words"),
    [
        (20, 0.0, "replica 1 at step 7, where the two best scores tied exactly"),
        (20, 1e-5, "a near tie: the two best scores were 1e-05 apart, less than 2^-12"),
        (20, 1e-4, "a near tie: the two best scores were 0.0001 apart, less than 2^-12"),
        (28, 1e-4, "the two best scores were 0.0001 apart, no near tie, which is below 2^-15"),
        (20, 0.25, "the two best scores were 0.25 apart, no near tie, which is below 2^-12"),
    ],
)
def test_a_difference_says_how_near_the_scores_were(state_bits: int, gap: float, words: str, run: Run) -> None:
    given = replace(run.settings, state_bits=state_bits)
    said = text(replace(run, settings=given, differences=(Difference(1, 7, gap),)))
    assert words in said and "close" not in said
    assert ("near tie:" in said) is (0 < gap < 2.0 ** (-15 if state_bits == 28 else -12))


def test_baselines_need_no_context() -> None:
    """Arm 1 pays most of the first three steps, whatever comes after them."""
    outcomes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    found = baselines_of([Episode(np.zeros((5, 2)), outcomes)] * 2, 3)
    assert found["best fixed arm"].T.tolist() == [[0.0, 1.0, 1.0]] * 2
    assert np.allclose(found["uniform arms"].T, [[1 / 3, 1 / 3, 2 / 3]] * 2)


def test_the_curve_has_baselines_title_and_axes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    kept: list[Any] = []
    monkeypatch.setattr("protocols.run.picture.Figure", lambda **how: kept.append(figure(**how)) or kept[-1])
    reward_curve(run, tmp_path / "curve.png")
    (axes,) = kept[0].axes
    ends = {line.get_label(): float(line.get_ydata()[-1]) for line in axes.lines}
    widths = {line.get_label(): line.get_linewidth() for line in axes.lines}
    assert ends.keys() == {"private", "plaintext twin", "uniform arms", "best fixed arm"}
    assert ends["private"] == pytest.approx(run.rewards.mean())
    assert ends["uniform arms"] == pytest.approx(run.baselines["uniform arms"].mean())
    assert ends["uniform arms"] < ends["best fixed arm"] and widths["uniform arms"] < widths["private"]


@pytest.mark.needs("torch")
def test_an_import_is_no_time_of_a_step() -> None:
    """Small products never import torch; where one will, it is there before the first decision."""
    script = """
import sys
from bandits.environments import synthetic_linear
from protocols.ppcb.settings import Settings
from protocols.run.simulate import Simulation
from tests.protocols.ppcb.runs import simulate

class Seen(Exception): pass

def first(simulation):
    raise Seen('torch' in sys.modules)

Simulation.turn = first
for arms in (4, 40):
    try:
        simulate(synthetic_linear(arms, 20, rows=20), Settings(arms, 20, batch=4), parties=2, steps=4, seed=1)
    except Seen as seen:
        print(seen)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_material_is_warmed_up_by_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(Bilinear, "__call__", lambda op, x, y: seen.append((op.spec, x.shape, y.shape)))
    large = ProductMask(Bilinear("ab,bc->ac"), (40, 50), (50, 60))
    warm_up([SquareMask((3,)), large, large])
    assert seen == [("ab,bc->ac", (40, 50), (50, 60))]


def test_a_context_beyond_the_bound_is_found_before_the_first_decision(tmp_path: Path) -> None:
    """Of 40 rows the last is too long: the checkpoints of the run before are still there."""
    rest = {"parties": 2, "steps": 40, "seed": SEED, "folder": tmp_path, "every": 10}
    simulate(ENVIRONMENT, settings(), **rest)
    rows = np.zeros((40, 8))
    rows[-1, 0] = 1.001
    with pytest.raises(RangeError, match=r"block of party 0 has norm 1\.001, declared is 1"):
        simulate(paying(rows), settings(), **rest)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000030.npz", "checkpoint-000000040.npz"]

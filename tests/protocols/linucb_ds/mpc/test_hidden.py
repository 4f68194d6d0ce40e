"""Arms hidden: indices within the stated precision of float64, an exact sum, and near ties alone where runs part."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandits.coins import Noise
from bandits.linear_problem import LinearProblem
from mpc.bilinear import TRIANGLE, Bilinear
from mpc.correlations import ProductMask, SquareMask, TruncationMask, layout
from protocols.linucb_ds.mpc.run import nearest, pulled
from protocols.linucb_ds.mpc.settings import Settings

from .runs import TIES, Followed, followed, normal, of, paid_exactly, played, simulation_of, spectral

PROBLEMS: dict[str, tuple[LinearProblem, int]] = {
    "d=3 K=15": (normal(3, 15), 60),
    "d=5 K=50": (normal(5, 50, seed=1), 25),
    "d=18 K=6": (normal(18, 6, seed=2), 60),
    "graph": (spectral(12), 60),
    "lengths from 0.001 to 3": (of(np.diag([3.0, 1.0, 0.1, 0.001]), [0.2, -0.5, 1.0, 2.0]), 60),
    "nearly the same": (of([[1.0, 0.0], [1.0, 1e-4], [1.0, -1e-4], [-1.0, 0.0]], [0.3, 1.0]), 60),
    "an arm of length 0": (of([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.3, -0.2]), 40),
    "one arm": (of([[0.5, 0.5]], [1.0, 0.0]), 20),
    "one dimension": (of([[1.0], [-1.0], [0.5]], [0.3]), 60),
    "long arms": (normal(4, 6, size=6.0), 60),
    "a small gamma": (normal(4, 6, gamma=0.02), 40),
    "a large gamma": (normal(4, 6, gamma=300.0), 40),
    "short arms": (normal(4, 6, size=0.002), 40),
    "much noise": (normal(4, 6, noise=40.0), 40),
    "no noise": (normal(4, 6, noise=0.0), 40),
    "one pull": (normal(4, 6), 1),
}


def holds(run: Followed) -> None:
    """What a run with hidden arms promises."""
    settings, precision = run.run.settings, run.run.settings.ranges.precision
    arms = pulled(run.simulation.player)
    assert all(0 <= arm < settings.count for arm in arms)
    assert run.error < precision
    assert run.shortfall < 2 * precision, "not the best arm, nor nearly"
    assert run.gram < settings.ranges.noise
    assert run.run.word == nearest(paid_exactly(run.simulation.program.problem, settings, arms, run.coins), settings)
    assert arms[0] == run.coins.first, "the first arm is the dealt order's"
    difference, reference = run.run.difference, run.run.reference
    assert reference is not None
    if difference is None:
        assert run.run.word == reference.word
    else:
        assert difference.gap < 2 * precision, "no near tie"


@pytest.mark.parametrize("name", PROBLEMS)
def test_indices_are_float64s_within_the_precision(name: str) -> None:
    problem, budget = PROBLEMS[name]
    holds(followed(problem, budget))


@pytest.mark.parametrize("noise", Noise)
def test_for_any_number_of_parties(noise: Noise, parties: int) -> None:
    holds(followed(normal(3, 6, seed=4), 30, parties=parties, noise=noise))


@pytest.mark.parametrize("name", TIES)
def test_where_indices_tie(name: str) -> None:
    holds(followed(TIES[name], 40, seed=2))


def test_the_same_arms_as_float64_where_no_indices_are_close() -> None:
    """16 seeds; on a normal problem a gap below the precision is rare, so runs hardly ever part."""
    runs = [played(normal(3, 6, seed=seed), 30, seed=seed, hide=True) for seed in range(16)]
    parted = [run.difference for run in runs if run.difference is not None]
    assert len(parted) <= 1
    assert all(difference.gap < 2 * runs[0].settings.ranges.precision for difference in parted)
    assert all(run.arms is None for run in runs), "a run with hidden arms tells none"


def test_the_precision_is_worth_stating() -> None:
    """Small beside what indices differ by, and not much larger than what is seen."""
    run = followed(normal(3, 15), 60)
    assert 1e-8 < run.error < run.run.settings.ranges.precision < 1e-3


def test_what_is_symmetric_is_opened_dealt_and_truncated_packed() -> None:
    """C of K (K + 1) / 2 words and m in one product, v v' and v f in another, and what is truncated of that."""
    problem, arms = normal(3, 15), 15
    items = simulation_of(problem, Settings.of(problem, 5, hide=True), parties=2, seed=1).rehearsed.turn
    words = arms * (arms + 1) // 2 + arms
    assert ProductMask(Bilinear("sym:ij,j->i"), (words,), (arms,)) in items
    assert SquareMask((arms + 1,), TRIANGLE) in items and TruncationMask((words,), 30) in items
    products = [layout(item) for item in items if isinstance(item, (ProductMask, SquareMask, TruncationMask))]
    assert max(math.prod(field.shape) for one in products for field in one.free + one.dealt) <= words + 1


def test_first_arms_are_uniform() -> None:
    """The argmax of equal indices draws the first arm.  Chi-square, 200 draws of 4 arms: 21.1 is p = 1e-4."""
    problem = normal(2, 4)
    settings = Settings.of(problem, 1, hide=True)
    simulation = simulation_of(problem, settings, parties=2, seed=1)
    for block in range(200):
        simulation.dealer.enter(block)
        simulation.player.done = 0
        simulation.player.turn()
    counts = np.bincount(pulled(simulation.player), minlength=4)
    assert ((counts - 50) ** 2 / 50).sum() < 21.1

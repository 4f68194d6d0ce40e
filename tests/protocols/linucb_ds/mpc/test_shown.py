"""Arms shown: the fixed-point reference's arms and its integer, bit for bit, also where indices tie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandits.coins import Noise
from bandits.fixed_point import play_fixed, precision, rounded
from bandits.linear_problem import LinearProblem
from bandits.oful import OFUL, play
from protocols.linucb_ds.mpc.dealt_coins import replayed
from protocols.linucb_ds.mpc.run import Reference, Run, pulled
from protocols.linucb_ds.mpc.settings import Settings

from .runs import TIES, normal, of, played, ring, simulation_of, spectral

SIZES = [(3, 15, 60), (5, 50, 25), (18, 6, 60)]


def same(run: Run) -> bool:
    assert run.reference is not None
    return run.arms == run.reference.arms and run.word == run.reference.word and run.difference is None


@pytest.mark.parametrize(("dim", "arms", "budget"), SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_arms_and_sum_are_the_references(dim: int, arms: int, budget: int, seed: int) -> None:
    run = played(normal(dim, arms, seed=seed), budget, seed=seed)
    assert same(run)
    assert run.arms is not None and len(set(run.arms)) > 1, "a run of one arm shows little"


@pytest.mark.parametrize("noise", Noise)
@pytest.mark.parametrize("seed", range(5))
def test_for_any_number_of_parties(seed: int, noise: Noise, parties: int) -> None:
    assert same(played(normal(3, 15, seed=seed), 30, seed=seed, parties=parties, noise=noise))


@pytest.mark.parametrize("seed", range(3))
def test_on_a_graph(seed: int, parties: int) -> None:
    assert same(played(spectral(12, seed=seed), 40, seed=seed, parties=parties))


@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("seed", range(5))
def test_ties_fall_as_the_dealt_order_says(name: str, seed: int) -> None:
    run = played(TIES[name], 40, seed=seed)
    assert same(run)
    assert run.reference is not None and min(run.reference.gaps) < 1e-8, "nothing tied"


def test_another_order_breaks_ties_otherwise() -> None:
    """The comparison above can fail."""
    problem = TIES["orthonormal"]
    settings = Settings.of(problem, 40)
    simulation = simulation_of(problem, settings, parties=2, seed=1)
    coins = replayed(settings, 1, simulation.dealer.coin_key, simulation.rehearsed.turn)
    turned = replace(coins, ties=settings.count - 1 - coins.ties)
    own, other = (Reference.of(problem, settings, each) for each in (coins, turned))
    assert own.arms != other.arms
    assert played(problem, 40).arms == own.arms


@pytest.mark.parametrize(
    "problem", [normal(3, 15), normal(5, 50, seed=3), spectral(15, seed=2)], ids=["3", "5", "graph"]
)
def test_beside_float64_only_a_near_tie_differs(problem: LinearProblem) -> None:
    for seed in range(3):
        settings = Settings.of(problem, 50)
        simulation = simulation_of(problem, settings, parties=2, seed=seed)
        coins = replayed(settings, seed, simulation.dealer.coin_key, simulation.rehearsed.turn)
        exact = rounded(problem, settings.scales)
        for pull in play(OFUL(exact.arms, exact.exploration), exact, coins):
            simulation.turn()
            if pulled(simulation.player)[-1] != pull.arm:
                assert pull.gap < 2 * precision(problem, settings.scales)
                break


@pytest.mark.parametrize("size", [1e-3, 0.1, 30.0])
def test_units_do_not_matter(size: float) -> None:
    """Arms times a constant and theta divided by it: fraction bits follow."""
    assert same(played(normal(3, 8, size=size, noise=0.5, gamma=size**2), 30))


@pytest.mark.parametrize(
    ("problem", "budget"),
    [
        (normal(3, 15), 1),
        (normal(3, 1), 6),
        (normal(1, 2), 20),
        (of([[1.0], [-1.0], [0.0]], [0.5]), 20),
        (ring(4), 2),
        (normal(4, 6, noise=0.0), 20),
    ],
    ids=["N=1", "K=1", "d=1", "an arm of length 0", "N=2", "no noise"],
)
def test_the_smallest_runs(problem: LinearProblem, budget: int) -> None:
    assert same(played(problem, budget))


def test_indices_stay_within_their_bits() -> None:
    """Of the reference's integers, which the shares hold; theta and noise as large as they may be."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        arms = rng.normal(size=(6, 3)) * rng.uniform(0.2, 3.0)
        theta = rng.normal(size=3)
        problem = of(arms, theta / np.linalg.norm(theta) * 2.0 ** rng.integers(-2, 4), noise=float(rng.uniform(0, 4)))
        settings = Settings.of(problem, 60)
        coins = replayed(settings, 1, bytes(16), simulation_of(problem, settings, parties=2, seed=1).rehearsed.turn)
        coins = replace(coins, noise=np.full(60, settings.exploration.noise))
        run = play_fixed(problem, coins, settings.scales)
        largest = max(abs(index) for pull in run.pulls for index in pull.indices)
        assert largest < 1 << (settings.index_bits - 1)
        assert abs(run.total) < 1 << (settings.bounds.total_bits(settings.scales) - 1) <= 1 << 61

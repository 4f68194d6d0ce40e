"""What Comp, P and DC of LinUCB-DS find out, from the integers that they would see."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bandits.attacks.linucb_comp import recover, without_signs
from bandits.attacks.linucb_dc import fitting_exactly, share_that_fits
from bandits.attacks.linucb_p import cosine, estimate
from bandits.coins import Coins, Noise
from bandits.fixed_point import FixedRun, Scales, play_fixed, reals, rounded, words
from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from bandits.spectral import neighbour_graph, spectral_problem

SCALES = Scales(40, 40, 40)


def random_problem(dim: int, arms: int, seed: int) -> LinearProblem:
    rng = np.random.default_rng([seed, dim, arms])
    rows, theta = rng.normal(size=(arms, dim)), rng.normal(size=dim)
    return LinearProblem(rows, theta, Confidence.of(rows, theta))


def seen_by_comp(run: FixedRun, coins: Coins) -> tuple[np.ndarray, np.ndarray]:
    """Permuted lists in reals, and the permutations."""
    orders = np.argsort(-coins.ties[1:], axis=1)
    lists = np.stack([np.array(pull.indices, object)[order] for pull, order in zip(run.pulls[1:], orders)])
    return reals(lists, run.scales.index), orders


@pytest.mark.parametrize(("dim", "arms"), [(3, 15), (5, 30), (8, 4)])
@pytest.mark.parametrize("noise", list(Noise))
def test_comp_recovers_permutations_arms_and_rewards(dim: int, arms: int, noise: Noise) -> None:
    for seed in range(3):
        problem = random_problem(dim, arms, seed)
        coins = Coins.draw(seed, budget=60, arms=arms, noise=noise)
        run = play_fixed(problem, coins, SCALES)
        lists, orders = seen_by_comp(run, coins)
        found = recover(lists, rounded(problem, SCALES).arms, problem.exploration)
        assert found.arms.tolist() == run.arms
        assert (found.orders == orders).all()
        rewards = [pull.reward * 2.0**-SCALES.reward for pull in run.pulls[:-1]]
        assert np.abs(found.rewards - rewards).max() < 1e-7
        assert found.mismatch.max() < 1e-7


def test_comp_recovers_theta() -> None:
    problem = random_problem(3, 15, 5)
    coins = Coins.draw(5, budget=300, arms=15)
    lists, _ = seen_by_comp(play_fixed(problem, coins, SCALES), coins)
    found = recover(lists, rounded(problem, SCALES).arms, problem.exploration)
    size = np.linalg.norm(problem.theta)
    assert np.linalg.norm(found.theta - problem.theta) < 0.3 * size
    exact = without_signs(found, problem.arms, 1.0)
    assert exact is not None and np.linalg.norm(exact - problem.theta) < 1e-6 * size
    assert without_signs(recover(lists[:2], problem.arms, problem.exploration), problem.arms, 1.0) is None


def test_comp_where_arms_cancel_out() -> None:
    half = np.random.default_rng(1).normal(size=(4, 3))
    arms, theta = np.concatenate([half, -half]), np.array([1.0, -0.5, 0.25])
    problem = LinearProblem(arms, theta, Confidence.of(arms, theta))
    coins = Coins.draw(2, budget=40, arms=8)
    run = play_fixed(problem, coins, SCALES)
    found = recover(seen_by_comp(run, coins)[0], rounded(problem, SCALES).arms, problem.exploration)
    right = found.arms == np.array(run.arms)
    mirrored = found.arms == (np.array(run.arms) + 4) % 8
    assert right.all() or mirrored.all()  # x and -x with theta and -theta look the same


def test_comp_of_spectralucb() -> None:
    rng = np.random.default_rng(6)
    problem = spectral_problem(neighbour_graph(rng.normal(size=(9, 3)), 3), 3.0 + rng.normal(size=9))
    coins = Coins.draw(6, budget=40, arms=9)
    run = play_fixed(problem, coins, SCALES)
    found = recover(seen_by_comp(run, coins)[0], rounded(problem, SCALES).arms, problem.exploration)
    assert found.arms.tolist() == run.arms


def test_comp_learns_nothing_from_noise() -> None:
    problem = random_problem(3, 15, 1)
    lists = np.random.default_rng(0).normal(size=(59, 15))
    coins = Coins.draw(1, budget=60, arms=15)
    found = recover(lists, problem.arms, problem.exploration)
    assert found.mismatch.min() > 1e-3
    assert (found.arms == np.array(play_fixed(problem, coins, SCALES).arms)).mean() < 0.4


def test_p_estimates_theta_from_the_arms_it_pulls() -> None:
    angles, random_angles = [], []
    for seed in range(6):
        problem = random_problem(3, 15, seed)
        coins = Coins.draw(seed, budget=150, arms=15)
        run = play_fixed(problem, coins, SCALES)
        found = estimate(problem.arms, run.arms, coins.noise, problem.exploration)
        angles.append(cosine(found, problem.theta))
        shuffled = np.random.default_rng(seed).integers(15, size=150).tolist()
        blind = estimate(problem.arms, shuffled, coins.noise, problem.exploration)
        random_angles.append(cosine(blind, problem.theta))
    assert np.median(angles) > 0.97
    assert np.median(np.abs(random_angles)) < 0.9
    assert cosine(np.zeros(3), problem.theta) == 0.0
    assert not estimate(problem.arms, [2], coins.noise, problem.exploration).any()


def sums_of(arms: np.ndarray, theta: tuple[int, ...], noise: int, budget: int) -> set[int]:
    """All that so many pulls of theta can pay, one pull after the other."""
    sums, paid = {0}, [int(arm) for arm in arms @ np.array(theta)]
    for _ in range(budget):
        sums = {total + reward + sign for total in sums for reward in paid for sign in (-noise, noise)}
    return sums


def test_dc_finds_all_thetas_that_fit_and_no_others() -> None:
    """Small words: beside all of them, tried one by one."""
    arms, norm, budget = np.array([[7, -3], [2, 7], [-5, 1]]), 9, 3
    disk = [theta for theta in product(range(-norm, norm + 1), repeat=2) if theta[0] ** 2 + theta[1] ** 2 <= norm**2]
    sums = {theta: sums_of(arms, theta, 40, budget) for theta in disk}
    for theta in [(3, -2), (0, 9), (-5, -7)]:
        for total in sorted(sums[theta])[::7]:
            fit = {other for other in disk if total in sums[other]}
            assert fitting_exactly(arms, 40, norm, budget, total) == fit and theta in fit


def test_darts_find_the_share_of_thetas_that_fit() -> None:
    """Beside a grid of 5,000 thetas: within 5 deviations of 4,000 darts and the grid's own steps."""
    arms, budget, noise, norm, unit = np.array([[1.0, 0.2], [-0.3, 0.8]]), 2, 1.0, 2.0, 0.5
    told = [(3, unit), (2, unit)]
    axis = np.linspace(-norm, norm, 81)
    disk = [theta for theta in product(axis, axis) if np.hypot(*theta) <= norm]
    paid = [
        {round((a @ theta + b @ theta + signs) / unit) for a in arms for b in arms for signs in (-2.0, 0.0, 2.0)}
        for theta in np.array(disk)
    ]
    for count in (1, 2):
        share = float(np.mean([all(word in sums for word, _ in told[:count]) for sums in paid]))
        found = share_that_fits(arms, noise, norm, budget, told[:count], np.random.default_rng(1))
        assert 0.1 < share < 0.9 and abs(found - share) < 5 * (share * (1 - share) / 4000) ** 0.5 + 0.02


def test_the_whole_sum_gives_theta_away_and_a_rounded_one_does_not() -> None:
    """d = 2, K = 4, N = 20, signs: a sum of 57 fraction bits leaves some thousands of 2^56, two leave one."""
    problem, scales = random_problem(2, 4, 3), Scales(29, 28, 28)
    exact, norm = rounded(problem, scales), problem.exploration.theta_norm
    runs = [play_fixed(problem, Coins.draw(seed, budget=20, arms=4), scales) for seed in (1, 2)]
    arms, theta = words(exact.arms, scales.arm), tuple(words(exact.theta, scales.theta).tolist())
    one, two = (fitting_exactly(arms, 1 << 57, int(norm * 2**28), 20, run.total) for run in runs)
    assert len(one) < 1 << 15 and len(two) < 1 << 15 and one & two == {theta}
    told = [(round(run.cumulative_reward / 0.25), 0.25) for run in runs]
    assert share_that_fits(exact.arms, 1.0, norm, 20, told, np.random.default_rng(1)) > 2.0**-8


@pytest.mark.parametrize("word", [-130, 130])
def test_dc_counts_theta_where_all_signs_are_alike(word: int) -> None:
    """One pull pays x -+ 0.5, and |x| <= 1: of 1.3 only x = 0.8 is left, a strip of 0.4 % of the disc."""
    arms, told = np.array([[1.0, 0.0]]), [(word, 0.01)]
    assert 0.001 < share_that_fits(arms, 0.5, 1.0, 1, told, np.random.default_rng(1)) < 0.01

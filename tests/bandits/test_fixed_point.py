"""The integer reference: equal to float64 up to the stated precision, inside its stated bounds, never a silent wrap."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.coins import Coins, Noise
from bandits.fixed_point import (
    FixedPointUCB,
    PublicMap,
    Scales,
    arm_words,
    bounds,
    int64,
    play_fixed,
    precision,
    reals,
    rounded,
    words,
)
from bandits.linear_problem import LinearProblem, ProblemError
from bandits.oful import OFUL, Confidence, play
from bandits.spectral import neighbour_graph, spectral_problem

WIDE = Scales(40, 40, 40)
TIGHT = Scales(30, 18, 30)  # as fits a ring of 64 bits


def linucb(dim: int, arms: int, seed: int = 0, **constants: float) -> LinearProblem:
    rng = np.random.default_rng([seed, dim, arms])
    rows, theta = rng.normal(size=(arms, dim)), rng.normal(size=dim)
    return LinearProblem(rows, theta, Confidence.of(rows, theta, **constants))


def spectral(nodes: int, seed: int = 0) -> LinearProblem:
    rng = np.random.default_rng(seed)
    return spectral_problem(neighbour_graph(rng.normal(size=(nodes, 3)), 3), 3.0 + rng.normal(size=nodes), noise=0.3)


PROBLEMS = [linucb(1, 1), linucb(3, 15), linucb(5, 20), linucb(18, 6), linucb(3, 8, gamma=0.1), spectral(12)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"d{p.dim}K{len(p.arms)}")
@pytest.mark.parametrize("scales", [Scales(), WIDE, TIGHT], ids=["30", "40", "tight"])
@pytest.mark.parametrize("noise", list(Noise))
def test_it_pulls_what_float64_pulls(problem: LinearProblem, scales: Scales, noise: Noise) -> None:
    exact, within = rounded(problem, scales), precision(problem, scales)
    for seed in range(3):
        coins = Coins.draw(seed, budget=80, arms=len(problem.arms), size=problem.exploration.noise, noise=noise)
        run = play_fixed(problem, coins, scales)
        pulls = list(play(OFUL(exact.arms, exact.exploration), exact, coins))
        different = [step for step, pull in enumerate(pulls) if pull.arm != run.arms[step]]
        if different:
            assert pulls[different[0]].gap <= 2 * within
        else:
            assert abs(sum(pull.reward for pull in pulls) - run.cumulative_reward) < 1e-7
        limits = bounds(
            exact.arms, exact.exploration, 80, largest_noise=problem.exploration.noise * noise.largest
        )  # fmt: skip
        indices = [abs(index) for pull in run.pulls for index in pull.indices]
        assert max(indices, default=0).bit_length() < limits.index_bits(scales)
        assert sum(abs(pull.reward) for pull in run.pulls).bit_length() < limits.total_bits(scales)


@pytest.mark.parametrize("problem", PROBLEMS[1:], ids=lambda p: f"d{p.dim}K{len(p.arms)}")
def test_indices_are_within_the_stated_precision(problem: LinearProblem) -> None:
    scales = Scales(24, 20, 24)
    exact = rounded(problem, scales)
    coins = Coins.draw(9, budget=60, arms=len(problem.arms), size=problem.exploration.noise)
    fixed, floating = FixedPointUCB(problem, scales, 60), OFUL(exact.arms, exact.exploration)
    for step in range(60):
        arm = coins.first if step == 0 else fixed.pull(coins.ties[step])
        reward = fixed.update(arm, float(coins.noise[step]))
        floating.update(arm, reward * 2.0**-scales.reward)
        apart = np.abs(reals(np.array(fixed.indices(), object), scales.index) - floating.indices()).max()
        assert apart <= precision(exact, scales)


def test_the_precision_is_half_a_unit_of_each_rounding() -> None:
    """By hand: abs(theta) sums to 3, the map is rounded to 2^-6 and an index to 2^-8; float64 loses 1e-9 itself."""
    arms, theta = np.eye(2), np.array([1.0, -2.0])
    problem = LinearProblem(arms, theta, Confidence.of(arms, theta))
    assert precision(problem, Scales(10, 2, 6)) == pytest.approx(3 / 128 + 1 / 512, abs=2e-9)


def test_the_map_is_the_inverse() -> None:
    problem = linucb(4, 7)
    public = PublicMap(problem.arms, problem.exploration, 50)
    rng = np.random.default_rng(2)
    gram, noise = np.eye(4), np.zeros(4)
    for step in range(1, 51):
        arm, eta = int(rng.integers(7)), float(rng.normal())
        public.update(arm, eta)
        x = problem.arms[arm]
        gram, noise = gram + np.outer(x, x), noise + eta * x
        inverse = np.linalg.inv(gram)
        widths = np.sqrt(np.einsum("kd,de,ke->k", problem.arms, inverse, problem.arms))
        assert np.allclose(public.coefficients(), problem.arms @ inverse @ (gram - np.eye(4)), atol=1e-12)
        assert np.allclose(public.widths(), widths, atol=1e-12)
        omega = problem.exploration.omega(step, 4)
        assert np.allclose(public.offsets(), problem.arms @ inverse @ noise + omega * widths, atol=1e-11)
        assert np.abs(public.coefficients()).max() <= public.coefficient_bound()


def tie_prone() -> dict[str, np.ndarray]:
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    half = np.random.default_rng(4).normal(size=(4, 3))
    return {
        "orthonormal": np.eye(6), "turned": turned, "pairs": np.concatenate([half, -half]),
        "signs": np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T,
    }  # fmt: skip


@pytest.mark.parametrize("name", tie_prone())
def test_ties_are_exact_and_go_to_the_coins(name: str) -> None:
    arms = tie_prone()[name]
    theta = np.ones(arms.shape[1])
    problem = LinearProblem(arms, theta, Confidence.of(arms, theta))
    ties = 0
    for seed in range(5):
        coins = Coins.draw(seed, budget=60, arms=len(arms))
        run = play_fixed(problem, coins, Scales())
        assert run == play_fixed(problem, coins, Scales())
        for pull, ranks in zip(run.pulls[1:], coins.ties[1:]):
            best = [arm for arm, index in enumerate(pull.indices) if index == max(pull.indices)]
            assert pull.arm == max(best, key=lambda arm: ranks[arm])
            ties += len(best) > 1
    assert ties > 0 or name in ("turned", "pairs")  # rounded differently in each coordinate; paid with noise


def test_words_are_exact_at_any_size() -> None:
    assert words(np.array([0.5, 1.5, -2.5, 2.0**-31]), 0).tolist() == [0, 2, -2, 0]
    assert words(1e30, 60).item() == int(1e30) << 60
    assert reals(words(np.array([[0.1, -3.7]]), 56), 56).tolist() == [[0.1, -3.7]]
    assert int64(np.array([1 << 62, -(1 << 63)], object)).tolist() == [1 << 62, -(1 << 63)]
    with pytest.raises(ProblemError, match="64 bits"):
        int64(np.array([1 << 63], object))
    with pytest.raises(ProblemError, match="float64"):
        words(1e300, 60)


@pytest.mark.parametrize(
    ("arms", "text"),
    [
        ([[1e-30, 0.0], [1.0, 0.0]], "arm 0 vanishes at 30"),
        ([[1.0, 0.0], [1.0 + 1e-12, 0.0]], "arms 0 and 1 are the same at 30"),
        ([[1e7, 0.0], [0.0, 1.0]], "must stay below"),
    ],
)
def test_arms_that_do_not_fit_are_refused(arms: list[list[float]], text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        arm_words(np.array(arms), Scales())


def test_what_else_does_not_fit_is_refused() -> None:
    arms = np.array([[1000.0, 0.0], [0.0, 1.0]])
    theta = np.array([1e-12, 0.0])
    problem = LinearProblem(arms, theta, Confidence.of(arms, theta))
    with pytest.raises(ProblemError, match="theta vanishes"):
        rounded(problem, Scales())
    with pytest.raises(ProblemError, match="outweigh"):
        PublicMap(arms, problem.exploration, 1 << 20)
    with pytest.raises(ProblemError, match="fraction bits"):
        Scales(0, 30, 30)
    assert play_fixed(problem, Coins.draw(1, budget=3, arms=2), Scales(30, 60, 30)).total


def test_one_arm_and_one_pull() -> None:
    problem = linucb(2, 1)
    run = play_fixed(problem, Coins.draw(5, budget=1, arms=1), Scales())
    assert run.arms == [0] and run.pulls[0].indices == ()
    assert play_fixed(problem, Coins.draw(5, budget=4, arms=1), Scales()).arms == [0] * 4

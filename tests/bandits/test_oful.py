"""LinUCB with fixed arms in float64: the published formulas, written out again; what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bandits.coins import Coins, Noise
from bandits.linear_problem import LinearProblem, ProblemError, load_arms, load_theta
from bandits.oful import OFUL, Confidence, gap, pick, play


def problem_of(arms: object, theta: object, **constants: float) -> LinearProblem:
    rows, parameter = np.array(arms, np.float64), np.array(theta, np.float64)
    return LinearProblem(rows, parameter, Confidence.of(rows, parameter, **constants))


def random_problem(dim: int, arms: int, seed: int = 0, **constants: float) -> LinearProblem:
    rng = np.random.default_rng(seed)
    return problem_of(rng.normal(size=(arms, dim)), rng.normal(size=dim), **constants)


def written_out(problem: LinearProblem, coins: Coins, gamma: float, delta: float) -> list[int]:
    """The algorithm as the paper has it: an inverse in each step, and a sum over its terms."""
    given = problem.exploration
    assert isinstance(given, Confidence)
    d = problem.dim
    pulled = [coins.first]
    rewards = [float(problem.arms[coins.first] @ problem.theta + coins.noise[0])]
    for t in range(1, coins.budget):
        a = gamma * np.eye(d) + sum(np.outer(problem.arms[k], problem.arms[k]) for k in pulled)
        b = sum(reward * problem.arms[k] for reward, k in zip(rewards, pulled))
        inverse = np.linalg.inv(a)
        omega = given.noise * math.sqrt(d * math.log((1 + t * given.arm_norm**2 / gamma) / delta))
        omega += math.sqrt(gamma) * given.theta_norm
        indices = [x @ inverse @ b + omega * math.sqrt(x @ inverse @ x) for x in problem.arms]
        arm = int(np.argmax(indices))
        pulled.append(arm)
        rewards.append(float(problem.arms[arm] @ problem.theta + coins.noise[t]))
    return pulled


@pytest.mark.parametrize(("dim", "arms"), [(1, 1), (1, 3), (3, 15), (6, 4)])
@pytest.mark.parametrize(("gamma", "delta"), [(1.0, 0.01), (0.3, 0.2)])
def test_it_is_the_published_algorithm(dim: int, arms: int, gamma: float, delta: float) -> None:
    problem = random_problem(dim, arms, gamma=gamma, delta=delta)
    coins = Coins.draw(7, budget=60, arms=arms)
    pulls = list(play(OFUL(problem.arms, problem.exploration), problem, coins))
    assert [pull.arm for pull in pulls] == written_out(problem, coins, gamma, delta)
    assert pulls[0].arm == coins.first


def test_a_bound_that_grows_is_log_t() -> None:
    given = Confidence(0.01, 0.001, 0.01, theta_norm=8.0, arm_norm=2.0, growing=True)
    for t in (1, 2, 50):
        root = math.sqrt(3 * math.log((1 + t * 4.0 / 0.01) / 0.001))
        assert given.omega(t, 3) == pytest.approx(0.01 * root + 0.1 * math.log(t))


def test_it_comes_to_pull_the_best_arm() -> None:
    problem = random_problem(3, 10, noise=0.2)
    coins = Coins.draw(1, budget=400, arms=10, size=0.2)
    late = [pull.arm for pull in play(OFUL(problem.arms, problem.exploration), problem, coins)][200:]
    best = int((problem.arms @ problem.theta).argmax())
    assert late.count(best) > 150


def test_indices_bound_the_expected_rewards() -> None:
    problem = random_problem(4, 8)
    policy = OFUL(problem.arms, problem.exploration)
    coins = Coins.draw(3, budget=100, arms=8)
    for step, noise in enumerate(coins.noise):
        arm = step % 8
        policy.update(arm, float(problem.arms[arm] @ problem.theta + noise))
        assert (policy.indices() >= problem.arms @ problem.theta).all()


@pytest.mark.parametrize("gamma", [1, 2, np.int64(3)])
def test_constants_may_be_whole_numbers(gamma: int) -> None:
    """Sums of outer products are reals whatever gamma is."""
    whole, real = (random_problem(3, 6, gamma=value) for value in (gamma, float(gamma)))
    coins = Coins.draw(2, budget=30, arms=6)
    found, wanted = (list(play(OFUL(p.arms, p.exploration), p, coins)) for p in (whole, real))
    assert found == wanted
    assert OFUL(whole.arms, whole.exploration).gram.dtype == np.float64


def test_ties_go_to_the_largest_rank() -> None:
    assert pick([1.0, 3.0, 3.0, 3.0], np.array([3, 1, 2, 0])) == 2
    assert pick([5, 5], np.array([1, 0])) == 0
    assert gap([1.0, 4.0, 2.5]) == 1.5
    assert gap([2]) == math.inf


def test_coins_follow_from_the_seed_and_are_fair() -> None:
    coins = Coins.draw(11, budget=4000, arms=3, size=0.5)
    again = Coins.draw(11, budget=4000, arms=3, size=0.5)
    assert coins.first == again.first and (coins.noise == again.noise).all() and (coins.ties == again.ties).all()
    assert set(coins.noise.tolist()) == {-0.5, 0.5}
    assert abs(coins.noise.mean()) < 0.5 * 4 / 4000**0.5  # 4 standard errors
    counts = np.unique(coins.ties @ [9, 3, 1], return_counts=True)[1]
    assert len(counts) == 6 and abs(counts / 4000 - 1 / 6).max() < 4 * (5 / 36 / 4000) ** 0.5
    assert not (Coins.draw(12, budget=4000, arms=3).ties == coins.ties).all()
    firsts = np.bincount([Coins.draw(seed, budget=1, arms=3).first for seed in range(900)], minlength=3)
    assert abs(firsts / 900 - 1 / 3).max() < 4 * (2 / 9 / 900) ** 0.5
    normal = Coins.draw(5, budget=4000, arms=2, size=2.0, noise=Noise.NORMAL).noise
    assert abs(normal.std() - 2.0) < 4 * 2.0 / 8000**0.5 and abs(normal).max() <= 2.0 * Noise.NORMAL.largest


@pytest.mark.parametrize(
    ("budget", "arms", "seed"), [(0, 3, 1), (-2, 3, 1), (3, 0, 1), (3, 3, -1), (3, 3, 1 << 128), (1 << 40, 3, 1)]
)
def test_coins_of_nothing_are_refused(budget: int, arms: int, seed: int) -> None:
    with pytest.raises(ProblemError, match=r"budget|arm|seed"):
        Coins.draw(seed, budget=budget, arms=arms)


@pytest.mark.parametrize(
    ("arms", "theta", "words"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [1.0, 1.0], "arms 0 and 1 are the same"),
        ([[1.0, 0.0], [1.0, -0.0]], [1.0, 1.0], "arms 0 and 1 are the same"),
        ([[1.0, 2.0]], [1.0], "2 dimensions and theta has shape"),
        ([[1.0, np.nan]], [1.0, 1.0], "arm 0 holds NaN"),
        ([[1.0, 1.0]], [1.0, np.inf], "theta holds NaN or infinite"),
        (np.zeros((0, 2)), [1.0, 1.0], "at least 1"),
        (np.zeros((2, 0)), [], "at least 1"),
        ([1.0, 2.0], [1.0, 1.0], "rows of a matrix"),
        ([[1e30, 1.0]], [1.0, 1.0], "float64 cannot tell gamma"),
    ],
)
def test_problems_that_are_refused(arms: object, theta: object, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        problem_of(arms, theta)


@pytest.mark.parametrize("tiny", [1e-30, 1e-8])
def test_tiny_arms_work_in_float64(tiny: float) -> None:
    problem = problem_of([[tiny, 0.0], [0.0, tiny]], [1.0, 2.0])
    pulls = list(play(OFUL(problem.arms, problem.exploration), problem, Coins.draw(1, budget=5, arms=2)))
    assert len(pulls) == 5 and all(math.isfinite(pull.reward) for pull in pulls)


def test_large_arms_work_with_a_regulariser_to_match() -> None:
    problem = problem_of([[1e30, 0.0], [0.0, 1e30]], [1e-30, 2e-30], gamma=1e55)
    assert len(list(play(OFUL(problem.arms, problem.exploration), problem, Coins.draw(1, budget=5, arms=2)))) == 5


@pytest.mark.parametrize(
    "constants", [{"gamma": 0.0}, {"gamma": -1.0}, {"delta": 0.0}, {"delta": 1.0}, {"noise": -1.0}, {"noise": math.nan}]
)
def test_constants_that_are_refused(constants: dict[str, float]) -> None:
    with pytest.raises(ProblemError):
        Confidence(**constants)


def test_bounds_that_do_not_hold_are_refused() -> None:
    arms, theta = np.array([[3.0, 4.0]]), np.array([0.0, 2.0])
    with pytest.raises(ProblemError, match="state a larger arm_norm"):
        LinearProblem(arms, theta, Confidence(arm_norm=4.9, theta_norm=2.0))
    with pytest.raises(ProblemError, match="state a larger theta_norm"):
        LinearProblem(arms, theta, Confidence(arm_norm=5.0, theta_norm=1.9))
    assert Confidence.of(arms, theta).theta_norm == 2.0
    assert Confidence.of(arms, theta * 1.01).theta_norm == 4.0


def test_arms_and_theta_from_files(tmp_path: Path) -> None:
    arms, theta = np.array([[1.5, -2.0], [0.25, 3.0]]), np.array([1.0, -1.0])
    np.save(tmp_path / "a.npy", arms)
    np.savetxt(tmp_path / "a.csv", arms, delimiter=",")
    np.savetxt(tmp_path / "a.txt", arms)
    for name in ("a.npy", "a.csv", "a.txt"):
        assert (load_arms(tmp_path / name) == arms).all()
    for name, values in {"t.npy": theta, "row.npy": theta[None], "column.npy": theta[:, None]}.items():
        np.save(tmp_path / name, values)
        assert (load_theta(tmp_path / name) == theta).all()
    (tmp_path / "t.txt").write_text("1 -1\n")
    assert (load_theta(tmp_path / "t.txt") == theta).all()
    (tmp_path / "a.dat").write_text("1")
    (tmp_path / "bad.csv").write_text("one,two")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    np.save(tmp_path / "words.npy", np.array(["a"]))
    np.save(tmp_path / "none.npy", np.zeros(0))
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    for name in ("none", "a.dat", "bad.csv", "bad.npy", "words.npy", "none.npy", "object.npy"):
        with pytest.raises(ProblemError, match=name):
            load_arms(tmp_path / name)
    with pytest.raises(ProblemError, match="one vector"):
        load_theta(tmp_path / "a.npy")

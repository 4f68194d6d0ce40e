"""SpectralUCB in float64 and its graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandits.coins import Coins
from bandits.linear_problem import LinearProblem, ProblemError
from bandits.oful import OFUL, play
from bandits.spectral import (
    SpectralConfidence,
    eigenbasis,
    laplacian,
    neighbour_graph,
    spectral_problem,
)


def path_graph(nodes: int) -> np.ndarray:
    weights = np.zeros((nodes, nodes))
    left = np.arange(nodes - 1)
    weights[left, left + 1] = weights[left + 1, left] = 1.0
    return weights


def test_neighbours_are_the_nearest_and_mutual() -> None:
    points = np.array([[0.0], [1.0], [3.0], [3.5], [10.0]])
    weights = neighbour_graph(points, 1)
    assert np.argwhere(np.triu(weights)).tolist() == [[0, 1], [2, 3], [3, 4]]
    assert (weights == weights.T).all() and not np.diag(weights).any()
    everyone = neighbour_graph(points, 10)
    assert (everyone == 1.0 - np.eye(5)).all()
    assert neighbour_graph(points[:1]).tolist() == [[0.0]]


def test_a_basis_of_the_laplacian() -> None:
    matrix = laplacian(neighbour_graph(np.random.default_rng(0).normal(size=(12, 3)), 3))
    values, vectors = eigenbasis(matrix)
    assert np.allclose(vectors @ np.diag(values) @ vectors.T, matrix)
    assert np.allclose(vectors.T @ vectors, np.eye(12))
    assert values[0] == 0.0 and (np.diff(values) >= 0).all()
    assert np.allclose(matrix.sum(axis=1), 0.0)


def test_rewards_are_those_of_the_nodes() -> None:
    rewards = np.random.default_rng(1).normal(size=9)
    problem = spectral_problem(path_graph(9), rewards)
    assert np.allclose(problem.arms @ problem.theta, rewards)
    given = problem.exploration
    assert isinstance(given, SpectralConfidence)
    rough = math.sqrt(((np.diff(rewards)) ** 2).sum())  # theta' Lambda theta = sum over edges
    assert rough <= given.smoothness < 2.0 * rough
    assert given.theta_norm >= np.linalg.norm(rewards)


def test_effective_dimension_as_published() -> None:
    values = (0.0, 0.5, 2.0, 5.0)
    given = SpectralConfidence(values, gamma=0.5)
    for t in (1, 3, 10, 100):
        limit = t / math.log(1 + t / 0.5)
        assert given.effective_dimension(t) == max(i for i in range(1, 5) if (i - 1) * values[i - 1] <= limit)
    assert given.effective_dimension(1) == 2 and given.effective_dimension(100) == 4


def test_it_is_the_published_algorithm() -> None:
    gamma, delta, noise = 0.7, 0.05, 0.5
    problem = spectral_problem(path_graph(8), np.linspace(1.0, 4.0, 8), gamma=gamma, delta=delta, noise=noise)
    given = problem.exploration
    assert isinstance(given, SpectralConfidence)
    coins = Coins.draw(4, budget=40, arms=8, size=noise)
    pulls = list(play(OFUL(problem.arms, given), problem, coins))
    q, eigenvalues = problem.arms, np.array(given.eigenvalues)
    pulled, rewards = [coins.first], [float(q[coins.first] @ problem.theta + coins.noise[0])]
    for t in range(1, 40):
        a = np.diag(eigenvalues) + gamma * np.eye(8) + sum(np.outer(q[k], q[k]) for k in pulled)
        inverse = np.linalg.inv(a)
        estimate = inverse @ sum(r * q[k] for r, k in zip(rewards, pulled))
        dimension = max(i + 1 for i in range(8) if i * eigenvalues[i] <= t / math.log(1 + t / gamma))
        omega = 2 * noise * math.sqrt(dimension * math.log(1 + t / gamma) + 2 * math.log(1 / delta)) + given.smoothness
        indices = [x @ estimate + omega * math.sqrt(x @ inverse @ x) for x in q]
        pulled.append(int(np.argmax(indices)))
        rewards.append(float(q[pulled[-1]] @ problem.theta + coins.noise[t]))
    assert [pull.arm for pull in pulls] == pulled


@pytest.mark.parametrize("printed", [False, True])
def test_omega_is_as_one_or_the_other_paper_has_it(printed: bool) -> None:
    """With the paper's constants 2 log(1 / delta) is 13.8 outside of the root, and next to nothing inside."""
    given = SpectralConfidence((0.0, 0.5, 2.0), 0.01, 0.001, 0.01, printed=printed, growing=True)
    for t in (1, 30):
        root = given.effective_dimension(t) * math.log(1 + t / 0.01)
        sure = 2 * math.log(1 / 0.001)
        wanted = 0.02 * math.sqrt(root) + sure if printed else 0.02 * math.sqrt(root + sure)
        assert given.omega(t, 3) == pytest.approx(wanted + math.log(t))
    assert (given.omega(1, 3) > 13) is printed


def test_eigenvalues_may_be_whole_numbers() -> None:
    given = SpectralConfidence((0, 1, 3), gamma=1)
    assert given.regulariser(3).dtype == np.float64
    assert OFUL(np.eye(3), given).gram.dtype == np.float64


def test_a_single_node() -> None:
    problem = spectral_problem(np.zeros((1, 1)), np.array([2.0]))
    pulls = list(play(OFUL(problem.arms, problem.exploration), problem, Coins.draw(0, budget=3, arms=1)))
    assert [pull.arm for pull in pulls] == [0, 0, 0]


def test_rewards_that_are_all_0_are_smooth() -> None:
    assert spectral_problem(path_graph(3), np.zeros(3)).exploration == SpectralConfidence(
        tuple(eigenbasis(laplacian(path_graph(3)))[0].tolist()), smoothness=0.0, theta_norm=1.0, noise=1.0, delta=0.01,
        gamma=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "weights", [np.ones((2, 3)), np.array([[0.0, 1.0], [2.0, 0.0]]), -path_graph(3), np.full((2, 2), np.nan)]
)
def test_graphs_that_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(ProblemError):
        laplacian(weights)


@pytest.mark.parametrize(
    "given",
    [
        {"eigenvalues": ()},
        {"eigenvalues": (1.0, 0.0)},
        {"eigenvalues": (-1.0, 0.0)},
        {"eigenvalues": (0.0,), "smoothness": -1.0},
        {"eigenvalues": (0.0,), "theta_norm": 0.0},
        {"eigenvalues": (0.0,), "delta": 1.5},
    ],
)
def test_constants_that_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ProblemError):
        SpectralConfidence(**given)  # type: ignore[arg-type]


def test_a_bound_allows_for_what_fixed_point_rounds() -> None:
    constants = SpectralConfidence((0.0, 1.0), smoothness=2.0, theta_norm=2.0)
    rounded = np.array([0.0, 2.0 + 2.0**-10])
    assert LinearProblem(np.eye(2), rounded, constants).theta[1] == rounded[1]


def test_bounds_that_do_not_hold_are_refused() -> None:
    with pytest.raises(ProblemError, match="rougher than C"):
        LinearProblem(np.eye(2), np.array([0.0, 3.0]), SpectralConfidence((0.0, 1.0), smoothness=2.0, theta_norm=4.0))
    with pytest.raises(ProblemError, match="longer than S"):
        LinearProblem(np.eye(2), np.array([3.0, 0.0]), SpectralConfidence((0.0, 1.0), theta_norm=2.0))
    with pytest.raises(ProblemError, match="one for each"):
        LinearProblem(np.eye(2), np.zeros(2), SpectralConfidence((0.0,)))
    with pytest.raises(ProblemError, match="finite points"):
        neighbour_graph(np.array([[np.nan]]))
    with pytest.raises(ProblemError, match="at least 1 neighbour"):
        neighbour_graph(np.eye(2), 0)
    with pytest.raises(ProblemError, match="one for each node"):
        spectral_problem(path_graph(3), np.zeros(2))

"""OFUL, RSOFUL and HELBA in the clear, beside values of an independent run and the bounds of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from bandits.helba import (
    HELBA,
    OFUL,
    RSOFUL,
    Approximate,
    Batches,
    Constants,
    HelbaError,
    Policy,
    Problem,
    RSOFULTrace,
    fresh,
    play,
    rows_of,
    toy,
)
from bandits.helba.approximate import comparison, inverse, maximum, root
from bandits.helba.constants import WIDTH_BITS

STEPS, SEEDS = 130, range(25)
PAPER = Constants()
Make = Callable[[], Policy]


def averages(make: Make) -> tuple[float, float]:
    """Regret and updates over the seeds."""
    rows = []
    for seed in SEEDS:
        policy = make()
        rows.append((play(policy, toy(PAPER, STEPS, seed)).regret, policy.updates))
    return tuple(np.mean(rows, axis=0).tolist())  # type: ignore[return-value]


@pytest.mark.parametrize(
    "make, regret, updates",
    [
        (lambda: OFUL(PAPER), 6.8, 130.0),
        (lambda: RSOFUL(PAPER), 7.1, 11.7),
        (lambda: RSOFULTrace(PAPER), 7.4, 10.9),
        (lambda: HELBA(PAPER), 7.0, 32.0),
        (lambda: HELBA(Constants(growth=0.2)), 7.0, 20.0),
    ],
    ids=["OFUL", "RSOFUL", "RSOFUL-TR", "HELBA", "HELBA, eta 0.2"],
)
def test_regret_and_updates_are_those_of_an_independent_run(make: Make, regret: float, updates: float) -> None:
    got_regret, got_updates = averages(make)
    assert abs(got_regret - regret) <= 1.0
    assert abs(got_updates - updates) <= 0.5


def test_batches_of_the_toy_end_where_growth_alone_ends_them() -> None:
    wanted = [*range(2, 12), 13, 15, 17, 19, 21, 24, 27, 30, 33, 37, 41, 46, 51, 57, 63, 70, 77, 85, 94, 104, 115, 127]
    ends = play(HELBA(PAPER), toy(PAPER, STEPS, 3)).ends
    assert (np.nonzero(ends)[0] + 2).tolist() == wanted and len(wanted) == 32


@pytest.mark.parametrize("seed", range(4))
def test_without_growth_the_trace_alone_ends_batches(seed: int) -> None:
    given = Constants(growth=None)
    problem = fresh(given, STEPS, seed)
    policy = HELBA(given)
    gram, frozen, tau, ends = np.eye(2), np.eye(2), 0.0, []
    arms = play(policy, problem).arms
    for step, arm in enumerate(arms):
        x = problem.features[step, arm]
        gram += np.outer(x, x)
        tau += x @ np.linalg.solve(frozen, x)
        if tau >= given.trace:
            ends.append(step)
            frozen, tau = gram.copy(), 0.0
    assert np.nonzero(play(HELBA(given), problem).ends)[0].tolist() == ends and 5 < len(ends) < 32


def test_each_frozen_inverse_and_estimate_is_the_ridge_regression() -> None:
    problem, policy = fresh(PAPER, 60, 1), HELBA(PAPER)
    seen: list[tuple[np.ndarray, float]] = []
    for step in range(len(problem)):
        x = problem.features[step]
        arm = int(policy.indices(x).argmax())
        seen.append((x[arm], float(problem.rewards[step, arm])))
        if policy.learn(*seen[-1]):
            rows, paid = np.array([row for row, _ in seen]), np.array([reward for _, reward in seen])
            assert np.allclose(policy.inverse, np.linalg.inv(np.eye(2) + rows.T @ rows))
            assert np.allclose(policy.estimate, np.linalg.solve(np.eye(2) + rows.T @ rows, rows.T @ paid))


def test_an_index_is_optimistic_with_its_slack() -> None:
    policy = HELBA(PAPER)
    policy.t = policy.start = 4
    z = np.array([0.0, 2.0])
    eps = 1.0 / (5.5 * 8.0 * math.sqrt(1.0 + 30.25 * 4))
    assert np.allclose(policy.bonus(z), PAPER.beta(4) * (np.sqrt(z + 30.25 * eps) + 0.25))


def test_the_iterations_index_is_as_optimistic() -> None:
    exact, approximate = HELBA(PAPER), Approximate(PAPER)
    exact.t = exact.start = approximate.t = approximate.start = 4
    z = np.array([0.01, 2.0])
    bonus, wanted = approximate.bonus(z), approximate.beta() * (np.sqrt(z + approximate.slack) + 0.25)
    assert np.allclose(bonus, wanted, rtol=0.0, atol=approximate.beta() / 8.0)  # 1 / t is twice that


def test_the_width_is_rounded_up_and_the_union_bound_can_be_left_out() -> None:
    for t in (1, 130, 10_000):
        logs = math.log(1 + 30.25 * t / 2) + math.log(math.pi**2 * t * t / 6 / 0.1)
        exact = t**-0.5 + 1.0 + 0.5 * math.sqrt(2 * logs)
        assert exact <= PAPER.beta(t) < exact + 2.0**-WIDTH_BITS
        assert PAPER.beta(t) * 2**WIDTH_BITS % 1 == 0
    assert abs(PAPER.beta(130) - 4.26) < 0.01 and abs(Constants(union=False).beta(130) - 3.31) < 0.01


@pytest.mark.parametrize("growth", [0.1, 0.2, 0.3, 1.0, 7.0, None])
def test_a_hidden_batch_cannot_have_begun_before_the_earliest_step(growth: float | None) -> None:
    given, start = Constants(growth=growth), 1
    for t in range(1, 2000):
        assert given.earliest(t) <= start <= t
        start = t + 1 if given.grown(t, start) else start


def test_hidden_ends_change_the_slack_alone_and_no_batches_learn_at_every_step() -> None:
    problem = toy(PAPER, STEPS, 5)
    hidden, none = HELBA(PAPER, Batches.HIDDEN), HELBA(PAPER, Batches.NONE)
    public = HELBA(PAPER)
    assert (play(hidden, problem).ends == play(public, problem).ends).all()
    hidden.t = public.t = 126
    hidden.start = public.start = 120
    assert hidden.slack == PAPER.slack(115) > public.slack == PAPER.slack(120)
    assert play(none, problem).ends.all()


@pytest.mark.parametrize("make", [toy, fresh])
def test_polynomials_as_mended_choose_and_end_as_the_exact_policy(make: Callable[..., Problem]) -> None:
    for seed in range(3):
        problem = make(PAPER, STEPS, seed)
        exact, mended = HELBA(PAPER), Approximate(PAPER)
        assert (play(exact, problem).arms == play(mended, problem).arms).all()
        assert exact.updates == mended.updates


def test_as_printed_the_step_that_ends_a_batch_is_missing_from_the_next() -> None:
    printed = Approximate(PAPER, printed=True)
    first, second = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert not printed.learn(first, 0.5) and printed.learn(second, 0.5)
    assert printed.start == 2 and np.allclose(printed.inverse, np.diag([0.5, 1.0]), atol=PAPER.eps(2))
    assert printed.tau == 0.0


def test_as_printed_regret_is_that_of_an_independent_run() -> None:
    regret, updates = averages(lambda: Approximate(PAPER, printed=True))
    assert abs(regret - 7.5) <= 1.0 and updates == 32.0


def test_the_polynomials_keep_their_bounds() -> None:
    rng = np.random.default_rng(0)
    for t in (1, 13, 130):
        x = fresh(PAPER, t, t).features[:, 0]
        gram = np.eye(2) + x.T @ x
        c = 2.0 + 30.25 * t
        count = math.ceil(math.log2(math.log(PAPER.eps(t)) / math.log1p(-1.0 / c)))
        missing = np.linalg.eigvalsh(np.linalg.inv(gram) - inverse(gram, c, count))
        assert missing.min() > -1e-12 and missing.max() <= PAPER.eps(t) * (1 + 1e-9)
    z = rng.uniform(0.01, 4.0, 100)
    assert np.abs(root(z, 0.01, 4.0, 14) - np.sqrt(z)).max() < 1e-3
    a, b = rng.uniform(0.0, 1.0, (2, 100))
    apart = np.abs(a - b) > 0.01
    assert np.abs(comparison(a, b, 20) - (a > b))[apart].max() < 0.01
    assert max(abs(maximum(p, q, 11) - max(p, q)) for p, q in zip(a, b)) < 2e-3


def test_problems_keep_their_bounds() -> None:
    for make in (toy, fresh):
        problem = make(PAPER, 200, 9, arms=5)
        assert np.linalg.norm(problem.features, axis=-1).max() <= 5.5
        assert np.abs(problem.means).max() <= 1.0 and np.abs(problem.rewards).max() <= 3.0
        assert problem.features.shape == (200, 5, 2) and len(problem) == 200
        theta, *_ = np.linalg.lstsq(problem.features.reshape(-1, 2), problem.means.reshape(-1), rcond=None)
        assert np.isclose(np.linalg.norm(theta), 1 / 5.5), "so that no mean passes 1 whatever the features"
        for values in (problem.features, problem.rewards):
            assert (values * 2.0**20 % 1 == 0).all()
    assert len(np.unique(toy(PAPER, 200, 9).features[:, 0, 0])) == 4


def test_rows_of_a_table_are_scaled_to_the_bounds() -> None:
    rng = np.random.default_rng(0)
    rows, theta = 40.0 * rng.normal(size=(30, 2)), rng.normal(size=2)
    problem = rows_of(rows, theta, PAPER, 50, 1, arms=4)
    assert np.isclose(np.linalg.norm(problem.features, axis=-1).max(), 5.5, rtol=0.2)
    assert np.linalg.norm(problem.features, axis=-1).max() <= 5.5 and np.abs(problem.means).max() < 1.0 + 1e-12
    assert all(len(np.unique(features, axis=0)) == 4 for features in problem.features)
    ratios = problem.means / (problem.features @ theta)
    assert np.allclose(ratios, ratios[0, 0]) and ratios[0, 0] * np.linalg.norm(theta) <= PAPER.theta_norm
    for wrong in (rows[:3], rows[:, :1], np.full((30, 2), np.nan), np.zeros((30, 2))):
        with pytest.raises(HelbaError):
            rows_of(wrong, theta, PAPER, 5, 1, arms=4)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"norm": math.nan}, "norm must be positive"),
        ({"norm": 1e300}, "norm must be positive, between 1e-60 and 1e"),
        ({"ridge": 1e-300}, "ridge must be positive, between"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"trace": -1.0}, "trace must be positive"),
        ({"growth": 0.0}, "growth lies between"),
        ({"delta": 1.0}, "delta is a probability"),
        ({"dim": 0}, "at least 1 dimension"),
        ({"noise": -1.0}, "must be at least 0"),
    ],
)
def test_constants_that_make_no_sense_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(HelbaError, match=words):
        Constants(**given)  # type: ignore[arg-type]

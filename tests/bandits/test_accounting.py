"""Composition over steps: against dp_accounting's own events, exact sums, and bandits small enough to enumerate."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import special, stats

pytest.importorskip("dp_accounting", reason="the extra 'privacy' is not installed")

import dp_accounting
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

from bandits import arm_probabilities
from bandits.accounting import MAX_STEPS, clopper_pearson, pld
from bandits.privacy import advanced, basic, eps_for, eta_per_step

CASES = [(2, 0.5), (2, 0.9), (3, 0.2), (10, 0.1), (10, 0.99), (100, 0.01)]


def reference(arms: int, eps: float, steps: int, delta: float, spacing: float) -> float:
    """What dp_accounting says of its own randomized response on a grid of fixed spacing: up to T spacings too much."""
    one = from_randomized_response(eps, arms, value_discretization_interval=spacing)
    return float(one.self_compose(steps).get_epsilon_for_delta(delta))


def exact_delta(arms: int, eps: float, steps: int, epsilon: float) -> float:
    """sum over up, down of their multinomial chance times (1 - e^(epsilon - (up - down) eta)), where it is positive."""
    eta, other = eta_per_step(arms, eps), eps / arms
    total = 0.0
    for up, down in itertools.product(range(steps + 1), repeat=2):
        idle = steps - up - down
        if idle >= 0 and (up - down) * eta > epsilon:
            ways = math.comb(steps, up) * math.comb(steps - up, down)
            chance = ways * (1 - eps + other) ** up * other**down * ((arms - 2) * other) ** idle
            total -= chance * math.expm1(epsilon - (up - down) * eta)
    return total


@pytest.mark.parametrize(("arms", "eps"), CASES)
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-9])
def test_it_is_the_smallest_epsilon_for_randomized_response(arms: int, eps: float, steps: int, delta: float) -> None:
    epsilon = pld(arms, eps, steps, delta)
    assert exact_delta(arms, eps, steps, epsilon) <= delta
    if epsilon > 1e-6:
        assert exact_delta(arms, eps, steps, epsilon * (1 - 1e-3)) > delta


@pytest.mark.parametrize(("arms", "eps"), CASES)
@pytest.mark.parametrize("steps", [1, 5, 30])
def test_dp_accounting_agrees_up_to_its_rounding(arms: int, eps: float, steps: int) -> None:
    ours, spacing = pld(arms, eps, steps, 1e-6), 1e-4
    theirs = reference(arms, eps, steps, 1e-6, spacing)
    assert ours - 1e-6 <= theirs <= ours + steps * spacing + 1e-6


@pytest.mark.parametrize(("arms", "eps"), CASES)
def test_the_event_of_dp_accounting_is_one_step(arms: int, eps: float) -> None:
    """For a vanishing delta its epsilon is eta, and for a larger one that of the chances of epsilon-greedy."""
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=eps, num_buckets=arms)
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-6)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-12) == pytest.approx(eta_per_step(arms, eps), abs=2e-6)
    one, other = (arm_probabilities(np.eye(arms)[best], eps) for best in (0, 1))
    delta = 0.001 * one[0]
    assert divergence(one, other, accountant.get_epsilon(delta)) == pytest.approx(delta, rel=1e-2)


@pytest.mark.parametrize(("arms", "eps"), [(10, 0.1), (2, 0.9), (100, 0.01), (5, 0.99)])
def test_sixty_thousand_steps_against_sums_by_logarithms(arms: int, eps: float) -> None:
    steps, delta = 60_000, 1e-6
    tracemalloc.start()
    epsilon = pld(arms, eps, steps, delta)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64e6
    assert log_gamma_delta(arms, eps, steps, epsilon) <= delta
    assert log_gamma_delta(arms, eps, steps, epsilon * (1 - 1e-5)) > delta


def log_gamma_delta(arms: int, eps: float, steps: int, epsilon: float) -> float:
    """`exact_delta` for many steps: only the terms within 12 deviations of the most likely ones."""
    eta, other = eta_per_step(arms, eps), eps / arms
    up_chance, idle_chance = 1 - eps + other, (arms - 2) * other
    spread = 12 * math.sqrt(steps * other * (1 - other)) + 40
    down = np.arange(max(0, int(steps * other - spread)), int(steps * other + spread) + 1)
    mean = steps * (up_chance - other)
    deviation = math.sqrt(steps * (up_chance + other - (up_chance - other) ** 2))
    first = max(math.floor(epsilon / eta) + 1, math.floor(mean - 12 * deviation))
    net = np.arange(first, min(steps, math.ceil(mean + 12 * deviation)) + 1)[:, None]
    up, idle = net + down, steps - net - 2 * down
    possible = (up >= 0) & ((idle == 0) if idle_chance == 0 else (idle >= 0))
    up, idle = np.where(possible, up, 0), np.where(possible, idle, 0)
    ways = (
        special.gammaln(steps + 1.0) - special.gammaln(up + 1) - special.gammaln(down + 1) - special.gammaln(idle + 1)
    )
    chance = ways + special.xlogy(up, up_chance) + special.xlogy(down, other) + special.xlogy(idle, idle_chance)
    chance = np.exp(np.where(possible, chance, -np.inf)).sum(axis=1)
    return float((chance * -np.expm1(epsilon - net[:, 0] * eta)).sum())


Greedy = Callable[[tuple[int, ...]], np.ndarray]
"""The arms so far to the scores of the next: what a bandit has made of its secret."""


def chances(arms: int, eps: float, steps: int, greedy: Greedy) -> np.ndarray:
    """The chance of every sequence of arms."""
    return np.array(
        [
            math.prod(arm_probabilities(greedy(seen[:step]), eps)[seen[step]] for step in range(steps))
            for seen in itertools.product(range(arms), repeat=steps)
        ]
    )


def learner(arms: int, seed: int) -> Greedy:
    """Any function of the arms so far, with ties."""
    return lambda seen: np.random.default_rng([seed, len(seen), *seen]).integers(0, 2, arms)


def divergence(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(one - np.exp(epsilon) * other, 0.0).sum())


@pytest.mark.parametrize(("arms", "eps", "steps"), [(2, 0.3, 5), (3, 0.2, 4)])
@pytest.mark.parametrize("delta", [0.1, 1e-3])
def test_a_learning_bandit_tells_no_more_than_composition(arms: int, eps: float, steps: int, delta: float) -> None:
    """Two secrets make any two bandits: what one learned turns the other's later choices, and ties are drawn."""
    epsilon = pld(arms, eps, steps, delta)
    for seed in range(10):
        one, other = (chances(arms, eps, steps, learner(arms, 2 * seed + secret)) for secret in range(2))
        assert divergence(one, other, epsilon) <= delta + 1e-12


def test_one_context_can_tell_as_much_as_all_and_no_step_is_parallel() -> None:
    """A learner that remembers a bit of the first context for ever reaches the bound; one step's eta is passed."""
    arms, eps, steps, delta = 3, 0.2, 4, 1e-3
    one, other = (chances(arms, eps, steps, lambda _, bit=bit: np.eye(arms)[bit]) for bit in (0, 1))
    epsilon = pld(arms, eps, steps, delta)
    assert divergence(one, other, epsilon) == pytest.approx(delta, rel=1e-6)
    assert divergence(one, other, eta_per_step(arms, eps)) > 0.5


def test_arms_before_a_context_and_arms_unseen_do_not_count() -> None:
    """Of 5 steps, a context of step 3 meets 3; and whoever sees 3 arms of 5 is bounded by 3 steps."""
    arms, eps, delta = 2, 0.3, 1e-3
    epsilon = pld(arms, eps, 3, delta)
    for seed in range(10):
        before, after = learner(arms, 50 + seed), [learner(arms, 70 + 2 * seed + secret) for secret in range(2)]
        late = [
            chances(arms, eps, 5, lambda seen, then=then, before=before: (before if len(seen) < 2 else then)(seen))
            for then in after
        ]
        assert divergence(*late, epsilon) <= delta + 1e-12
        partly = [chances(arms, eps, 5, then).reshape([arms] * 5).sum(axis=(1, 3)).ravel() for then in after]
        assert divergence(*partly, epsilon) <= delta + 1e-12


@given(
    st.integers(2, 50), st.floats(0.01, 0.999), st.integers(1, 3000), st.floats(1e-9, 0.1),
    st.integers(2, 50), st.floats(0.01, 0.999),
)  # fmt: skip
def test_no_worse_than_the_others_and_monotone(
    arms: int, eps: float, steps: int, delta: float, more: int, larger: float
) -> None:
    epsilon, eta, slack = pld(arms, eps, steps, delta), eta_per_step(arms, eps), 1 + 1e-6
    assert 0 <= epsilon <= min(basic(eta, steps), advanced(eta, steps, delta)) * slack
    assert epsilon <= pld(arms, eps, steps + more, delta) * slack + 1e-6
    assert epsilon <= pld(arms, eps, steps, delta / more if delta / more > 1e-10 else delta) * slack + 1e-6
    assert epsilon >= pld(arms, max(eps, larger), steps, delta) / slack - 1e-6
    assert epsilon <= pld(arms + more, eps, steps, delta) * slack + 1e-6


def test_ends() -> None:
    assert pld(10, 0.0, 100, 1e-6) == math.inf
    assert pld(1, 0.0, 100, 1e-6) == 0.0
    assert pld(10, 1.0, 100, 1e-6) == 0.0
    assert pld(2, 0.999999, 1, 0.5) == 0.0
    assert pld(10, eps_for(10, 4.5), 1, 1e-12) == pytest.approx(4.5, abs=1e-9)


@pytest.mark.parametrize(
    ("steps", "delta", "words"),
    [
        (0, 1e-6, "1 to"),
        (MAX_STEPS + 1, 1e-6, "1 to"),
        (5, 0.0, "such as"),
        (5, 1.0, "such as"),
        (5, math.nan, "such as"),
        (60_000, 1e-10, "larger delta"),
    ],
)
def test_mistakes_say_the_cure(steps: int, delta: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pld(10, 0.1, steps, delta)


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_clopper_pearson_bounds_have_their_tails(alpha: float) -> None:
    successes = np.array([0, 1, 7, 50, 99, 100])
    lower, upper = clopper_pearson(successes, np.full(6, 100), alpha)
    assert lower[0] == 0 and upper[-1] == 1
    assert stats.binom.sf(successes[1:] - 1, 100, lower[1:]) == pytest.approx(alpha)
    assert stats.binom.cdf(successes[:-1], 100, upper[:-1]) == pytest.approx(alpha)

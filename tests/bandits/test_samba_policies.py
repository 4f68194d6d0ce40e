"""The six policies, played beside formulas of one line each."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bandits.samba import NAMES, BernoulliArms, Played, Policy, SambaError, SeededCoins, Seeds, by_name, play, run
from bandits.samba.epsilon_decreasing import EpsilonDecreasing
from bandits.samba.pursuit import Pursuit
from bandits.samba.softmax import Softmax
from tests.oracles import stats

SURE = 1e-6  # a test that fails by chance does so once in a million seeds
FORMS = [*((name, {}) for name in NAMES), ("softmax", {"race": True})]
MEANS = np.array([0.3, 0.7, 0.5, 0.65, 0.1])


def game(name: str, means: np.ndarray, budget: int, seed: int, **more: Any) -> Played:
    seeds = Seeds.of(seed)
    policy = by_name(name, len(means), **more)
    return run(policy, BernoulliArms(means), budget, SeededCoins(seeds, len(means)), seeds.rewards)


# ---- each policy against its formula, pull by pull


def looked_at(scores: list[Any], order: list[int]) -> int:
    top = max(scores)
    return next(arm for arm in order if scores[arm] == top)


def pointed_at(weights: list[int], order: list[int], u: int) -> int:
    point, running = Fraction(u, 1 << 64) * sum(weights), 0
    for arm in order:
        running += weights[arm]
        if running > point:
            return arm
    raise AssertionError


def rounded(value: float) -> int:
    return round(Fraction(value) * (1 << 40))


class Formulas:
    """The same policies for a list of integers, in the plainest Python."""

    def __init__(self, arms: int, coins: SeededCoins) -> None:
        self.s, self.n, self.coins = [0] * arms, [0] * arms, coins
        self.p = [1.0 / arms] * arms

    def epsilon_greedy(self, t: int, eps: float = 0.1) -> int:
        order = self.coins.order(t, 1).tolist()
        if self.coins.explore(t, eps):
            return int(order[0])
        return looked_at([rounded(s / n) for s, n in zip(self.s, self.n)], order)

    def epsilon_decreasing(self, t: int) -> int:
        return self.epsilon_greedy(t, 1.0 if t < 3 else 1 / math.log(t))

    def ucb(self, t: int) -> int:
        scores = [rounded(s / n + math.sqrt(2.0 * math.log(t) / n)) for s, n in zip(self.s, self.n)]
        return looked_at(scores, self.coins.order(t, 1).tolist())

    def thompson(self, t: int) -> int:
        draws = [self.coins.noise(i).beta(s + 1, n - s + 1) for i, (s, n) in enumerate(zip(self.s, self.n))]
        return looked_at([rounded(draw) for draw in draws], self.coins.order(t, 1).tolist())

    def softmax(self, t: int, tau: float = 0.06) -> int:
        bits = math.ceil(math.log2(math.e) / tau) + 40
        weights = [math.floor(Fraction(math.exp((s / n - 1) / tau)) * 2**bits) for s, n in zip(self.s, self.n)]
        return pointed_at(weights, self.coins.order(t, 1).tolist(), self.coins.point(t)[0])

    def softmax_race(self, t: int, tau: float = 0.06) -> int:
        scores = [rounded(s / n / tau + self.coins.noise(i).gumbel()) for i, (s, n) in enumerate(zip(self.s, self.n))]
        return looked_at(scores, self.coins.order(t, 1).tolist())

    def pursuit(self, t: int, beta: float = 0.1) -> int:
        top = looked_at([rounded(s / n) for s, n in zip(self.s, self.n)], self.coins.order(t, 1).tolist())
        self.p = [p + beta * ((arm == top) - p) for arm, p in enumerate(self.p)]
        weights = [rounded(p) for p in self.p]
        return pointed_at(weights, self.coins.order(t, 2).tolist(), self.coins.point(t)[0])


@pytest.mark.parametrize(("name", "more"), FORMS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_every_pull_follows_the_formula(name: str, more: dict[str, bool], seed: int) -> None:
    """Softmax's integers are of other bits, so an arm could differ once in 2^30 draws."""
    seeds, arms, budget = Seeds.of(seed), len(MEANS), 400
    found = game(name, MEANS, budget, seed, **more)
    plain = Formulas(arms, SeededCoins(seeds, arms))
    choose: Callable[[int], int] = getattr(plain, name.replace("-", "_") + ("_race" if more else ""))
    paying = BernoulliArms(MEANS)
    for t in range(1, budget + 1):
        arm = t - 1 if t <= arms else choose(t)
        assert found.arms[t - 1] == arm, t
        plain.n[arm] += 1
        plain.s[arm] += paying.reward(seeds.rewards, arm, t)
    assert found.pulls.tolist() == plain.n and found.sums.tolist() == plain.s
    assert found.total == sum(plain.s)


# ---- all policies


@pytest.mark.parametrize(("name", "more"), FORMS, ids=str)
def test_one_arm_and_a_budget_of_k(name: str, more: dict[str, bool]) -> None:
    assert game(name, np.array([0.5]), 30, 1, **more).pulls.tolist() == [30]
    for arms in (1, 2, 10, 100):
        found = game(name, np.full(arms, 0.5), arms, 1, **more)
        assert found.arms.tolist() == list(range(arms)) and found.pulls.tolist() == [1] * arms


@pytest.mark.parametrize(("name", "more"), FORMS, ids=str)
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_arms_that_pay_always_or_never(name: str, more: dict[str, bool], mean: float) -> None:
    found = game(name, np.full(4, mean), 200, 2, **more)
    assert found.total == int(mean * 200) and found.pulls.sum() == 200
    if name not in ("thompson", "pursuit"):  # whose own draws make some arms run ahead
        assert found.pulls.min() > 20  # nothing tells arms apart: ties are broken evenly


@pytest.mark.parametrize(("name", "more"), FORMS, ids=str)
def test_a_game_is_its_seed(name: str, more: dict[str, bool]) -> None:
    first, again, other = (game(name, MEANS, 300, seed, **more) for seed in (7, 7, 8))
    assert (first.arms == again.arms).all() and first.total == again.total
    assert (first.arms != other.arms).any()


@pytest.mark.parametrize(("name", "more"), FORMS, ids=str)
def test_the_best_arm_is_found(name: str, more: dict[str, bool]) -> None:
    """In 20 games of 600 pulls more is earned than by pulling arms in turn; UCB, the slowest, by a fifth."""
    means = np.array([0.1, 0.9, 0.2])
    totals = [game(name, means, 600, seed, **more).total for seed in range(20)]
    assert np.mean(totals) > 1.2 * 600 * means.mean()


def test_a_step_is_told_as_it_happens() -> None:
    seeds = Seeds.of(1)
    steps = list(play(by_name("ucb", 5), BernoulliArms(MEANS), 9, SeededCoins(seeds, 5), seeds.rewards))
    assert [step.t for step in steps] == list(range(1, 10))
    assert [step.arm for step in steps[:5]] == [0, 1, 2, 3, 4]
    assert {step.reward for step in steps} <= {0, 1}


def test_a_tie_is_won_by_the_first_in_the_order() -> None:
    coins = SeededCoins(Seeds.of(1), 6)
    for name in ("epsilon-greedy", "ucb"):
        policy = by_name(name, 6, eps=0.0)
        policy.pulls += 3
        policy.sums += [2, 1, 2, 0, 2, 1]
        for t in range(19, 60):
            assert policy.pull(t, coins) == next(arm for arm in coins.order(t, 1) if arm in (0, 2, 4))


# ---- distributions


def shares(policy: Policy, count: int, seed: int, first: int = 10) -> np.ndarray:
    coins = SeededCoins(Seeds.of(seed), policy.arms)
    return np.bincount([policy.pull(t, coins) for t in range(first, first + count)], minlength=policy.arms)


@pytest.mark.parametrize(("tau", "sums"), [(0.001, [500, 501, 502, 499]), (0.02, [500, 520, 540, 440])])
@pytest.mark.parametrize("race", [False, True])
def test_both_forms_of_softmax_draw_from_the_same_distribution(tau: float, sums: list[int], race: bool) -> None:
    policy = Softmax(4, tau, race=race)
    policy.pulls += 999
    policy.sums += sums
    for arm in range(4):
        policy.update(arm, 0)
    weights = np.exp((policy.means - policy.means.max()) / tau)
    counts = shares(policy, 6000, 3)
    assert stats.chisquare(counts, 6000 * weights / weights.sum()).pvalue > SURE
    assert (counts > 5).all()


def test_thompson_follows_the_posterior() -> None:
    policy = by_name("thompson", 2)
    policy.pulls += [3, 10]
    policy.sums += [2, 5]
    rng = np.random.default_rng(0)
    chance = (rng.beta(3, 2, 400_000) > rng.beta(6, 6, 400_000)).mean()
    assert stats.binomtest(int(shares(policy, 6000, 4)[0]), 6000, float(chance)).pvalue > SURE


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_epsilon_greedy_explores_all_arms_alike(eps: float) -> None:
    policy = by_name("epsilon-greedy", 4, eps=eps)
    policy.pulls += 10
    policy.sums += [1, 9, 2, 3]
    chances = np.array([eps / 4, 1 - 3 * eps / 4, eps / 4, eps / 4])
    assert stats.chisquare(shares(policy, 6000, 5), 6000 * chances).pvalue > SURE


def test_without_eps_nothing_is_explored() -> None:
    policy = by_name("epsilon-greedy", 3, eps=0.0)
    policy.pulls += 10
    policy.sums += [1, 9, 2]
    assert shares(policy, 500, 5).tolist() == [0, 500, 0]


def test_epsilon_decreasing() -> None:
    policy = EpsilonDecreasing(3)
    assert [policy.eps(t) for t in (1, 2)] == [1.0, 1.0]
    assert policy.eps(3) == 1 / math.log(3) < 1.0
    assert policy.eps(100_000) == pytest.approx(0.0869, abs=1e-4)
    policy.pulls += 10
    policy.sums += [1, 9, 2]
    chances = [1 / math.log(t) * 2 / 3 for t in range(1000, 5000)]
    counts = shares(policy, 4000, 6, first=1000)
    spread = math.sqrt(sum(chance * (1 - chance) for chance in chances))
    assert abs(counts[[0, 2]].sum() - sum(chances)) < 5 * spread


@pytest.mark.parametrize("beta", [0.1, 0.2])
def test_pursuit_runs_after_the_best_arm(beta: float) -> None:
    policy = Pursuit(4, beta)
    policy.pulls += 10
    policy.sums += [1, 2, 9, 3]
    coins = SeededCoins(Seeds.of(1), 4)
    for step in range(1, 40):
        policy.pull(10 + step, coins)
        others = 0.25 * (1 - beta) ** step
        assert policy.chances == pytest.approx([others, others, 1 - 3 * others, others])
    still = Pursuit(4, 0.0)
    still.pulls += 1
    still.chances = np.array([0.1, 0.2, 0.3, 0.4])
    assert stats.chisquare(shares(still, 6000, 2), 6000 * still.chances).pvalue > SURE


# ---- what is refused


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("epsilon-greedy", {"eps": 1.5}, "eps is a probability"),
        ("epsilon-greedy", {"eps": math.nan}, "eps is a probability"),
        ("pursuit", {"beta": -0.1}, "beta is a probability"),
        ("softmax", {"tau": 0.0}, "tau lies between"),
        ("softmax", {"tau": 1e-4, "race": True}, "play the best arm"),
        ("softmax", {"tau": math.nan}, "tau lies between"),
        ("guess", {}, "choose one of epsilon-greedy"),
    ],
)
def test_parameters_that_are_refused(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(SambaError, match=says):
        by_name(name, 3, **given)


def test_games_that_are_refused() -> None:
    with pytest.raises(SambaError, match="at least 1 arm"):
        by_name("ucb", 0)
    with pytest.raises(SambaError, match="give at least 5"):
        game("ucb", MEANS, 4, 1)
    seeds = Seeds.of(1)
    with pytest.raises(SambaError, match="same number"):
        run(by_name("ucb", 4), BernoulliArms(MEANS), 9, SeededCoins(seeds, 5), seeds.rewards)

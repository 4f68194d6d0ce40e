"""Attacks find what leaks, nothing where nothing leaks, and never more than an arm may tell.

Statistical tests have fixed seeds; each says how surprised to be by a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bandits.attacks import Attack, Plan, Row, attack_at_checkpoints, game, measure
from bandits.attacks.advantage import tpr_at
from bandits.attacks.game import Game, in_turn, split
from bandits.attacks.outsider import Outsider
from bandits.attacks.sequence import ANYWHERE, CHANCES, ONE_ARM, PUBLIC, REPLAY, played
from bandits.attacks.shadow import ARMS, STATE, WEIGHTS, deviations
from bandits.attacks.yeom import Samples, by_run, likelihoods
from bandits.environments import Environment, synthetic_linear, unit_rows
from bandits.linear import LinearBandit
from bandits.privacy import eta_per_step

Attacked = dict[str, list[Row]]


def attacked(environment: Environment, attack: Attack, eps: float, *, steps: int = 40, checkpoints: int = 2,
             runs: int = 100, seed: int = 1, learner: game.Learner | None = None) -> Attacked:  # fmt: skip
    """Rows by what the adversary has."""
    rows = attack_at_checkpoints(
        environment, attack, eps=eps, steps=steps, checkpoints=checkpoints, runs=runs, seed=seed, learner=learner
    )
    return {knows: [row for row in rows if row.knows == knows] for knows in dict.fromkeys(row.knows for row in rows)}


def riddle(rows: int = 60, seed: int = 0) -> Environment:
    """One of two arms pays, always, and nothing in a context says which: only to have met it helps."""
    rng = np.random.default_rng(seed)
    paying = rng.integers(2, size=rows)
    return Environment("riddle", unit_rows(rng.normal(size=(rows, 8))), np.eye(2)[paying])


class Parrot(LinearBandit):
    """Remembers every context, and the better arm for it; a tie on a new one."""

    def __init__(self, replicas: int) -> None:
        super().__init__(replicas, 2, 8)
        self.memory: list[tuple[np.ndarray, np.ndarray]] = []

    def predictions(self, contexts: np.ndarray) -> np.ndarray:
        scores = np.zeros((*contexts.shape[:2], 2))
        for x, better in self.memory:
            same = (contexts == x[:, None]).all(axis=-1)
            scores = np.where(same[..., None], np.eye(2)[better][:, None], scores)
        return scores

    def update(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        self.memory.append((contexts[:, 0], np.where(rewards > 0, arms, 1 - arms)[:, 0]))


# scores and advantages


def test_the_advantage_counts_a_coin_as_a_half() -> None:
    found = measure(np.array([[1.0, np.inf, 0.0, 1e-12]]), np.array([[-1.0, -np.inf, -2.0, 3.0]]))
    assert found.value == 3 / 4 - 1 / 4
    assert (found.members, found.others) == (4, 4)


def test_the_interval_is_newcombes() -> None:
    """His first example, 56 of 70 and 48 of 80: 0.0524 to 0.3339 by method 10."""
    members, others = np.where(np.arange(70) < 56, 1.0, -1.0), np.where(np.arange(80) < 48, 1.0, -1.0)
    found = measure(members[None], others[None])
    assert (round(found.lower, 4), round(found.upper, 4)) == (0.0524, 0.3339)


def test_trials_of_a_cluster_that_agree_count_once() -> None:
    rng = np.random.default_rng(0)
    members, others = rng.normal(0.5, 1, (80, 1)), rng.normal(0, 1, (80, 1))
    once, often = measure(members, others), measure(np.tile(members, (1, 50)), np.tile(others, (1, 50)))
    assert often.upper - often.lower == pytest.approx(once.upper - once.lower, rel=0.05)
    assert measure(np.tile(members, (50, 1)), np.tile(others, (50, 1))).lower > often.lower


def test_clusters_that_all_agree_count_once() -> None:
    found, alone = measure(np.ones((10, 30)), -np.ones((10, 30))), measure(np.ones((10, 1)), -np.ones((10, 1)))
    assert (found.value, found.lower) == (1.0, alone.lower)


def test_a_guess_is_covered_as_often_as_is_said() -> None:
    """500 tables of 20 clusters with a mean each, so that trials resemble each other: 95 % within 4 deviations."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(500):
        votes = rng.normal(size=(2, 20, 10)) + rng.normal(size=(2, 20, 1))
        found = measure(*votes)
        missed += not found.lower <= 0 <= found.upper
    assert 0 < missed <= 500 * 0.05 + 4 * math.sqrt(500 * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("members", "others", "fpr", "tpr"),
    [
        ([1.0, 2.0], [0.0, -1.0], 0.01, 1.0),
        ([0.0, 1.0], [2.0, 3.0], 0.01, 0.0),
        ([5.0] * 10, [5.0] * 10, 0.01, 0.01),
        ([3.0, 1.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0], 0.25, 0.25),
        ([3.0, 1.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0], 0.375, 0.5),
        ([np.inf, 0.0], [0.0, -np.inf], 0.25, 0.75),
        ([1.0], [0.0], 1.0, 1.0),
    ],
)
def test_the_roc_curve_is_read_at_a_false_positive_rate(
    members: list[float], others: list[float], fpr: float, tpr: float
) -> None:
    assert tpr_at(np.array(members), np.array(others), fpr) == pytest.approx(tpr)


# the game


def test_targets_and_doubles_are_met_once_or_never() -> None:
    environment, plan = synthetic_linear(3, 4, rows=50), Plan(0.1, 60, 3, 30, 0)
    drawn = Game.draw(environment, plan, 30, np.random.default_rng(0))
    assert drawn.stream.shape == (30, 60) and (drawn.at < plan.ends[0]).all()
    assert not set(drawn.pair.ravel()) & set(drawn.stream.ravel())
    assert not set(drawn.public) & (set(drawn.stream.ravel()) | set(drawn.pair.ravel()))
    assert (drawn.pair[:, 0] != drawn.pair[:, 1]).all()
    both = np.stack([drawn.rows(step) for step in range(60)], axis=1)
    here = np.arange(60) == drawn.at[:, None]
    assert (both[here] == drawn.pair).all()
    assert (both[~here] == drawn.stream[~here][:, None]).all()


@pytest.mark.parametrize(("rows", "steps", "held_out"), [(60, 20, 40), (60, 59, 10), (24, 500, 4)])
def test_rows_that_the_steps_do_not_need_are_held_out(rows: int, steps: int, held_out: int) -> None:
    rng = np.random.default_rng(0)
    parts = split(synthetic_linear(2, 3, rows=rows), steps, rng)
    assert sorted(np.concatenate(parts)) == list(range(rows)) and len(parts[1]) == held_out
    turns = in_turn(parts[0], 2 * len(parts[0]), 3, rng).reshape(3, 2, -1)
    assert (np.sort(turns, axis=-1) == np.sort(parts[0])).all()


def test_checkpoints_are_equally_spaced() -> None:
    assert Plan(0.1, 60_000, 12, 1, 0).ends == list(range(5000, 60_001, 5000))
    assert Plan(0.1, 10, 3, 1, 0).ends == [3, 6, 10]


@pytest.mark.parametrize("attack", Attack)
def test_portions_play_every_run_and_a_seed_repeats_itself(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, said = synthetic_linear(3, 4, rows=50), []
    whole = attacked(environment, attack, 0.3, steps=8, runs=7)
    assert whole == attacked(environment, attack, 0.3, steps=8, runs=7)
    assert whole != attacked(environment, attack, 0.3, steps=8, runs=7, seed=2)
    monkeypatch.setattr(game, "_STATE_BYTES", 1)
    rows = attack_at_checkpoints(
        environment, attack, eps=0.3, steps=8, checkpoints=2, runs=7, seed=1, watch=said.append
    )
    for row, before in zip(rows, (row for part in whole.values() for row in part), strict=True):
        assert (row.advantage.members, row.advantage.others) == (before.advantage.members, before.advantage.others)
    assert said[-1] == 8 and said == sorted(said) and len(said) == 56


@pytest.mark.parametrize(
    ("plan", "cure"),
    [
        ((1.5, 10, 1, 1, 0), r"in \[0, 1\]"),
        ((math.nan, 10, 1, 1, 0), r"in \[0, 1\]"),
        ((0.1, 10, 11, 1, 0), "a step for each"),
        ((0.1, 10, 0, 1, 0), "at least 1"),
        ((0.1, 10, 1, 0, 0), "at least 1 run"),
    ],
)
def test_a_plan_that_cannot_be_says_why(plan: tuple[float, int, int, int, int], cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        Plan(*plan)


def test_a_tiny_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 24 contexts"):
        attacked(synthetic_linear(2, 3, rows=23), Attack.YEOM, 0.1)


# Yeom


def test_the_conditionals_come_from_one_half_and_are_used_on_the_other() -> None:
    """Arm 0 pays 3 of 4 members and 1 of 4 others in the counted half; arm 1 only members pulled, arm 2 nobody."""
    member_arms, member_rewards = [0, 0, 0, 0, 1], [1, 1, 1, 0, 1]
    other_arms, other_rewards = [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]
    used_arms, used_rewards = [0, 0, 1, 1, 2], [1, 0, 1, 0, 1]

    def samples(arms: list[int], rewards: list[int]) -> Samples:
        return Samples(*(np.stack([counted, used], axis=1).reshape(1, -1)
                         for counted, used in ((arms, used_arms), (rewards, used_rewards))))  # fmt: skip

    members, others = likelihoods(samples(member_arms, member_rewards), samples(other_arms, other_rewards), 3)
    expected = [math.log(3 / 4) - math.log(1 / 5), math.log(1 / 4) - math.log(4 / 5), 0, 0, 0]
    assert members[0] == pytest.approx(expected) and others[0] == pytest.approx(expected)


def test_both_ways_of_counting_give_the_advantage_of_each_run() -> None:
    """Counted apart it is the mean that `yeom` gives; counted on the same samples, chance alone adds to it."""
    plan = Plan(1.0, 40, 1, 30, seed=3, at=(20, 40))

    def linear(replicas: int) -> LinearBandit:
        return LinearBandit(replicas, 2, 8)

    early, late = by_run(riddle(), plan, linear)
    rows = attacked(riddle(), Attack.YEOM, 1.0, steps=40, runs=30, seed=3)["an arm and its reward"]
    assert (early.step, late.step) == (20, 40) and early.apart.shape == late.same.shape == (30,)
    assert late.apart.mean() == pytest.approx(rows[-1].advantage.value)
    assert late.apart.mean() - 4 * late.apart.std() / math.sqrt(30) < 0 < late.same.mean() - 4 * late.same.std() / 30


def test_what_a_data_set_brings_to_hold_out_is_held_out() -> None:
    """The learner may play every row; of the others it remembers none."""
    others = riddle(seed=9)
    brought = replace(riddle(), held_out=others)
    (row,) = attacked(brought, Attack.YEOM, 0.0, steps=60, checkpoints=1, learner=Parrot)["an arm and its reward"]
    assert row.advantage.others == 100 * 30
    assert row.advantage.value == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / 3000))


def test_yeom_finds_a_learner_that_remembers() -> None:
    """A member is always paid, another half the time: the advantage is 1 / 2, within 5 deviations of 1,500 others."""
    (row,) = attacked(riddle(), Attack.YEOM, 0.0, steps=30, checkpoints=1, learner=Parrot)["an arm and its reward"]
    assert row.advantage.value == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / 1500))
    assert row.advantage.lower > 0.4
    (half,) = attacked(riddle(), Attack.YEOM, 0.5, steps=30, checkpoints=1, learner=Parrot)["an arm and its reward"]
    assert 0.15 < half.advantage.value < 0.35


def test_a_members_reward_is_the_one_that_was_learned_from() -> None:
    """Rewards are coins: a member has half of its arms remembered, which paid; the advantage is 1 / 4."""
    coins = Environment("coins", riddle().contexts, np.full((60, 2), 0.5))
    (row,) = attacked(coins, Attack.YEOM, 0.0, steps=30, checkpoints=1, learner=Parrot)["an arm and its reward"]
    assert row.advantage.value == pytest.approx(0.25, abs=5 * math.sqrt(0.44 / 1500))


@pytest.mark.parametrize("learner", [Parrot, None], ids=["parrot", "linear"])
def test_yeom_finds_nothing_where_arms_are_coins(learner: Callable[[int], LinearBandit] | None) -> None:
    (found,) = attacked(riddle(), Attack.YEOM, 1.0, steps=30, learner=learner).values()
    assert all(row.advantage.lower <= 0 <= row.advantage.upper for row in found)


# shadows


def test_a_bandit_is_judged_by_all_shadows_but_its_own_pair() -> None:
    number = np.random.default_rng(0).normal(size=(2, 2, 4))
    judges = np.delete(number[1], 2, axis=1)
    assert deviations(number)[1, 0, 2] == pytest.approx((number[1, 0, 2] - judges.mean()) / judges.std())
    assert (deviations(np.ones((1, 2, 4))) == 0).all()


def test_shadows_of_two_sides_that_are_alike_tell_nothing() -> None:
    """200 tables of 30 targets: 95 % of the intervals cover 0, within 4 deviations."""
    rng, missed = np.random.default_rng(2), 0
    for _ in range(200):
        scores = deviations(rng.normal(size=(30, 2, 16)) + rng.normal(size=(30, 1, 1)))
        found = measure(scores[:, 0], scores[:, 1])
        missed += not found.lower <= 0 <= found.upper
    assert missed <= 200 * 0.05 + 4 * math.sqrt(200 * 0.05 * 0.95)


def test_shadows_find_a_learner_that_remembers() -> None:
    """A target that was met is answered right on all queries, another on half of them."""
    found = attacked(riddle(), Attack.SHADOW, 0.1, steps=20, checkpoints=1, runs=40, learner=Parrot)
    assert found[ARMS][0].advantage.lower > 0.8
    coins = attacked(riddle(), Attack.SHADOW, 1.0, steps=20, checkpoints=1, runs=40, learner=Parrot)
    assert coins[ARMS][0].advantage.lower <= 0 <= coins[ARMS][0].advantage.upper


def test_weights_of_little_data_tell_and_inverse_matrices_tell_all() -> None:
    found = attacked(synthetic_linear(3, 6, rows=100), Attack.SHADOW, 0.1, steps=20)
    assert found[WEIGHTS][0].advantage.lower > 0.05
    assert all(row.advantage.value == 1.0 and row.advantage.tpr == 1.0 for row in found[STATE])


# the whole sequence


def test_without_coins_the_arms_tell_and_with_coins_alone_they_do_not() -> None:
    environment = synthetic_linear(5, 6, rows=200)
    advantages = []
    for eps in (0.0, 0.3, 0.9):
        (row,) = attacked(environment, Attack.SEQUENCE, eps, steps=60, checkpoints=1, runs=200)[REPLAY]
        advantages.append(row.advantage.value)
    assert advantages[0] > 0.7 and advantages == sorted(advantages, reverse=True) and advantages[2] < 0.35
    for row in attacked(environment, Attack.SEQUENCE, 1.0)[REPLAY]:
        assert (row.advantage.value, row.arm_ratio, row.total_ratio) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("eps", [0.05, 0.3, 0.9])
def test_no_arm_tells_more_than_its_eta(eps: float) -> None:
    """And a greedy arm that differs tells all of it, so the bound is met; one arm's advantage stays below 1 - eps."""
    eta = eta_per_step(5, eps)
    found = attacked(synthetic_linear(5, 6, rows=200), Attack.SEQUENCE, eps, runs=200)
    for row in [*found[ONE_ARM], *found[REPLAY]]:
        assert row.arm_ratio is not None and row.total_ratio is not None
        assert row.arm_ratio == pytest.approx(eta)
        assert row.total_ratio <= row.step * eta + 1e-9
    assert found[ONE_ARM][0].advantage.lower < 1 - eps
    assert found[PUBLIC][0].arm_ratio is not None and found[PUBLIC][0].arm_ratio < eta


def test_the_ratios_are_likelihood_ratios() -> None:
    """The mean of e^ratio where the double was met is 1, within 5 deviations; so it is the other way round."""
    environment, plan = synthetic_linear(2, 3, rows=40), Plan(0.5, 6, 1, 1, 0)
    rng = np.random.default_rng(3)
    drawn = Game.draw(environment, plan, 6000, rng)

    def learner(replicas: int) -> LinearBandit:
        return LinearBandit(replicas, 2, 3)

    *_, (_, seen) = played(drawn, environment, plan, learner, rng)
    assert seen is not None
    for knows in (ONE_ARM, REPLAY, CHANCES):
        inside, outside = seen.ratios[knows].T
        assert np.abs(outside).max() > 1
        for ratios in (np.exp(outside), np.exp(-inside)):
            assert abs(ratios.mean() - 1) < 5 * ratios.std() / math.sqrt(6000)


def test_a_reward_that_one_context_cannot_give_tells_all() -> None:
    """Half of the doubles pay by the other arm, so half of the pairs are told apart for sure."""
    found = attacked(riddle(), Attack.SEQUENCE, 1.0, runs=400)
    assert found[REPLAY][0].advantage.value == 0
    assert found[CHANCES][0].advantage.value == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / 400))


def test_a_target_that_is_its_own_double_tells_nothing() -> None:
    environment, plan = synthetic_linear(3, 4, rows=40), Plan(0.1, 30, 1, 1, 0)
    rng = np.random.default_rng(0)
    drawn = Game.draw(environment, plan, 20, rng)
    drawn.pair[:, 1] = drawn.pair[:, 0]
    *_, (_, seen) = played(drawn, environment, plan, lambda replicas: LinearBandit(replicas, 3, 4), rng)
    assert seen is not None and (seen.ratios[REPLAY] == 0).all() and (seen.ratios[CHANCES] == 0).all()


def test_where_arms_are_coins_every_ratio_of_arms_is_one() -> None:
    environment, plan = synthetic_linear(3, 4, rows=40), Plan(1.0, 10, 1, 1, 0)
    rng = np.random.default_rng(0)
    drawn = Game.draw(environment, plan, 20, rng)
    *_, (_, seen) = played(drawn, environment, plan, lambda replicas: LinearBandit(replicas, 3, 4), rng)
    assert seen is not None and (np.abs(seen.ratios[CHANCES]) > 0.01).any()
    for knows in (ONE_ARM, REPLAY, PUBLIC, ANYWHERE):
        assert seen.ratios[knows] == pytest.approx(np.zeros((20, 2)), abs=1e-12)


class Settled(LinearBandit):
    """Knows its weights from the start: context e_a has arm a."""

    def __init__(self, replicas: int) -> None:
        super().__init__(replicas, 20, 20)
        self.weights[:] = np.eye(20)

    def update(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learns nothing."""


def test_who_knows_public_contexts_recognises_a_rare_arm_wherever_it_is() -> None:
    """20 kinds of context with an arm each, 4 steps: the target's arm is seen by chance in a fifth of the streams."""
    environment = Environment("kinds", np.tile(np.eye(20), (20, 1)), np.full((400, 20), 0.5))
    found = attacked(environment, Attack.SEQUENCE, 0.0, steps=4, checkpoints=1, runs=400, learner=Settled)
    assert found[PUBLIC][0].advantage.value == pytest.approx(0.95, abs=0.07)
    assert found[ANYWHERE][0].advantage.value == pytest.approx(0.95**4, abs=0.12)
    blind = attacked(environment, Attack.SEQUENCE, 1.0, steps=4, checkpoints=1, runs=50, learner=Settled)
    assert blind[PUBLIC][0].advantage.value == blind[ANYWHERE][0].advantage.value == 0


def test_an_outsiders_bandits_learn_from_public_contexts() -> None:
    """An arm that is best for half of the contexts comes to be twice as likely for them as for anybody."""
    contexts = np.tile(np.eye(2), (50, 1))
    environment, rng = Environment("halves", contexts, contexts), np.random.default_rng(0)
    outsider = Outsider(environment, np.arange(100), 0.2, lambda replicas: LinearBandit(replicas, 2, 2), rng)
    assert outsider.likelihoods(np.eye(2)) == pytest.approx(np.ones((2, 2)))
    for _ in range(60):
        outsider.learn()
    assert outsider.likelihoods(np.eye(2)) == pytest.approx(np.array([[1.8, 0.2], [0.2, 1.8]]), abs=0.15)

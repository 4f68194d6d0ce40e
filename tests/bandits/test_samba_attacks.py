"""What Comp of the published SAMBA recovers from masked, permuted lists, and a computing party from shares."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from bandits.attacks.samba_comp import Look, _mixed, as_answered, blind_total, pursuit_mask, recover, score
from bandits.attacks.samba_node import guess_pulls
from bandits.samba import BernoulliArms, SambaError, SeededCoins, Seeds, by_name
from bandits.samba.coins import CommonCoins, PointCoins
from bandits.samba.epsilon_greedy import EpsilonGreedy
from bandits.samba.pursuit import Pursuit
from bandits.samba.words import drawn, softmax_word, word, words


class Seen(NamedTuple):
    """looks: Comp's view.  Before the last list: sums and pulls.  total: of the whole game.  masks: of the lists."""

    looks: list[Look]
    sums: np.ndarray
    pulls: np.ndarray
    total: int
    masks: list[int]


def seen_by_comp(name: str, arms: int, budget: int, seed: int) -> Seen:
    """A game with uniform means, and what the published protocol would show Comp of it."""
    seeds, means = Seeds.of(seed), np.random.default_rng([1, seed]).random(arms)
    policy, coins = by_name(name, arms), SeededCoins(seeds, arms)
    points, masks, paying = PointCoins(seeds.point), CommonCoins(seeds.common), BernoulliArms(means)
    looks: list[Look] = []
    used = []
    sums, pulls = policy.sums.copy(), policy.pulls.copy()
    for t in range(1, budget + 1):
        before = policy.sums.copy(), policy.pulls.copy()
        arm = policy.pull(t, coins)
        if t > arms and not (isinstance(policy, EpsilonGreedy) and coins.explore(t, policy.eps(t))):
            sums, pulls = before
            for iteration in range(1, policy.iterations + 1):
                mask, order = masks.mask(t, iteration, 64), coins.order(t, iteration)
                own = scores(name, t, iteration, sums, pulls, policy)
                lists = [(t, iteration, [mask * own[i] for i in order.tolist()])]
                looks += as_answered(lists, name, points)
                used.append(mask)
            assert order[looks[-1].chosen] == arm
        policy.update(arm, paying.reward(seeds.rewards, arm, t))
    return Seen(looks, sums, pulls, int(policy.sums.sum()), used)


def scores(name: str, t: int, iteration: int, sums: np.ndarray, pulls: np.ndarray, policy: object) -> list[int]:
    means = [int(s) / int(n) for s, n in zip(sums, pulls)]
    if name == "ucb":
        return [word(mean + math.sqrt(2.0 * math.log(t) / int(n))) for mean, n in zip(means, pulls)]
    if name == "softmax":
        return [softmax_word(mean, 0.06) for mean in means]
    if iteration == 2:
        assert isinstance(policy, Pursuit)
        return [word(chance) for chance in policy.chances.tolist()]
    return [word(mean) for mean in means]


@pytest.mark.parametrize("name", ["ucb", "softmax"])
def test_comp_recovers_every_pair_and_the_cumulative_reward(name: str) -> None:
    for seed in range(4):
        seen = seen_by_comp(name, 10, 500, seed)
        found = recover(seen.looks, name, arms=10, budget=500)
        assert found is not None and found.certain > 0.99
        told = score(found, seen.sums, seen.pulls, seen.total)
        assert told.pairs and told.before and told.total_error <= 1  # the last reward is never shown


@pytest.mark.parametrize("name", ["epsilon-greedy", "epsilon-decreasing", "pursuit"])
def test_comp_recovers_the_cumulative_reward_where_lists_hold_means(name: str) -> None:
    """A mean of 0 or 1 hides its n, so not every pair is certain; where it is, it is right."""
    right = sure = 0
    for seed in range(4):
        seen = seen_by_comp(name, 6, 200, seed)
        found = recover(seen.looks, name, arms=6, budget=200)
        assert found is not None
        told = score(found, seen.sums, seen.pulls, seen.total)
        assert told.pairs or found.certain < 0.99
        right += told.before
        sure += told.pairs
    assert right >= 3 and sure >= 1


@pytest.mark.parametrize("name", ["ucb", "softmax", "pursuit", "epsilon-greedy"])
@pytest.mark.parametrize(("arms", "budget"), [(1, 30), (2, 60), (3, 3), (30, 60)])
def test_comp_with_other_sizes(name: str, arms: int, budget: int) -> None:
    seen = seen_by_comp(name, arms, budget, 3)
    found = recover(seen.looks, name, arms=arms, budget=budget)
    assert found is not None or (arms == 30 and name != "ucb")
    if found is not None and name == "ucb" and budget > arms > 1:
        assert score(found, seen.sums, seen.pulls, seen.total)[:2] == (True, True)
    if found is not None:
        assert found.pairs.shape == (arms, 2) and 0 <= found.before <= found.total <= budget


def test_a_game_is_lost_without_room_for_it() -> None:
    """Steps that explore leave many games open until a list comes."""
    seen = seen_by_comp("epsilon-decreasing", 6, 60, 2)
    found = [recover(seen.looks, "epsilon-decreasing", arms=6, budget=60, room=room) for room in (60, 200_000)]
    assert found[0] is None
    assert found[1] is not None and found[1].before == seen.sums.sum()


def test_comp_of_doubles() -> None:
    """A masked score that is rounded to a double tells as much."""
    seen = seen_by_comp("ucb", 10, 200, 1)
    rounded = [look._replace(values=[float(value) for value in look.values]) for look in seen.looks]
    found = recover(rounded, "ucb", arms=10, budget=200)
    assert found is not None and score(found, seen.sums, seen.pulls, seen.total).pairs


def test_lists_of_another_policy_fit_nothing() -> None:
    seen = seen_by_comp("ucb", 5, 60, 1)
    assert recover(seen.looks, "epsilon-greedy", arms=5, budget=60) is None
    shuffled = [look._replace(t=other.t) for look, other in zip(seen.looks, seen.looks[1:] + seen.looks[:1])]
    assert recover(shuffled, "ucb", arms=5, budget=60) is None


def test_the_sum_of_pursuits_second_list_is_its_mask() -> None:
    seen = seen_by_comp("pursuit", 10, 200, 2)
    second = [look for look in seen.looks if look.iteration == 2]
    assert [pursuit_mask([int(value) for value in look.values]) for look in second] == seen.masks[1::2]
    first = [look for look in seen.looks if look.iteration == 1]
    assert not any(pursuit_mask([int(v) for v in look.values]) == mask for look, mask in zip(first, seen.masks[::2]))
    assert pursuit_mask([0, 0]) is None


def test_comps_answers() -> None:
    points = PointCoins(Seeds.of(1).point)
    lists = [(t, iteration, [3, 9, 0, 9]) for t in range(5, 30) for iteration in (1, 2)]
    largest = as_answered(lists, "ucb", points)
    assert {look.chosen for look in largest} == {1}
    both = as_answered(lists, "pursuit", points)
    assert {look.chosen for look in both if look.iteration == 1} == {1}
    draws = [drawn([3, 9, 0, 9], np.arange(4), *points.point(look.t)) for look in both if look.iteration == 2]
    assert [look.chosen for look in both if look.iteration == 2] == draws and len(set(draws)) > 1


def test_attacks_that_are_refused() -> None:
    seen = seen_by_comp("pursuit", 3, 20, 1)
    with pytest.raises(SambaError, match="no attack on 'thompson'"):
        recover([], "thompson", arms=3, budget=9)
    with pytest.raises(SambaError, match="give at least 3"):
        recover([], "ucb", arms=3, budget=2)
    with pytest.raises(SambaError, match="play fewer"):
        recover([], "ucb", arms=3, budget=1 << 20)
    with pytest.raises(SambaError, match="give all lists"):
        recover([look for look in seen.looks if look.iteration == 1], "pursuit", arms=3, budget=20)


def test_a_blind_guess_is_the_median() -> None:
    guess = blind_total("ucb", arms=10, budget=300)
    totals = [seen_by_comp("ucb", 10, 300, seed).total for seed in range(20)]
    assert 5 <= sum(total > guess for total in totals) <= 15


# ---- on shares


def shared(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A game's words, one party's shares of them, and who is pulled."""
    rng, seeds = np.random.default_rng(seed), Seeds.of(seed)
    policy, coins = by_name("ucb", 10), SeededCoins(seeds, 10)
    arms, own, pulled = BernoulliArms(rng.random(10)), [], []
    for t in range(1, 501):
        arm = policy.pull(t, coins)
        if t > 10:
            own.append(words(policy.means + np.sqrt(2.0 * math.log(t) / policy.pulls)))
            pulled.append(arm)
        policy.update(arm, arms.reward(seeds.rewards, arm, t))
    scores_ = np.array(own).astype(np.uint64)
    return scores_, scores_ - rng.integers(0, 1 << 64, scores_.shape, np.uint64), np.array(pulled)


def test_shares_fit_no_game() -> None:
    for seed in range(3):
        _, shares, pulled = shared(seed)
        looks = [Look(t, 1, row.tolist(), int(arm)) for t, (row, arm) in enumerate(zip(shares, pulled), start=11)]
        assert recover(looks, "ucb", arms=10, budget=500) is None


def test_guesses_from_shares_are_at_chance() -> None:
    """Over 8 games of 245 guesses: a tenth of them, within 5 standard deviations; scores themselves say it all."""
    found = [guess_pulls(shared(seed)[1], shared(seed)[2]) for seed in range(8)]
    steps = sum(guesses.steps for guesses in found)
    assert steps == 8 * 245
    assert abs(sum(guesses.largest for guesses in found) - steps / 10) < 5 * math.sqrt(steps * 0.09)
    blind = sum(guesses.blind for guesses in found)
    assert sum(guesses.trained for guesses in found) < blind + 5 * math.sqrt(steps * 0.25)


def test_guesses_from_scores_are_not() -> None:
    scores_, _, pulled = shared(1)
    found = guess_pulls(scores_, pulled)
    assert found.largest > 0.95 * found.steps > 2 * found.blind  # the rest are ties


def test_a_guesser_learns_from_bits_that_tell() -> None:
    rng = np.random.default_rng(0)
    pulled = rng.integers(0, 4, 600)
    seen = rng.integers(0, 1 << 64, (600, 4), np.uint64)
    assert guess_pulls(seen, pulled).trained < 130
    seen = seen & ~np.uint64(2) | (np.arange(4) == pulled[:, None]).astype(np.uint64) << np.uint64(1)
    found = guess_pulls(seen, pulled)
    assert found.trained > 230 and found.largest < 130


def test_games_are_mixed_by_the_permutation_that_is_named() -> None:
    """MurmurHash3's last step, by its published values at 0 and 1; a permutation where only the highest bit differs."""
    assert [int(word) for word in _mixed(np.arange(2, dtype=np.uint64))] == [0, 0xB456BCFC34C2CB2C]
    words = np.arange(1000, dtype=np.uint64)
    both = np.concatenate([words, words ^ np.uint64(1 << 63)])
    assert len(set(_mixed(both).tolist())) == 2000

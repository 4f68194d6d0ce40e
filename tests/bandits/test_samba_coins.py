"""Coins of a game, and the integers that scores become."""

from __future__ import annotations

import hashlib
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.samba import SambaError, SeededCoins, Seeds
from bandits.samba.coins import CommonCoins, OrderCoins, PointCoins, derived, owner_noise, unit
from bandits.samba.words import LEAST_TAU, best, check_tau, drawn, softmax_word, weight_bits, word, words
from tests.oracles import stats

SEED = Seeds.of(5).order
STEPS = 6000
SURE = 1e-6  # a test that fails by chance does so once in a million seeds


# ---- seeds


def test_each_purpose_and_each_run_has_a_seed_of_its_own() -> None:
    seeds = {seed for run in (Seeds.of(1), Seeds.of(2), Seeds.fresh(), Seeds.fresh()) for seed in run}
    assert len(seeds) == 4 * len(Seeds._fields) and {len(seed) for seed in seeds} == {32}
    assert Seeds.of(1) == Seeds.of(1)
    assert derived(SEED, "a") != derived(SEED, "b")
    assert "hidden" in repr(Seeds.of(1))


@pytest.mark.parametrize("seed", [-1, 1 << 128])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(SambaError, match="2\\^128"):
        Seeds.of(seed)


@pytest.mark.parametrize("make", [lambda s: OrderCoins(s, 3), PointCoins, CommonCoins, lambda s: owner_noise(s, 0)])
def test_a_seed_has_256_bits(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SambaError, match="32 bytes"):
        make(b"short")


def test_one_hand_holds_the_same_coins_as_many() -> None:
    seeds = Seeds.of(3)
    whole = SeededCoins(seeds, 7)
    orders, points, common = OrderCoins(seeds.order, 7), PointCoins(seeds.point), CommonCoins(seeds.common)
    for t in (900, 8, 3000, 9):
        assert (whole.order(t, 2) == orders.order(t, 2)).all()
        assert whole.point(t) == points.point(t)
        assert whole.explore(t, 0.5) == common.explore(t, 0.5)
    assert [whole.noise(4).random() for _ in range(3)] == owner_noise(seeds.noise, 4).random(3).tolist()


def expanded(seed: bytes, label: str, count: int) -> bytes:
    return hashlib.shake_256(f"samba, {label}: ".encode() + seed).digest(count)


def number(label: str) -> int:
    return int.from_bytes(expanded(SEED, label, 8), "little")


def test_coins_are_shake_256_of_their_seed() -> None:
    """Which does not give it away; owners' noise is PCG64's, and only its seed is."""
    assert Seeds.of(5).order == expanded((5).to_bytes(16, "big"), "seed of order", 32)
    assert derived(SEED, "point") == expanded(SEED, "seed of point", 32)
    assert PointCoins(SEED).point(7) == (number("point 7"), 64)
    assert CommonCoins(SEED).mask(3, 2, 64) == 1 + number("mask 3 2 64")
    assert unit(SEED, "a") == (number("a") >> 11) * 2.0**-53
    explores = [(number(f"explore {t}") >> 11) * 2.0**-53 < 0.5 for t in range(64)]
    assert [CommonCoins(SEED).explore(t, 0.5) for t in range(64)] == explores
    keys = np.frombuffer(expanded(SEED, "order 2 0", 8 * 5 * 9), np.uint64).reshape(5, 9)
    assert OrderCoins(SEED, 9).order(4, 2).tolist() == keys[4].argsort(kind="stable").tolist()
    noise = np.random.PCG64(int.from_bytes(expanded(SEED, "seed of noise 3", 32), "little"))
    assert owner_noise(SEED, 3).random() == np.random.Generator(noise).random()


# ---- orders


@pytest.mark.parametrize("arms", [1, 2, 10, 100, 20_000])
def test_orders_are_permutations(arms: int) -> None:
    coins = OrderCoins(SEED, arms)
    for t, iteration in itertools.product((1, 2, 500, 100_000), (1, 2)):
        assert (np.sort(coins.order(t, iteration)) == np.arange(arms)).all()


def test_an_order_depends_on_seed_step_and_iteration_alone() -> None:
    there, back = OrderCoins(SEED, 50), OrderCoins(SEED, 50)
    keys = [(t, iteration) for t in range(1, 400) for iteration in (1, 2)]
    seen = {key: there.order(*key).tolist() for key in keys}
    assert all(back.order(*key).tolist() == seen[key] for key in reversed(keys))
    assert len({tuple(order) for order in seen.values()}) == len(keys)
    assert OrderCoins(Seeds.of(6).order, 50).order(1, 1).tolist() != seen[1, 1]


def test_orders_are_uniform() -> None:
    coins = OrderCoins(SEED, 4)
    found = [tuple(coins.order(t, 1).tolist()) for t in range(1, STEPS + 1)]
    counts = [found.count(order) for order in itertools.permutations(range(4))]
    assert sum(counts) == STEPS and stats.chisquare(counts).pvalue > SURE


# ---- exploration, points, masks


@pytest.mark.parametrize("eps", [0.01, 0.1, 0.5, 0.9])
def test_exploration_is_as_frequent_as_eps(eps: float) -> None:
    coins = CommonCoins(SEED)
    found = sum(coins.explore(t, eps) for t in range(1, STEPS + 1))
    assert stats.binomtest(found, STEPS, eps).pvalue > SURE


def test_exploration_at_the_ends() -> None:
    coins = CommonCoins(SEED)
    assert not any(coins.explore(t, 0.0) for t in range(200))
    assert all(coins.explore(t, 1.0) for t in range(200))


def test_points_and_units_are_uniform() -> None:
    coins = PointCoins(SEED)
    points = [coins.point(t) for t in range(STEPS)]
    assert {c for _, c in points} == {64} and all(0 <= u < 1 << 64 for u, _ in points)
    assert stats.kstest([u / 2**64 for u, _ in points], "uniform").pvalue > SURE
    units = [unit(SEED, str(i)) for i in range(STEPS)]
    assert max(units) < 1.0 and stats.kstest(units, "uniform").pvalue > SURE


def test_masks_are_fresh_in_each_iteration() -> None:
    coins = CommonCoins(SEED)
    masks = [coins.mask(t, iteration, 64) for t in range(300) for iteration in (1, 2)]
    assert len(set(masks)) == 600 and min(masks) >= 1 and max(masks) <= 1 << 64
    assert max(masks).bit_length() == 64
    assert coins.mask(1, 1, 8) in range(1, 257)


def test_owners_noise_is_their_own() -> None:
    draws = [owner_noise(SEED, arm).random() for arm in range(50)]
    assert len(set(draws)) == 50


# ---- words


@given(st.floats(-1e5, 1e5), st.integers(1, 40))
def test_a_word_is_the_nearest_integer(value: float, bits: int) -> None:
    assert word(value, bits) == round(Fraction(value) * 2**bits)  # half to even, as Fraction rounds
    assert words(np.array([value]), bits).tolist() == [word(value, bits)]


@pytest.mark.parametrize(("halves", "expected"), [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2)])
def test_halves_go_to_the_even_neighbour(halves: float, expected: int) -> None:
    assert word(halves * 2.0**-40) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_best_is_the_first_of_the_largest(scores: list[int], random) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(scores)))
    random.shuffle(order)
    expected = next(arm for arm in order if scores[arm] == max(scores))
    assert best(np.array(scores), np.array(order)) == expected


@given(st.lists(st.integers(0, 1 << 70), min_size=1, max_size=8).filter(any), st.integers(0, 255), st.data())
def test_a_draw_is_where_the_running_sum_passes(weights: list[int], u: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(weights))))
    running = itertools.accumulate(weights[arm] for arm in order)
    expected = next(arm for arm, sum_ in zip(order, running) if sum_ * 256 > u * sum(weights))
    assert drawn(weights, np.array(order), u, 8) == expected
    assert weights[expected] > 0


def test_every_weight_has_its_share_of_the_points() -> None:
    found = [drawn([3, 0, 1, 4], np.array([2, 3, 1, 0]), u, 3) for u in range(8)]
    assert found == [2, 3, 3, 3, 3, 0, 0, 0]


def test_nothing_is_drawn_from_zeros() -> None:
    with pytest.raises(SambaError, match="all weights are 0"):
        drawn([0, 0], np.arange(2), 5, 64)


@pytest.mark.parametrize("tau", [LEAST_TAU, 0.02, 0.06, 1.0, 1e6])
def test_softmax_words_are_precise(tau: float) -> None:
    with localcontext() as context:
        context.prec = 60
        for mean in (0.0, 1e-5, 0.123456789, 0.5, 0.999999, 1.0):
            exact = ((Decimal(mean) - 1) / Decimal(tau)).exp() * Decimal(2) ** weight_bits(tau)
            assert abs(softmax_word(mean, tau) / exact - 1) < Decimal(2) ** -38
    assert softmax_word(0.0, tau) >= 1 << 39
    assert softmax_word(1.0, tau) == 1 << weight_bits(tau)


@pytest.mark.parametrize("tau", [0.0, -1.0, 1e-4, 1e7, math.nan, math.inf])
def test_temperatures_that_are_refused(tau: float) -> None:
    with pytest.raises(SambaError, match="tau"):
        check_tau(tau)

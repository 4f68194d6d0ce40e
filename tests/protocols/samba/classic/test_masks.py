"""Masks keep what is compared or drawn, and what Comp selects in what they leave."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bandits.samba.words import drawn
from protocols.samba.classic.masks import Field, double_of, fields_of
from protocols.samba.classic.selecting import AllZero, selected, unfit, uniform
from protocols.samba.owners import Select
from protocols.samba.policies import local_policy
from tests.forks import halves, refused


@given(st.integers(0, (1 << 52) - 2), st.integers(1, 1 << 20), st.integers(1, 1 << 64))
@example((1 << 52) - 2, 1, 1 << 64)
@example(0, 1, 1)
@example((1 << 52) - 2, 1, 1)
def test_rounded_masks_keep_order_and_ties(v: int, more: int, mask: int) -> None:
    w = min(v + more, (1 << 52) - 1)
    field = Field(Select.LARGEST, 8, doubles=True)
    low, high, same = np.asarray(field.read(field.write(np.array([v, w, v]), mask))).tolist()
    assert 0 <= low == same < high < math.inf and (low > 0) == (v > 0)


@given(st.lists(st.integers(0, (1 << 41) - 1), min_size=1, max_size=6), st.integers(1, 1 << 64))
def test_exact_masks_are_products(words: list[int], mask: int) -> None:
    field = Field(Select.DRAW, 14, doubles=False)
    assert field.read(field.write(np.array(words), mask)) == [word * mask for word in words]


@given(
    st.lists(st.integers(0, 1 << 70), min_size=1, max_size=8).filter(any), st.integers(1, 1 << 64),
    st.integers(0, (1 << 64) - 1),
)  # fmt: skip
def test_a_draw_is_the_plaintext_one_whatever_the_mask(weights: list[int], mask: int, u: int) -> None:
    field = Field(Select.DRAW, 20, doubles=False)
    place = selected(field, [weight * mask for weight in weights], u, 64)
    assert place == drawn(weights, np.arange(len(weights)), u, 64)
    running = sum(weights[:place])
    assert running << 64 <= u * sum(weights) < (running + weights[place]) << 64


def test_masks_are_spread_over_their_range() -> None:
    masks = [double_of(1 + int(mask)) for mask in np.random.default_rng(1).integers(0, 2**63, 2000, np.uint64) * 2]
    octaves = np.floor(np.log2(masks))
    assert octaves.min() >= -512 and octaves.max() < 512 and len(np.unique(octaves)) > 800
    assert len(np.unique(np.array(masks) / 2.0**octaves)) == 2000


def test_the_first_of_the_largest_and_nothing_to_draw() -> None:
    largest, draw = Field(Select.LARGEST, 8, doubles=True), Field(Select.DRAW, 8, doubles=False)
    assert selected(largest, np.array([1.0, 3.0, 3.0]), 0, 64) == 1
    assert selected(largest, [1, 3, 3], 0, 64) == 1
    with pytest.raises(AllZero):
        selected(draw, [0, 0], 5, 64)
    assert unfit(np.array([1.0, np.nan])) == 1 and unfit(np.array([1.0, -1.0])) == 1
    assert unfit(np.array([np.inf, 1.0])) == 0 and unfit(np.array([0.0, 1.0])) is None and unfit([3]) is None
    assert [uniform(3, u, 2) for u in range(4)] == [0, 0, 1, 2]


def test_fields_follow_from_policy_and_budget() -> None:
    assert [field.width for field in fields_of(local_policy("ucb"), 10**12)] == [8]
    assert [(field.width, field.doubles) for field in fields_of(local_policy("pursuit"), 9)] == [(8, True), (14, False)]
    assert [field.width for field in fields_of(local_policy("softmax", tau=0.02), 9)] == [23]


def test_no_mask_serves_both_halves_of_a_fork() -> None:
    refused(halves(
        """
from protocols.samba.classic.masks import OwnerCoins

coins = OwnerCoins(bytes(32), bytes(range(32)), 3)
half("explores", lambda: coins.explores(4, 0.5))
half("mask", lambda: coins.mask(4, 1))
half("slots", lambda: coins.slots(4, 1).tolist())
"""
    ))  # fmt: skip

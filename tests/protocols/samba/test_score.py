"""The owners' side: words, locality, and state that can be kept; masks and what Comp selects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bandits.samba import NAMES
from bandits.samba.words import drawn
from mpc.errors import ConfigError, Desync, RangeError
from protocols.samba.classic.masks import Field, double_of, fields_of
from protocols.samba.classic.selecting import AllZero, selected, unfit, uniform
from protocols.samba.policies import ReinforcementComparison, SoftmaxRace, local_policy
from protocols.samba.score import SCORE_BITS, Holdings, LocalPolicy, Owners, Select, require_local


def owners_of(name: str, arms: int = 3, seed: int = 1, race: bool = False) -> Owners:
    noise = [np.random.default_rng([seed, i]) for i in range(arms)]
    made = Owners(local_policy(name, race=race), range(arms), arms, noise=noise, pay=lambda arm, t: (arm + t) % 2)
    made.first_pulls()
    return made


@pytest.mark.parametrize("race", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_six_policies_are_local(name: str, race: bool) -> None:
    require_local(local_policy(name, race=race))


def test_reinforcement_comparison_is_refused_with_the_reason() -> None:
    with pytest.raises(
        ConfigError, match="reinforcement comparison breaks score locality: it needs the common reference"
    ):
        require_local(ReinforcementComparison())


def test_one_that_does_not_say_it_is_found_out() -> None:
    class Silent(ReinforcementComparison):
        shared = ""

    class Peeking(LocalPolicy):
        name = "peeking"

        def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
            return mine.means / mine.sums.max(initial=1)

        def largest(self, budget: int, iteration: int) -> float:
            return 1.0

    for policy in (Silent(), Peeking()):
        with pytest.raises(
            ConfigError, match="breaks score locality: owner 0 alone computes another score than beside"
        ):
            require_local(policy)


def test_a_policy_without_iterations() -> None:
    class Idle(ReinforcementComparison):
        shared = ""
        selects = ()

    with pytest.raises(ConfigError, match="declares no iteration"):
        require_local(Idle())


@pytest.mark.parametrize("count", [255, 256])
def test_a_policy_with_more_iterations_than_messages_count(count: int) -> None:
    class Long(LocalPolicy):
        name = "long"
        selects = (Select.LARGEST,) * count

        def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
            return mine.means

        def largest(self, budget: int, iteration: int) -> float:
            return 1.0

    if count == 255:
        require_local(Long())
        return
    with pytest.raises(ConfigError, match="long declares 256 iterations, and messages count to 255: declare fewer"):
        require_local(Long())


@pytest.mark.parametrize("name", NAMES)
def test_words_stay_below_what_is_declared(name: str) -> None:
    for race in (False, True):
        owners = owners_of(name, race=race)
        policy = owners.policy
        for t in range(4, 60):
            for iteration in range(1, policy.iterations + 1):
                words = owners.words(t, iteration)
                assert all(0 <= word < 1 << policy.word_bits(60, iteration) for word in words.tolist())
                owners.told(np.eye(3, dtype=np.int64)[t % 3], t, iteration)


def test_words_are_the_formulas() -> None:
    owners = owners_of("ucb")
    n, s = owners.pulls.copy(), owners.sums.copy()
    assert n.tolist() == [1, 1, 1] and s.tolist() == [1, 1, 1]
    words = owners.words(9, 1).tolist()
    assert words == [round((1.0 + math.sqrt(2.0 * math.log(9))) * 2**SCORE_BITS)] * 3
    assert owners_of("epsilon-greedy").words(9, 1, 20).tolist() == [1 << 20] * 3
    assert owners_of("softmax").words(9, 1).tolist() == [1 << math.ceil(math.log2(math.e) / 0.06) + 40] * 3
    race = owners_of("softmax", race=True)
    gumbel = [np.random.default_rng([1, i]).gumbel() for i in range(3)]
    assert race.words(9, 1).tolist() == [round((1 / 0.06 + g) * 2**40) + (4 << 40) for g in gumbel]


def test_a_race_is_not_negative_and_not_too_large() -> None:
    smallest, largest = -math.log(-math.log(2.0**-53)), -math.log(-math.log1p(-(2.0**-53)))
    assert smallest + SoftmaxRace.lift > 0 and largest < 37
    assert SoftmaxRace(0.001).word_bits(10, 1) <= 52


def test_pursuit_moves_by_its_own_bit() -> None:
    owners = owners_of("pursuit")
    owners.told(np.array([0, 1, 0]), 4, 1)
    assert np.allclose(owners.mine.own["chance"], [0.3, 0.4, 0.3])
    assert owners.pulls.tolist() == [1, 1, 1]
    owners.told(np.array([0, 0, 1]), 4, 2)
    assert owners.pulls.tolist() == [1, 1, 2] and owners.steps == [[1], [2], [3, 4]]
    assert np.allclose(owners.mine.own["chance"], [0.3, 0.4, 0.3])


@pytest.mark.parametrize("name", NAMES)
def test_state_goes_on(name: str) -> None:
    owners, other = owners_of(name), owners_of(name)
    for t in range(4, 20):
        for iteration in range(1, owners.policy.iterations + 1):
            owners.told(np.eye(3, dtype=np.int64)[t * t % 3], t, iteration)
    other.restore(owners.state())
    assert other.steps == owners.steps and other.sums.tolist() == owners.sums.tolist()
    for iteration in range(1, owners.policy.iterations + 1):
        assert owners.words(20, iteration).tolist() == other.words(20, iteration).tolist()


def test_foreign_state_is_refused() -> None:
    state = owners_of("ucb").state()
    with pytest.raises(ConfigError, match="of other owners or of another policy"):
        owners_of("pursuit").restore(state)
    with pytest.raises(ConfigError, match="of other owners or of another policy"):
        owners_of("ucb", 2).restore(state)
    with pytest.raises(Desync, match="does not fit together"):
        owners_of("ucb").restore({**state, "pulls": state["pulls"] + 1})


def test_rewards_are_zero_or_one() -> None:
    owners = Owners(local_policy("ucb"), [4], 9, noise=[np.random.default_rng(1)], pay=lambda *_: 2)
    with pytest.raises(RangeError, match="owner 4's arm paid no 0 or 1 at step 5"):
        owners.first_pulls()
    with pytest.raises(ConfigError, match="2 owners with 1 streams of noise"):
        Owners(local_policy("ucb"), [4, 5], 9, noise=[np.random.default_rng(1)], pay=lambda *_: 1)


# ---- masks, and selecting in what they leave


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

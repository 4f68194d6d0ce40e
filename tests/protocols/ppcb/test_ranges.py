"""Nothing wraps silently: settings that cannot be are refused, and so is what leaves its declared range."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given as over
from hypothesis import strategies as st

from bandits.environments import Episode, unit_rows
from bandits.linear import LinearBandit
from mpc import ConfigError, RangeError, Session
from mpc.errors import MaskedError
from mpc.ops import Keys
from offline import InsecureSeededDealer
from protocols.ppcb.clients import World
from protocols.ppcb.player import Owners, feature_blocks, share_contexts, split
from protocols.ppcb.settings import Argmax, Division, Policy, Settings, Truncation, Variant

from .runs import (
    ENVIRONMENT,
    Parts,
    Simulation,
    clients_of,
    error,
    finished,
    name_of,
    paying,
    played,
    settings,
    shortfalls,
    smallest_eigenvalue,
)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"arms": 0}, "0 arms, .* at least 1 of each"),
    ({"dim": 0}, "0 dimensions, .* at least 1 of each"),
    ({"replicas": 0}, "0 replicas, .* at least 1 of each"),
    ({"batch": 0}, "batches of 0: at least 1 of each"),
    ({"owners": 0}, "0 owners, .* at least 1 of each"),
    ({"eps": 1.5}, r"probability in \[0, 1\], not 1.5"),
    ({"eps": -0.1}, r"probability in \[0, 1\], not -0.1"),
    ({"eps": math.nan}, r"probability in \[0, 1\], not nan"),
    ({"eps": 1e-15}, "finer than the dealer's coins: use 0, or at least"),
    ({"steps": 0}, "at least 1 step, not 0"),
    ({"tie_bits": -1}, "tie_bits lie between 0, for equal scores only, and 40, not -1"),
    ({"tie_bits": 41}, "tie_bits lie between 0, for equal scores only, and 40, not 41"),
    ({"delay": -1}, "delay -1, .* counts from 0"),
    ({"refresh": -2}, "refresh -2 .* counts from 0"),
    ({"newton": -1}, "newton -1 are counts from 0"),
    ({"ridge": 0.0}, "ridge 0, .* must be positive"),
    ({"ridge": math.nan}, "ridge nan, .* must be positive"),
    ({"ridge": math.inf}, "ridge inf, .* must be positive"),
    ({"bound": 0.0}, "bound 0 .* must be positive"),
    ({"bound": math.inf}, "bound inf .* must be positive"),
    ({"alpha": -1.0}, "alpha -1 must be positive"),
    ({"alpha": math.nan}, "alpha nan must be positive"),
    ({"fraction_bits": 1, "state_bits": 1}, "1 fraction bits and 1 of the state"),
    ({"fraction_bits": 31, "state_bits": 31}, "31 fraction bits and 31 of the state"),
    ({"state_bits": 19}, "20 fraction bits and 19 of the state.* at least as many"),
    ({"state_bits": 41}, "20 fraction bits and 41 of the state.* at most twice as many"),
    ({"state_bits": 34}, r"u u' needs \d+ bits of 62: use fewer state_bits"),
    ({"fraction_bits": 27, "state_bits": 27}, r"needs \d+ bits of 62: use fewer state_bits or fraction_bits"),
    (
        {"bound": 8.0, "ridge": 8.0, "owners": 2, "fraction_bits": 30, "state_bits": 30, "reward_range": (0.0, 1e-3)},
        "x'u needs 65 bits of 62: use fewer state_bits",
    ),
    (
        {"variant": Variant.PUBLISHED, "bound": 0.01, "ridge": 1e-6, "owners": 2},
        "u u' needs 68 bits of 62: use fewer fraction_bits, or a larger ridge",
    ),
    (
        {"bound": 51.0, "ridge": 48.0, "owners": 2, "fraction_bits": 12, "state_bits": 24,
         "division": Division.TABLE_NEWTON, "refresh": 4},
        "1 . x'u may reach 109.4, and with 12 bits its inverse is too coarse for P to stay positive: use more",
    ),
    (
        {"variant": Variant.PUBLISHED, "bound": 3.4, "ridge": 0.15, "owners": 3, "fraction_bits": 14, "state_bits": 14},
        "1 . x'u may reach 232.2, and with 14 bits its inverse is too coarse for P to stay positive: use more",
    ),
    (
        {"variant": Variant.PUBLISHED, "bound": 38.0, "ridge": 385.0, "fraction_bits": 12, "state_bits": 12},
        "P is as small as a unit in the last place of 12 state bits",
    ),
    ({"ridge": 1e-12}, r"needs \d+ bits of 62: .* a larger ridge"),
    ({"bound": 1e9}, "curve reaches|bits of 62|interval"),
    ({"steps": 1 << 50}, r"needs \d+ bits of 62: .* declare fewer steps"),
    ({"steps": 1 << 34, "refresh": 1, "fraction_bits": 16, "state_bits": 16, "bound": 16.0}, "sum x x' needs 76 bits"),
    ({"batch": 1 << 20, "fraction_bits": 21, "state_bits": 21, "bound": 0.5}, r"G u needs \d+ bits of 62"),
    ({"policy": Policy.LINUCB, "truncation": Truncation.PUBLISHED}, "linucb takes roots by exact truncation"),
    ({"policy": Policy.THOMPSON, "truncation": Truncation.PUBLISHED}, "thompson takes roots by exact truncation"),
    ({"division": Division.NEWTON, "fraction_bits": 23, "state_bits": 23}, "overflows at 23 fraction bits: use at"),
    ({"variant": Variant.PUBLISHED, "batch": 2}, "published variant is epsilon-greedy, without batch"),
    ({"variant": Variant.PUBLISHED, "delay": 1}, "published variant is epsilon-greedy, without batch, delay"),
    ({"variant": Variant.PUBLISHED, "refresh": 1}, "published variant is epsilon-greedy, .* or refresh"),
    ({"variant": Variant.PUBLISHED, "policy": Policy.LINUCB}, "published variant is epsilon-greedy"),
    ({"variant": Variant.PUBLISHED, "state_bits": 24}, "one number of fraction bits for all, at most 22"),
    ({"variant": Variant.PUBLISHED, "fraction_bits": 23, "state_bits": 23}, "for all, at most 22"),
    ({"variant": Variant.PUBLISHED, "steps": 1 << 30}, "sums of rewards need 70 bits of 62: use fewer fraction_bits"),
    ({"arms": 1 << 40}, "more than 1000"),
    ({"arms": 100_000}, "arms"),
    ({"policy": Policy.LINUCB, "alpha": 1e9}, "alpha|bits of 6"),
    ({"policy": Policy.LINUCB, "alpha": 1e300}, "one is beyond"),
    ({"bound": 1e200}, "bound 1e.200, .* one is beyond"),
    ({"bound": 1e-200}, "features that differ by 1e-200 at most are rounded to 9.5e-07, with 20 fraction bits"),
    ({"ridge": 1e-320}, "one is beyond .* or the ridge below its inverse"),
    ({"reward_range": (1e308, 1.7e308)}, "rewards up to 1.7e.308, .* one is beyond"),
    ({"reward_range": (-1.7e308, 1.7e308)}, "one is beyond"),
    ({"reward_range": (0.0, 1e-7)}, "rewards that differ by 1e-07 at most .* scale them to 6.1e-05 and more"),
    ({"reward_range": (0.0, 1e-320)}, "rewards that differ by .* are rounded to"),
    ({"policy": Policy.THOMPSON, "alpha": 1e7, "state_bits": 28}, "alpha|bits of 6"),
    ({"division": Division.NEWTON, "bound": 30.0}, "newton|reciprocal"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=str)
def test_settings_that_cannot_be_are_refused_with_their_numbers(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RangeError, match=words):
        settings(**changes)


@pytest.mark.parametrize(("argmax", "most"), [(Argmax.PAIRS, 1000), (Argmax.CIRCUIT, 1000), (Argmax.TOURNAMENT, 5000)])
def test_so_many_arms_fit_and_no_more(argmax: Argmax, most: int) -> None:
    assert settings(arms=most, argmax=argmax).arms == most
    with pytest.raises(RangeError, match=f"{most + 1} arms are more than {most}, for which comparisons fit"):
        settings(arms=most + 1, argmax=argmax)


@st.composite
def anything(draw: st.DrawFn) -> Settings:
    """Settings of all kinds, those that cannot be left out."""
    variant, fraction_bits = draw(st.sampled_from(Variant)), draw(st.integers(12, 28))
    policy, own = Policy.EPSILON_GREEDY, dict[str, Any]()
    if variant is Variant.RECAST:
        policy = draw(st.sampled_from(Policy))
        own = {
            "batch": draw(st.integers(1, 9)), "delay": draw(st.integers(0, 9)), "refresh": draw(st.integers(0, 9)),
            "division": draw(st.sampled_from(Division)), "segments": draw(st.integers(6, 9)),
            "state_bits": fraction_bits + draw(st.integers(0, 3)), "tie_bits": draw(st.integers(0, 12)),
        }  # fmt: skip
    if policy is Policy.EPSILON_GREEDY:
        own["truncation"] = draw(st.sampled_from(Truncation))
    try:
        return Settings(
            arms=draw(st.integers(1, 20)), dim=draw(st.integers(1, 50)), eps=draw(st.sampled_from([0.0, 0.1, 1.0])),
            replicas=draw(st.integers(1, 9)), policy=policy, alpha=draw(st.floats(0.0, 4.0)),
            ridge=10.0 ** draw(st.floats(-1, 2)), bound=10.0 ** draw(st.floats(-1.5, 0.7)),
            owners=draw(st.integers(1, 5)), fraction_bits=fraction_bits, newton=draw(st.none() | st.just(0)),
            argmax=draw(st.sampled_from(Argmax)), variant=variant, steps=draw(st.integers(1, 4000)),
            reward_range=draw(st.sampled_from([(0.0, 1.0), (0.0, 0.02), (-3.0, 5.0), (40.0, 41.0)])),
            **({"state_bits": fraction_bits} | own),
        )  # fmt: skip
    except RangeError:
        assume(False)
        raise


@over(anything())
def test_settings_travel_as_json(given: Settings) -> None:
    assert Settings.from_json(json.loads(json.dumps(given.as_json()))) == given


def test_values_however_small_take_a_bit() -> None:
    assert Settings(3, 2, reward_range=(0.0, 1e-3), steps=1).value_bits == 1


def test_settings_ignore_what_later_versions_add() -> None:
    assert Settings.from_json({**settings().as_json(), "something": 1}) == settings()


@pytest.mark.parametrize(
    ("changes", "unit"),
    [
        ({}, 2.0**-8 / 4),
        ({"reward_range": (-100.0, 28.0)}, 128 * 2.0**-8 / 4),
        ({"reward_range": (0.0, 0.3)}, 0.25 * 2.0**-8 / 4),
        ({"tie_bits": 3, "state_bits": 26}, 2.0**-3 / 4),
        ({"tie_bits": 40}, 0.0),
        ({"tie_bits": 0}, 0.0),
    ],
    ids=str,
)
def test_the_draw_among_close_scores_is_a_part_of_the_rewards_range(changes: dict[str, Any], unit: float) -> None:
    """A place in its order, of three or four arms; of two a place is twice as much, and the whole the same."""
    given = settings(**changes)
    assert given.draw_unit(4) == given.draw_unit(3) == unit and given.draw_unit(2) == 2 * unit


def test_a_long_run_takes_no_round_more(parties: int) -> None:
    """60,000 contexts, for which the state has 27 to 29 bits: 12 rounds, with five parties 13; as exact as ever."""
    given = settings(owners=parties, steps=60_000).for_run(parties, 60_000)
    assert given.state_bits > given.fraction_bits and (given.lines.step > 0) == (parties < 5)
    simulation = finished(given, parties, 30)
    assert simulation.result().cost.rounds == 30 * (12 + (parties == 5))
    assert shortfalls(simulation).max() < 2.0**-12 and error(simulation) < 2.0**-13


@over(anything())
def test_every_word_that_settings_allow_has_room(given: Settings) -> None:
    """The largest prediction, reciprocal and key of any settings that are accepted stay in their rings."""
    score = given.reward * math.sqrt(given.steps) * given.norm / (2 * math.sqrt(given.ridge))
    gain, scale = given.norm / given.ridge, given.state_bits
    assert gain**2 * 2.0 ** (2 * scale) < 2.0**62, "u u'"
    assert gain * given.norm * 2.0 ** (given.fraction_bits + scale) < 2.0**62, "x'u"
    assert 2.0**given.value_bits >= 2 * score
    assert Keys(given.arms, given.score_bits, given.eps, given.blur).width <= 64
    drawn = 2.0**given.blur if given.blur else 0.0
    assert 2 * score * 2.0**given.score_scale + drawn <= 2.0 ** (given.score_bits - 1)
    if given.variant is Variant.PUBLISHED:
        return
    assert given.upper >= 1 + given.norm**2 / given.ridge
    assert given.fraction_bits <= given.factor_scale <= given.lines.out_scale
    widest = score * 2.0 ** (given.state_bits + given.factor_scale) * max(1.0, given.norm / given.ridge)
    assert widest < 2.0**62
    normal = {Policy.EPSILON_GREEDY: 0.0, Policy.LINUCB: 1.0, Policy.THOMPSON: 8.0}[given.policy]
    index = score + normal * given.alpha * given.norm / math.sqrt(given.ridge)
    assert index * 2.0 ** (given.fraction_bits + given.state_bits) < 2.0**62


@pytest.mark.parametrize("bits", [(14, 14), (14, 28), (16, 28), (20, 20), (22, 22), (24, 27), (26, 26)], ids=str)
@pytest.mark.parametrize(("policy", "parties"), list(zip(Policy, (5, 3, 2))), ids=str)
def test_fraction_bits_at_both_ends_run(bits: tuple[int, int], policy: Policy, parties: int) -> None:
    """The coarser of the two decides how close the scores must be."""
    given = settings(fraction_bits=bits[0], state_bits=bits[1], policy=policy, steps=1000)
    simulation = finished(given, parties, 24)
    coarse = 2.0 ** (5 - bits[0])
    assert error(simulation) < coarse + 1e-5
    root = 0.0 if policy is Policy.EPSILON_GREEDY else 2e-3 + 2.0 ** (2 - bits[0] / 2)
    assert shortfalls(simulation).max() < root + 8 * coarse


def at_the_bound(parties: int, bound: float) -> np.ndarray:
    """Contexts whose every block lies at its owner's bound, others with one such block, and zero."""
    rows = np.zeros((24, 8))
    for block in feature_blocks(8, parties):
        width = block.stop - block.start
        rows[:8, block] = unit_rows(np.random.default_rng(block.start).normal(size=(8, width)))
        rows[8 + block.start, block.start] = 1.0
        rows[16 + block.start, block] = -unit_rows(np.ones((1, width)))
    return rows * bound


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": 1.0},
        {"bound": 2.5},
        {"bound": 0.3, "ridge": 0.1},
        {"batch": 3},
        {"policy": Policy.LINUCB},
        {"division": Division.TABLE_NEWTON},
    ],
    ids=name_of,
)
def test_contexts_up_to_every_owners_bound_never_wrap(changes: dict[str, Any], parties: int) -> None:
    """The first update of an arm has the largest argument of the reciprocal, the end of its table."""
    given = settings(steps=100, **changes)
    simulation = finished(given, parties, 24, paying(at_the_bound(parties, given.bound)))
    run = simulation.result()
    assert error(simulation) < 1e-3 / given.ridge
    assert np.abs(run.regressions[:, :, :8]).max() < 1.001 / given.ridge
    assert smallest_eigenvalue(run) > 0
    assert shortfalls(simulation).max() < (2.0**-12 if given.policy is Policy.EPSILON_GREEDY else 5e-3)


@pytest.mark.parametrize("owner", [0, -1])
def test_a_hair_above_the_bound_is_refused_where_it_is_shared(owner: int, parties: int) -> None:
    rows = np.zeros((1, 8))
    rows[0, 0 if owner == 0 else 7] = 1.001
    with pytest.raises(RangeError, match=rf"block of party {owner % parties} has norm 1\.001, declared is 1: scale it"):
        played(settings(), parties, 1, paying(rows))
    with pytest.raises(RangeError, match=r"has norm 0\.5, declared is 0\.25"):
        played(settings(bound=0.25), parties, 1, paying(rows / 2.002))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_features_that_are_no_numbers_are_refused(strange: float) -> None:
    rows = np.zeros((1, 8))
    rows[0, 5] = strange
    with pytest.raises(RangeError, match=r"block of party 1 has norm (nan|inf)"):
        played(settings(), 2, 1, paying(rows))


def test_a_block_of_another_shape_is_refused(parties: int) -> None:
    given = settings(owners=parties)
    session = Session.simulate(parties, InsecureSeededDealer(parties, 1))
    blocks = split(np.zeros((3, 1, 8)), parties)
    for wrong in (np.zeros((3, 1, 9)), np.zeros((3, 2, 8)), np.zeros((2, 1, 8)), np.zeros(8)):
        given_blocks = {**blocks, 1: wrong[..., :1]}
        if given_blocks[1].shape == blocks[1].shape:
            given_blocks[1] = wrong
        with pytest.raises(RangeError, match=r"party 1 declared blocks of shape \(3, 1, \d\) .* this one has \("):
            share_contexts(session, given_blocks, given)
    with pytest.raises(ConfigError, match="party 1 owns this input"):
        share_contexts(session, {0: blocks[0]}, given)
    with pytest.raises(MaskedError, match="owners of blocks"):
        share_contexts(session, blocks, settings(owners=1))


def test_blocks_cover_every_feature_once() -> None:
    for parties in (2, 3, 5, 7):
        blocks = feature_blocks(20, parties)
        assert np.concatenate([np.arange(20)[part] for part in blocks]).tolist() == list(range(20))
        assert {part.stop - part.start for part in blocks} <= {20 // parties, -(-20 // parties)}


def test_scores_as_large_as_they_can_be_do_not_wrap(parties: int) -> None:
    """Contexts of norm 1/10 that always pay: the regression predicts 5 for a unit context, far beyond any reward."""
    small, unit = np.zeros((1, 8)), np.zeros((1, 8))
    small[0, 0], unit[0, 0] = 0.1, 1.0
    episode = Episode(np.concatenate([np.repeat(small, 100, axis=0), unit]), np.ones((101, 1)))
    given = Settings(arms=1, dim=8, owners=parties, division=Division.TABLE_NEWTON, steps=101)
    world = World([episode], given)
    session = Session.simulate(parties, InsecureSeededDealer(parties, 1), clients=clients_of(world))
    owners = Owners(session, given, split(world.contexts, parties))
    twin, largest = LinearBandit(1, 1, 8), 0.0
    for contexts in world.contexts:
        owners.turn()
        largest = float(twin.predictions(contexts).max())
        twin.update(contexts, np.zeros((1, 1), int), np.ones((1, 1)))
    assert largest > 4.9
    table = owners.state()["table"].sum(axis=0, dtype=np.uint64).view(np.int64) * 2.0**-20
    assert np.abs(table[:, :, 8] - twin.weights).max() < 1e-2


@pytest.mark.parametrize("argmax", Argmax)
def test_large_scores_are_compared_without_a_wrap(argmax: Argmax, parties: int) -> None:
    """Predictions of -10 to 10 for four arms; the largest wins whatever its place."""
    weights = np.zeros((4, 4, 8))
    for r in range(4):
        weights[r, :, 0] = np.roll([10.0, -10.0, 9.99, 0.0], r)
    start = LinearBandit(4, 4, 8)
    start.weights = weights
    given = settings(replicas=4, eps=0.0, argmax=argmax, steps=400, owners=parties)
    secret = Parts(parties, given, start=start)
    x = np.zeros((4, 1, 8))
    x[..., 0] = 1.0
    for block, sign in enumerate((1.0, -1.0)):
        chosen = secret.decide(sign * x, block).argmax(axis=-1)[:, 0]
        assert chosen.tolist() == [(r + block) % 4 for r in range(4)]


def test_a_run_longer_than_its_settings_allow_is_refused() -> None:
    """Predictions grow with the square root of the steps; the comparison is as wide as the declared steps need."""
    with pytest.raises(MaskedError, match="step"):
        Simulation(ENVIRONMENT, settings(steps=10), parties=2, steps=11, seed=1)

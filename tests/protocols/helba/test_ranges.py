"""Which runs 64-bit words hold, and that every product of those keeps below 2^62."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits.helba import Batches, Constants, Problem, fresh
from bandits.helba.constants import HelbaError
from mpc.client import Receive
from mpc.errors import ConfigError, MaskedError, RangeError
from mpc.ring import VALUE_BITS
from protocols.helba.clients import user
from protocols.helba.run import Encrypted
from protocols.helba.settings import START_BITS, Settings
from protocols.run.desk import MemoryDesk, World

FEATURES = 20


def worst_words(given: Settings) -> dict[str, float]:
    """log2 of the largest word of each product, from the bounds that any users keep."""
    c, w = given.constants, given.widths
    form, square = c.norm / c.ridge, c.norm**2 / c.ridge
    predicted = c.norm * c.reward * math.sqrt(given.steps / c.ridge)
    pulled = square * c.reward * math.sqrt(given.steps / c.ridge) + form * c.reward
    beta = max(c.beta(t) for t in {1, 2, 3, given.steps})
    bounds = {
        "A x": (form, w.inverse + FEATURES),
        "<x, w>": (predicted, 28 + FEATURES),
        "x'A x": (square + c.slack(1), w.square),
        "4^e x'A x": (math.ldexp(w.levels.top, -w.levels.scale), w.square),
        "tau": (c.trace + square, w.square),
        "root": (math.sqrt(square + c.slack(1)), w.levels.root_scale),
        "index": (predicted + beta * (math.sqrt(square + c.slack(1)) + 1), w.score),
        "u u'": (form**2, 2 * w.update),
        "u surprise": (pulled, w.update + w.surprise),
        "h u u'": (form**2, w.squares + START_BITS),
        "h u surprise": (pulled, w.gains + START_BITS),
        "h q": (2.0, 36 + START_BITS),
    }
    return {name: math.log2(bound) + bits for name, (bound, bits) in bounds.items()}


@given(
    dim=st.integers(1, 30), norm=st.floats(0.01, 50), ridge=st.floats(0.01, 100), trace=st.floats(0.01, 50),
    reward=st.floats(0.1, 100), arms=st.integers(1, 40), steps=st.integers(1, 20_000), batches=st.sampled_from(Batches),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_a_run_fits_or_is_refused(
    dim: int, norm: float, ridge: float, trace: float, reward: float, arms: int, steps: int, batches: Batches
) -> None:
    try:
        made = Settings(Constants(dim, norm, ridge, trace, reward=reward), arms, steps, batches)
    except MaskedError:
        return
    words = worst_words(made)
    assert max(words.values()) < 62.0, words
    assert made.widths.score_bits + max(1, (arms - 1).bit_length()) + 2 <= 64
    assert made.widths.score >= made.widths.levels.root_scale + 8
    scales = made.widths.square, 2 * made.widths.update, made.widths.update + made.widths.surprise
    assert max(*scales, made.widths.squares + START_BITS, made.widths.gains + START_BITS) <= VALUE_BITS
    assert Settings.from_json(made.as_json()) == made


@pytest.mark.parametrize(
    ("dim", "arms", "steps", "norm"), [(2, 2, 130, 5.5), (5, 20, 2000, 1.0), (20, 10, 2000, 1.0), (2, 2, 10_000, 5.5)]
)
def test_the_runs_of_the_paper_and_the_long_ones_fit(dim: int, arms: int, steps: int, norm: float) -> None:
    for batches in Batches:
        made = Settings(Constants(dim, norm), arms, steps, batches)
        assert made.widths.inverse >= 38 and made.widths.levels.root_bits >= 25


@pytest.mark.parametrize(
    ("constants", "arms", "steps", "words"),
    [
        (Constants(dim=20), 10, 10_000, "needs an inverse to 3.3e-10, and words of 64 bits hold it to 5.8e-10"),
        (Constants(norm=1000.0), 2, 130, "scale the features"),
        (Constants(trace=1e6), 2, 130, "a trace of 1e\\+06 and features up to 5.5 do not fit a word"),
        (Constants(reward=1e6), 2, 130, "play fewer steps"),
        (
            Constants(dim=1, norm=1.0, ridge=1000.0, reward=1e6),
            2,
            130,
            "rewards up to 1e\\+06 over 130 steps leave too",
        ),
        (Constants(dim=1, norm=1.0, ridge=100.0, reward=1e5), 2, 100, "rewards up to 100000 over 100 steps leave too"),
        (Constants(reward=1e-5), 2, 130, "rewards up to 1e-05 are rounded to 9.5e-07"),
        (Constants(), 2, 2.5, "steps is a whole number, not 2.5"),
        (Constants(), np.nan, 10, "arms is a whole number, not nan"),
        (Constants(), 2, 0, "at least 1 of each"),
        (Constants(), 0, 10, "at least 1 of each"),
    ],
)
def test_what_does_not_fit_is_refused(constants: Constants, arms: int, steps: int, words: str) -> None:
    with pytest.raises((RangeError, ConfigError), match=words):
        Settings(constants, arms, steps)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("features", 4.0, "step 3, arm 1: features longer than L = 5.5"),
        ("features", math.nan, "step 3, arm 1: features longer than L = 5.5"),
        ("rewards", 3.1, "step 3, arm 1: a reward beyond R = 3"),
        ("rewards", math.nan, "step 3, arm 1: a reward beyond R = 3"),
    ],
)
def test_a_user_keeps_the_bounds(name: str, value: float, words: str) -> None:
    problem = fresh(Constants(), 5, 0)
    getattr(problem, name)[3, 1] = value
    with pytest.raises(RangeError, match=words) as refused:
        Encrypted(Settings(Constants(), 2, 5), 2, problem=problem)
    assert str(value) not in str(refused.value) or np.isnan(value)


@pytest.mark.parametrize("batches", ["hidden", 1, None])
def test_batches_are_of_a_kind(batches: Any) -> None:
    with pytest.raises(ConfigError, match=r"batches are one of Batches\.PUBLIC, Batches\.HIDDEN, Batches\.NONE, not"):
        Settings(Constants(), 2, 5, batches)


def test_numbers_of_numpy_are_numbers() -> None:
    own = Settings(Constants(dim=3, norm=1.0), 5, 100)
    made = Settings(Constants(dim=np.int64(3), norm=np.float32(1)), np.int64(5), np.int32(100))  # type: ignore[arg-type]
    assert (made.digest, made) == (own.digest, own)
    with pytest.raises(HelbaError, match=r"a whole number of dimensions, not 2\.5"):
        Constants(dim=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(5, 1), (3, 2), (5,), (3, 1)])
def test_a_problem_has_a_reward_for_each_arm_and_step(shape: tuple[int, ...]) -> None:
    with pytest.raises(HelbaError, match="means and rewards of shape"):
        Problem(np.zeros((5, 2, 2)), np.zeros((5, 2)), np.zeros(shape))


@pytest.mark.parametrize(("dim", "arms", "steps"), [(2, 2, 4), (2, 2, 6), (2, 3, 5), (3, 2, 5)])
def test_a_problem_is_of_its_settings(dim: int, arms: int, steps: int) -> None:
    problem = fresh(Constants(dim=dim), steps, 0, arms=arms)
    with pytest.raises(ConfigError, match=f"a problem of {steps} steps, {arms} arms and {dim} dimensions, and"):
        Encrypted(Settings(Constants(), 2, 5), 2, problem=problem)


@pytest.mark.parametrize("paid", [3.1, -3.1, math.nan])
def test_what_the_world_pays_keeps_the_bound(paid: float) -> None:
    world = World()
    world.told.append(np.array(paid))
    program = user(fresh(Constants(), 5, 0).features, None, Settings(Constants(), 2, 5), MemoryDesk(world))
    next(program)
    assert isinstance(program.send(None), Receive)
    with pytest.raises(RangeError, match="step 0: a reward beyond R = 3"):
        program.send(np.array(1))

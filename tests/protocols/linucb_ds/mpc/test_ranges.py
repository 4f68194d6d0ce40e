"""Nothing wraps silently: settings that could are refused with a cure, and words stay within what is stated."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bandits.coins import Noise
from bandits.fixed_point import Scales
from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc import ConfigError, RangeError
from mpc.errors import MaskedError
from mpc.ring import VALUE_BITS
from protocols.linucb_ds.mpc.clients import owner
from protocols.linucb_ds.mpc.ranges import largest_noise, widest_surprise
from protocols.linucb_ds.mpc.settings import Settings, _gamma_with_room, fitting_scales, prior_norm

from .runs import clear, followed, normal, of, spectral, state_of

REFUSED: list[tuple[str, LinearProblem, int, dict[str, Any], type[MaskedError], str]] = [
    ("no pull", normal(3, 4), 0, {}, ConfigError, "at least 1 pull, not 0"),
    ("a negative budget", normal(3, 4), -5, {"hide": True}, ConfigError, "at least 1 pull, not -5"),
    ("a huge budget", normal(3, 4), 1 << 40, {}, RangeError, "use a smaller budget"),
    ("huge noise", normal(3, 4, noise=1e12), 10, {}, RangeError, "use a smaller budget, noise"),
    ("tiny arms", of(1e-30 * np.eye(3), np.ones(3)), 10, {}, RangeError, "scale the arms"),
    ("huge theta", of(np.eye(3), np.full(3, 1e30)), 10, {}, RangeError, "or scale the arms"),
    ("too many fraction bits", normal(3, 4), 10, {"scales": Scales(30, 30, 30)}, RangeError, "use fewer fraction bits"),
    ("long arms, hidden", normal(4, 6, size=40.0), 100, {"hide": True}, RangeError, "a larger gamma"),
    ("long arms, long run, hidden", normal(4, 6, size=8.0), 30_000, {"hide": True}, RangeError, "smaller budget"),
    ("short arms, hidden", normal(4, 6, size=1e-5), 20, {"hide": True}, RangeError, "multiply the arms by a constant"),
    ("arms of length 0, hidden", of(np.zeros((1, 2)), [1.0, 1.0]), 9, {"hide": True}, RangeError, "all arms are 0"),
]


@pytest.mark.parametrize(
    ("problem", "budget", "changes", "kind", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_cure(
    problem: LinearProblem, budget: int, changes: dict[str, Any], kind: type[MaskedError], said: str
) -> None:
    with pytest.raises(kind, match=said) as refused:
        Settings.of(problem, budget, **changes)
    assert "\n" not in str(refused.value)


def test_where_what_surprises_is_the_limit_words_are_filled_to_the_last_bit() -> None:
    """(gamma, |theta|) for which a product of a hidden arm and an estimate has no bit to spare."""
    problem = normal(3, 4)
    for gamma, norm, budget in ((0.01, 1.0, 10), (1e-4, 8.0, 10), (1e-4, 1.0, 1000)):
        exploration = replace(problem.exploration, gamma=gamma, theta_norm=norm)
        scales = fitting_scales(problem.arms, exploration, budget, Noise.SIGN)
        longest = np.linalg.norm(problem.arms, axis=1).max() / math.sqrt(gamma)
        widest = widest_surprise(longest, prior_norm(exploration, 3), largest_noise(1.0, signs=True), budget)
        assert scales.arm + scales.theta + math.ceil(math.log2(2.0 * widest)) == VALUE_BITS


def test_twelve_fraction_bits_are_the_fewest() -> None:
    problem = normal(3, 4)
    for norm, fits in ((2.0**26, True), (2.0**27, False)):
        exploration = replace(problem.exploration, theta_norm=norm)
        with nullcontext() if fits else pytest.raises(RangeError, match="leave too few fraction bits of a word"):
            fitting_scales(problem.arms, exploration, 100, Noise.SIGN)


@pytest.mark.parametrize("hide", [False, True])
def test_arms_that_rounding_makes_equal_are_refused(hide: bool) -> None:
    with pytest.raises(ConfigError, match=r"are the same at .* fraction bits"):
        Settings.of(of([[1.0, 0.0], [1.0, 1e-13]], [1.0, 1.0]), 10, hide=hide)


def test_an_owner_that_breaks_its_bound_is_refused_there() -> None:
    settings = Settings.of(normal(3, 4), 10)
    for theta in (np.full(3, settings.exploration.theta_norm), np.ones(4)):
        with pytest.raises(RangeError, match="declare a larger theta_norm"):
            next(owner(theta, settings))


def test_settings_travel_as_they_are() -> None:
    for problem in (normal(3, 4), spectral(6)):
        settings = Settings.of(problem, 10, hide=True, noise=Noise.NORMAL)
        again = Settings.from_json(json.loads(json.dumps(settings.as_json())))
        assert again.digest == settings.digest
        assert (again.arms == settings.arms).all() and again.exploration == settings.exploration
        assert again.digest != Settings.of(problem, 11, hide=True, noise=Noise.NORMAL).digest


@hypothesis_settings(max_examples=12)
@given(
    st.integers(1, 4), st.integers(1, 6), st.floats(-4.0, 4.0), st.floats(-3.0, 1.0), st.integers(0, 1000),
    st.sampled_from(Noise),
)  # fmt: skip
def test_whatever_is_accepted_stays_within_its_precision(
    dim: int, arms: int, log_gamma: float, log_noise: float, seed: int, noise: Noise
) -> None:
    """Hidden arms over 25 pulls: what would wrap anywhere would be far off."""
    try:
        run = followed(
            normal(dim, arms, seed=seed, gamma=2.0**log_gamma, noise=10.0**log_noise), 25, seed=seed, noise=noise
        )
    except RangeError:
        return
    assert run.error < run.run.settings.ranges.precision


def test_estimates_keep_their_bound() -> None:
    """One arm with much noise."""
    problem = of([[1.0]], [1.0], noise=20.0)
    settings = Settings.of(problem, 40, hide=True)
    run = followed(problem, 40)
    assert np.abs(clear(state_of(run).estimates)).max() <= settings.ranges.estimate
    assert np.abs(clear(state_of(run).gram)).max() < 1.0


def test_a_long_run_of_one_arm_keeps_its_digits() -> None:
    """400 pulls take C down to 1 / 401 and its root's reciprocal up to 20."""
    run = followed(of([[1.0], [-0.999]], [1.0]), 400)
    assert run.error < run.run.settings.ranges.precision < 1e-3
    assert clear(state_of(run).roots).max() > 19


@pytest.mark.parametrize("least", [1.5, 3.0, 5.0, 9.0])
def test_the_gamma_that_is_named_is_the_first_doubled_one_that_holds(least: float) -> None:
    """Of 2, 4, 8, ... times the given one."""

    def made(exploration: Any) -> None:
        if exploration.gamma < 0.25 * least:
            raise RangeError("too small")

    named = _gamma_with_room(Confidence(gamma=0.25), made)
    assert named == 0.25 * 2.0 ** math.ceil(math.log2(least))


@pytest.mark.parametrize(
    ("exploration", "exact"),
    [
        (Confidence(gamma=4.0, theta_norm=3.0), 6.0),
        (SpectralConfidence((0.0, 1.0), gamma=4.0, theta_norm=3.0, smoothness=8.0), 10.0),
    ],
)
def test_the_bound_of_the_prior_is_close_above_it(exploration: Any, exact: float) -> None:
    assert exact < prior_norm(exploration, 2) < 1.01 * exact

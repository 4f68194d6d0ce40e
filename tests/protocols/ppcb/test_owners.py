"""Blocks of any width, none at all among them, and rewards that are real numbers of a declared range."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import Environment
from mpc import RangeError
from protocols.ppcb.clients import payer
from protocols.ppcb.player import feature_blocks
from protocols.ppcb.report import text
from protocols.ppcb.settings import Policy, Settings, Variant
from protocols.run.desk import MemoryDesk, World

from .runs import ENVIRONMENT, error, finished, launch, name_of, played, settings, shortfalls, smallest_eigenvalue

CLOSE = 2.0**-12
WIDTHS = [(8, 0), (0, 8), (7, 1), (0, 8, 0), (5, 0, 3), (1, 1, 6), (0, 0, 3, 5, 0)]


def real_rewards(low: float, high: float) -> Environment:
    """Every arm pays a number between the two, on a line through the context."""
    return Environment("real", ENVIRONMENT.contexts, low + (high - low) * ENVIRONMENT.chances, drawn=False)


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_blocks_have_the_widths_that_were_declared(widths: tuple[int, ...]) -> None:
    blocks = feature_blocks(8, len(widths), widths)
    assert [part.stop - part.start for part in blocks] == list(widths)
    assert np.concatenate([np.arange(8)[part] for part in blocks]).tolist() == list(range(8))
    given = settings(owners=len(widths), widths=widths)
    assert given.norm == math.sqrt(sum(width > 0 for width in widths))


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_a_run_with_such_blocks_is_its_twins(widths: tuple[int, ...]) -> None:
    simulation = finished(settings(owners=len(widths), widths=widths), len(widths), 30)
    assert shortfalls(simulation).max() < CLOSE
    assert error(simulation) < 1e-4
    assert simulation.result().cost.rounds == 30 * 12


@pytest.mark.parametrize("variant", Variant)
def test_a_party_without_features_computes_in_a_process_of_its_own(variant: Variant, tmp_path: Path) -> None:
    given = settings(owners=2, widths=(8, 0), variant=variant)
    run = launch(given, 2, 5, tmp_path)
    assert run.differences == () and len(run.arms) == 5
    assert "each had its own features, if any, as input" in text(run)


@pytest.mark.parametrize("spread", [(-1.0, 1.0), (0.0, 40.0), (-7.0, -3.0), (0.0, 0.25)], ids=str)
@pytest.mark.parametrize(
    "changes",
    [{}, {"batch": 3}, {"refresh": 10}, {"delay": 2}, {"policy": Policy.LINUCB}, {"variant": Variant.PUBLISHED}],
    ids=name_of,
)
def test_real_rewards_are_learned_from(spread: tuple[float, float], changes: dict[str, Any]) -> None:
    parties = 2 + len(changes)
    given = settings(reward_range=spread, steps=4096, **changes)
    simulation = finished(given, parties, 30, real_rewards(*spread))
    assert simulation.world.rewards.std() > 0
    root = 2e-3 if given.policy is Policy.LINUCB else 0.0
    assert shortfalls(simulation).max() < max(1.0, given.reward) * CLOSE + root
    if given.variant is Variant.RECAST:
        assert error(simulation) < max(1.0, given.reward) * 1e-4
        assert smallest_eigenvalue(simulation.result()) > 0


def test_larger_rewards_take_more_bits_of_a_prediction() -> None:
    plain = Settings(arms=4, dim=8).value_bits
    assert Settings(arms=4, dim=8, reward_range=(-1.0, 1.0)).value_bits == plain
    assert Settings(arms=4, dim=8, reward_range=(0.0, 8.0)).value_bits == plain + 3


def test_predictions_as_large_as_rewards_allow_do_not_wrap() -> None:
    """Contexts of norm 1/10 that pay -50: a unit context is predicted far beyond any reward, within its range."""
    contexts = np.zeros((101, 8))
    contexts[:100, 0], contexts[100, 0] = 0.1, 1.0
    given = settings(arms=2, reward_range=(-50.0, 50.0), eps=0.0, replicas=1, steps=101)
    rewards = np.full((101, 2), -50.0)
    rewards[:, 1] = 50.0
    simulation = finished(given, 2, 101, Environment("given", contexts, rewards, drawn=False))
    weights = simulation.result().regressions[0, :, -1]
    assert np.abs(weights).max() > 150.0
    assert error(simulation) < 50 * 1e-3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"widths": (4, 4)}, "blocks of 4, 4 features, for 3 owners of 8: name a number for each owner"),
        ({"widths": (4, 4, 1)}, "blocks of 4, 4, 1 features, .* which add up to 8"),
        ({"widths": (9, 0, -1)}, "0 where it has none"),
        ({"reward_range": (1.0, 1.0)}, "rewards lie between two numbers, the lower first, not between 1 and 1"),
        ({"reward_range": (0.0, math.inf)}, "not between 0 and inf"),
        ({"reward_range": (math.nan, 1.0)}, "not between nan and 1"),
        ({"reward_range": (0.0, 1e9)}, "bits of 62"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RangeError, match=words):
        settings(owners=3, **changes)


def test_a_reward_outside_the_declared_range_is_refused_before_the_run_and_by_the_payer() -> None:
    with pytest.raises(RangeError, match=r"a reward is -1, declared is 0 to 1: scale rewards, or declare more"):
        played(settings(), 2, 3, Environment("given", ENVIRONMENT.contexts, -np.ones((400, 4)), drawn=False))
    for wrong in (1.5, math.nan):
        client = payer(np.full((1, 3, 1, 4), wrong), settings(), 1, MemoryDesk(World()))
        with pytest.raises(RangeError, match=r"declared is 0 to 1"):
            next(client)

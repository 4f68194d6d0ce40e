"""The regressions behind the shares are the exact ones: one by one, in blocks, late, and after a refresh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import settings as runs
from hypothesis import strategies as st

from bandits.environments import unit_rows
from bandits.linear import LinearBandit
from mpc import ConfigError
from protocols.ppcb.player import Owners
from protocols.ppcb.refresh import refresh
from protocols.ppcb.settings import Division, Variant

from .runs import Parts, error, exact, finished, name_of, regressions_of, settings, smallest_eigenvalue

REFINED = Division.TABLE_NEWTON


@pytest.mark.parametrize(
    ("changes", "largest", "parties"),
    [
        ({}, 1e-4, 2),
        ({}, 1e-4, 5),
        ({"division": REFINED}, 1e-4, 3),
        ({"state_bits": 28}, 2e-5, 5),
        ({"state_bits": 28, "division": REFINED, "refresh": 40, "steps": 4000}, 4e-6, 2),
        ({"state_bits": 28, "division": REFINED, "refresh": 40, "steps": 4000}, 4e-6, 5),
        ({"batch": 4}, 1e-4, 2),
        ({"batch": 4}, 1e-4, 5),
        ({"batch": 4, "state_bits": 28}, 2e-5, 3),
        ({"delay": 3}, 1e-4, 3),
        ({"batch": 4, "delay": 2, "refresh": 10}, 4e-6, 3),
        ({"batch": 4, "delay": 2, "refresh": 10}, 4e-6, 5),
    ],
    ids=lambda value: name_of(value) if isinstance(value, dict) else str(value),
)
def test_the_state_is_the_exact_inverse(changes: dict[str, Any], largest: float, parties: int) -> None:
    """After 80 contexts of each replica; late rewards and blocks end where updates one by one end."""
    simulation = finished(settings(**changes), parties, 80)
    assert error(simulation) < largest
    assert smallest_eigenvalue(simulation.result()) > 0.02


def test_newton_mends_a_coarse_table_and_a_refresh_mends_more() -> None:
    """Eight lines for the reciprocal: the table's error shows, is squared, and is taken away."""
    coarse, mended, refreshed = (
        error(finished(settings(segments=3, **more), 2, 120))
        for more in ({}, {"division": REFINED}, {"division": REFINED, "refresh": 120})
    )
    assert 1e-2 > coarse > 10 * mended and mended > 20 * refreshed


def test_late_rewards_of_the_last_steps_are_not_learned_from() -> None:
    simulation = finished(settings(delay=5), 2, 5)
    start = np.concatenate([np.eye(8), np.zeros((1, 8))])
    assert (simulation.result().regressions == start).all()
    simulation = finished(settings(delay=5), 2, 6)
    assert error(simulation) < 1e-5 and (simulation.result().regressions != start).any()


CONTEXTS = np.concatenate(
    [
        unit_rows(np.random.default_rng(3).normal(size=(5, 4))),
        np.zeros((1, 4)),
        [[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [1e-3, 0.0, 0.0, 0.0]],
    ]
)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two replicas of B contexts out of a few, so that many are the same, with arms that collide."""
    batch = draw(st.integers(1, 7))
    each = st.lists(st.integers(0, len(CONTEXTS) - 1), min_size=2 * batch, max_size=2 * batch)
    arms = st.lists(st.integers(0, 2), min_size=2 * batch, max_size=2 * batch)
    paid = st.lists(st.sampled_from([0.0, 1.0, 0.37]), min_size=2 * batch, max_size=2 * batch)
    x = CONTEXTS[np.array(draw(each))].reshape(2, batch, 4)
    return x, np.array(draw(arms)).reshape(2, batch), np.array(draw(paid)).reshape(2, batch)


@runs(max_examples=40)
@over(blocks(), st.sampled_from([20, 26]), st.sampled_from([2, 3, 5]))
def test_a_block_is_its_updates_one_by_one(
    block: tuple[np.ndarray, np.ndarray, np.ndarray], bits: int, count: int
) -> None:
    """From a state that has learned something, and once more from where the first block led."""
    x, arms, rewards = block
    given = settings(arms=3, dim=4, replicas=2, batch=x.shape[1], state_bits=bits)
    clear = LinearBandit(2, 3, 4)
    rng = np.random.default_rng(1)
    clear.update(
        unit_rows(rng.normal(size=(2 * 6, 4))).reshape(2, 6, 4), rng.integers(0, 3, (2, 6)), rng.random((2, 6))
    )
    secret = Parts(count, given, start=clear)
    for _ in range(2):
        clear.update(x, arms, rewards)
        secret.learn(x, arms, rewards)
        assert np.abs(secret.table - regressions_of(clear)).max() < 3e-5


def test_a_block_of_one_context_over_and_over(parties: int) -> None:
    """The kernel is a matrix of ones: I + K has its largest eigenvalue, 1 + B."""
    x = np.broadcast_to(unit_rows(np.ones((1, 8))), (1, 16, 8))
    arms, rewards = np.zeros((1, 16), int), np.ones((1, 16))
    clear = LinearBandit(1, 4, 8)
    clear.update(x, arms, rewards)
    secret = Parts(parties, settings(batch=16, replicas=1))
    secret.learn(x, arms, rewards)
    assert np.abs(secret.table - regressions_of(clear)).max() < 3e-5


@pytest.mark.parametrize("bits", [20, 28])
def test_a_refresh_brings_a_perturbed_state_back(bits: int, parties: int) -> None:
    """Noise of 1e-3 on every entry of P and w is gone after two iterations, up to rounding."""
    simulation = finished(settings(refresh=1000, state_bits=bits, steps=4000), parties, 60)
    player, wanted = simulation.player, regressions_of(exact(simulation))
    noise = np.random.default_rng(2).normal(scale=1e-3, size=wanted.shape)
    player.held.table = player.held.table + player.session.share(noise, owner=1, scale=bits)
    assert error(simulation) > 2e-3
    rounds = player.session.meter.total.rounds
    player.refresh()
    assert player.session.meter.total.rounds - rounds == 1 + 4 * 2
    assert error(simulation) < 1e-5
    assert np.abs(simulation.result().regressions - wanted).max() < 1e-5


def test_each_iteration_of_a_refresh_squares_the_error() -> None:
    simulation = finished(settings(refresh=1000, state_bits=28, steps=4000), 2, 60)
    player, before = simulation.player, []
    noise = np.random.default_rng(2).normal(scale=1e-3, size=(3, 4, 9, 8))
    player.held.table = player.held.table + player.session.share(noise, scale=28)
    for _ in range(3):
        before.append(error(simulation))
        player.session.run(refresh(player.session, player.held, player.settings, iterations=1))
    assert before[1] < 0.2 * before[0] and before[2] < 0.02 * before[1]


def test_a_run_that_keeps_no_sums_cannot_refresh() -> None:
    with pytest.raises(ConfigError, match="set `refresh` when it starts"):
        finished(settings(), 2, 1).player.refresh()
    published = finished(settings(variant=Variant.PUBLISHED), 2, 1)
    assert isinstance(published.player, Owners)
    with pytest.raises(ConfigError, match="published variant keeps no sums"):
        published.player.refresh()

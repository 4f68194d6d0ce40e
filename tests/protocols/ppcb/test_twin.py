"""The private bandit pulls the arms of its plaintext twin, in as many rounds as it says, whatever it is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandits.data import load
from bandits.environments import synthetic_linear
from bandits.linucb import LinUCB
from mpc.ops import inverse_steps
from protocols.ppcb.settings import Argmax, Division, Policy, Settings, Variant

from .runs import ENVIRONMENT, Simulation, error, finished, name_of, played, settings, shortfalls, smallest_eigenvalue

STEPS = 40
CLOSE = 2.0**-12  # what the scores of 20 bits can tell apart
ROOT = 1e-3  # the error of a root, times alpha, for each of the two scores that are compared
LINUCB, THOMPSON = Policy.LINUCB, Policy.THOMPSON
NEWTON, REFINED = Division.NEWTON, Division.TABLE_NEWTON
PAIRS, STRINGS, CIRCUIT, TOURNAMENT = Argmax


def iterations(batch: int, owners: int) -> int:
    """k of the block update, for eigenvalues from 1 to c = 1 + B norm^2 / ridge, with ridge and bound 1."""
    return len(inverse_steps(20, 1.0 - 2.0**-6, 1.0 + batch * owners + 2.0**-6).factors)


GREEDY: list[tuple[dict[str, Any], float]] = [  # changes, and rounds a decision without those of a block's inverse
    ({}, 12),
    ({"division": REFINED}, 17),
    ({"division": REFINED, "newton": 2}, 21),
    ({"division": NEWTON}, 69),
    ({"argmax": CIRCUIT}, 17),
    ({"argmax": TOURNAMENT}, 18),
    ({"delay": 1}, 9),
    ({"delay": 4, "division": REFINED}, 14),
    ({"refresh": 20}, 12 + 9 / 20),
    ({"refresh": 7, "delay": 2}, 9 + 9 * (STEPS // 7) / STEPS),
    ({"batch": 2}, 15),
    ({"batch": 5, "delay": 2}, 12),
    ({"batch": 3, "delay": 1, "refresh": 10}, 12 + 9 / 10),
    ({"batch": 4, "argmax": TOURNAMENT, "refresh": 5}, 21 + 9 / 5),
    ({"state_bits": 28}, 13),
    ({"state_bits": 28, "division": REFINED}, 17),
    ({"fraction_bits": 16, "state_bits": 24}, 12),
    ({"ridge": 0.25, "bound": 1.5, "refresh": 0}, 13),
    ({"eps": 0.0}, 12),
    ({"eps": 1.0}, 12),
    ({"argmax": STRINGS}, 11),
]
OPTIMISTIC: list[tuple[dict[str, Any], float]] = [
    ({"policy": LINUCB}, 20),
    ({"policy": LINUCB, "alpha": 0.3, "eps": 0.0}, 20),
    ({"policy": LINUCB, "argmax": TOURNAMENT, "division": REFINED}, 31),
    ({"policy": LINUCB, "delay": 2}, 13),
    ({"policy": LINUCB, "batch": 3, "delay": 1, "refresh": 10}, 12 + 9 / 10),
    ({"policy": LINUCB, "ridge": 0.5, "bound": 2.0, "alpha": 2.0}, 21),
    ({"policy": THOMPSON}, 21),
    ({"policy": THOMPSON, "eps": 0.0, "alpha": 0.5}, 21),
    ({"policy": THOMPSON, "batch": 4}, 24),
    ({"policy": THOMPSON, "delay": 3, "state_bits": 24}, 14),
]


def spread(table: list[tuple[dict[str, Any], float]]) -> list[Any]:
    """The number of parties goes round: 2, 3, 5."""
    return [
        pytest.param(changes, rounds, (2, 3, 5)[i % 3], id=f"{name_of(changes)}-N{(2, 3, 5)[i % 3]}")
        for i, (changes, rounds) in enumerate(table)
    ]


def checked(simulation: Simulation, rounds: float, apart: float) -> None:
    run, decisions, batch = simulation.result(), simulation.decisions, simulation.settings.batch
    rounds += 2 * iterations(batch, simulation.parties) if batch > 1 else 0
    assert run.cost.rounds / decisions == pytest.approx(rounds, abs=1e-9)
    assert run.cost.client_hops == 2 * decisions
    assert shortfalls(simulation).max() < apart
    assert all(difference.gap < apart for difference in run.differences)
    assert error(simulation) < 1e-3 and smallest_eigenvalue(run) > 0


@pytest.mark.parametrize(("changes", "rounds", "count"), spread(GREEDY))
def test_a_greedy_run_is_its_twins(changes: dict[str, Any], rounds: float, count: int) -> None:
    """Same arms; where not, the two best scores were close, but no tie: ties are broken by the same coins."""
    given = settings(**changes)
    simulation = finished(given, count, STEPS * given.batch)
    checked(simulation, rounds, CLOSE)
    assert all(difference.gap > 0 for difference in simulation.result().differences)


@pytest.mark.parametrize(("changes", "rounds", "count"), spread(OPTIMISTIC))
def test_an_optimistic_run_is_its_twins(changes: dict[str, Any], rounds: float, count: int) -> None:
    """Arms that nobody has pulled tie in the clear; the root's rounding decides between them."""
    given = settings(**changes)
    checked(finished(given, count, 30 * given.batch), rounds, 2 * ROOT * given.alpha)


@pytest.mark.parametrize(
    "changes", [{}, {"policy": LINUCB}, {"policy": THOMPSON}, {"batch": 3, "delay": 1}], ids=name_of
)
def test_any_number_of_parties_plays_it(changes: dict[str, Any], parties: int) -> None:
    given = settings(**changes)
    simulation = finished(given, parties, 24)
    assert shortfalls(simulation).max() < (CLOSE if given.policy is Policy.EPSILON_GREEDY else 2 * ROOT)
    assert error(simulation) < 1e-4


def test_it_earns_more_than_chance(parties: int) -> None:
    run = played(settings(), parties, 240)
    assert run.differences == () and (run.rewards == run.twin_rewards).all()
    assert run.rewards[120:].mean() > ENVIRONMENT.chances.mean() + 0.02


@pytest.mark.parametrize("change", [{"alpha": 1.2}, {"ridge": 1.3}], ids=name_of)
def test_the_oracle_tells_policies_apart(change: dict[str, float]) -> None:
    """The follower of a run sees a slightly different policy."""
    simulation = finished(settings(policy=LINUCB), 2, 120)
    other = LinUCB(3, 4, 8, **change)
    assert shortfalls(simulation).max() < 2 * ROOT < shortfalls(simulation, other).max()


@pytest.mark.parametrize(
    ("arms", "changes", "rounds"),
    [(10, {}, 12), (10, {"delay": 1}, 9), (10, {"division": REFINED}, 17), (100, {}, 12), (100, {"delay": 1}, 9)],
    ids=str,
)
def test_rounds_and_hops_do_not_depend_on_arms_or_parties(
    arms: int, changes: dict[str, Any], rounds: int, parties: int
) -> None:
    run = played(Settings(arms=arms, dim=20, **changes), parties, 1, synthetic_linear(arms, 20, rows=50), 1)
    assert (run.cost.rounds, run.cost.client_hops) == (rounds, 2)
    if arms == 10 and not changes:
        assert run.cost.opened_bytes <= 60_000


@pytest.mark.parametrize(
    ("changes", "rounds"),
    [
        ({}, 14),  # a round to bring the reciprocal down to the room there is, and one for scores with room for keys
        ({"division": REFINED}, 18),
        ({"policy": LINUCB, "division": REFINED}, 26),
    ],
    ids=["table", "newton", "linucb"],
)
@pytest.mark.parametrize("tie_bits", [0, 8])
def test_a_finer_state_makes_room_in_a_round_more(changes: dict[str, Any], rounds: int, tie_bits: int) -> None:
    """Ten arms at 29 bits: scores are truncated before they become keys, where the order of ties lies below them."""
    given = Settings(arms=10, dim=20, state_bits=29, tie_bits=tie_bits, **changes)
    assert given.raw_scores_fit is (tie_bits > 0)
    rounds -= given.raw_scores_fit
    assert played(given, 2, 2, synthetic_linear(10, 20, rows=50), 1).cost.rounds == 2 * rounds


@pytest.mark.parametrize(("batch", "rounds"), [(2, (25, 25, 25)), (5, (25, 27, 27)), (32, (29, 29, 29))])
def test_a_batch_costs_rounds_by_its_logarithm(batch: int, rounds: tuple[int, ...], parties: int) -> None:
    run = played(settings(batch=batch, replicas=1), parties, 2 * batch)
    assert run.cost.rounds == 2 * rounds[(2, 3, 5).index(parties)]
    assert run.cost.client_hops == 4


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(("bits", "apart", "steps"), [(20, 2.0**-12, 100), (28, 2.0**-15, 60)])
def test_digits_with_twenty_seeds(bits: int, apart: float, steps: int) -> None:
    """Seeds 1 to 20 side by side: the twin's arms, or scores too close for the state's bits."""
    given = Settings(arms=10, dim=20, replicas=20, state_bits=bits, division=REFINED)
    run = played(given, 2, steps, load("digits", arms=10), 1)
    assert all(0 < difference.gap < apart for difference in run.differences)
    same = np.setdiff1d(np.arange(20), [difference.replica for difference in run.differences])
    assert len(same) >= 15
    assert (run.rewards[:, same] == run.twin_rewards[:, same]).all()
    assert run.cost.rounds == steps * 17


def test_exploring_always_is_uniform() -> None:
    """Chi-square by hand: 600 pulls of 4 arms, each within 4 standard deviations."""
    run = played(settings(eps=1.0), 2, 200)
    assert run.differences == ()
    assert np.abs(np.bincount(run.arms.reshape(-1), minlength=4) - 150).max() < 4 * math.sqrt(600 * 3 / 16)


@pytest.mark.parametrize("changes", [{}, {"policy": LINUCB}, {"policy": THOMPSON}, {"batch": 2}, {"delay": 1},
                                     {"argmax": TOURNAMENT}, {"variant": Variant.PUBLISHED}], ids=name_of)  # fmt: skip
def test_one_arm_is_always_pulled(changes: dict[str, Any]) -> None:
    run = played(settings(arms=1, **changes), 2, 6, synthetic_linear(1, 8, rows=50), 1)
    assert (run.arms == 0).all() and run.differences == ()

"""The same pulls, the same (s_i, n_i) and the same sum as the plaintext policy with the same coins and rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bandits.samba.words import words
from mpc.errors import ConfigError
from mpc.prg import fresh_key
from protocols.samba.mpc.program import select
from protocols.samba.mpc.settings import MOST_PAIRS, Settings

from .runs import POLICIES, agrees, alike, played, rising, simulate, simulation


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("arms", "budget"), [(1, 5), (2, 40), (10, 60), (100, 115)])
def test_every_policy_and_size(policy: str, arms: int, budget: int) -> None:
    agrees(played(rising(arms), policy, budget))


@pytest.mark.parametrize("policy", POLICIES)
def test_fifty_seeds(policy: str) -> None:
    settings, runs = Settings(policy, 4, 16, hosts=2), []
    for seed in range(50):
        run = simulate(rising(4), settings, parties=2, seed=seed)
        agrees(run)
        runs.append(tuple(run.game.arms))
    assert len(set(runs)) > 25, "seeds give games of their own"


@pytest.mark.parametrize("policy", POLICIES)
def test_three_parties(policy: str) -> None:
    """In pairs and in a tournament, with owners in blocks of different sizes."""
    agrees(played(rising(7), policy, 40, parties=3, hosts=3))
    agrees(played(rising(MOST_PAIRS + 1), policy, MOST_PAIRS + 12, parties=3, hosts=2))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0], ids=["all zero", "equal", "all one"])
def test_ties(policy: str, mean: float) -> None:
    """Rewards that are all 0, or all 1, keep means equal from the first step to the last."""
    agrees(played(alike(5, mean), policy, 40))
    run = played(alike(40, mean), policy, 60)
    agrees(run)
    assert mean == 0.5 or run.total == 60 * mean


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("arms", [1, 2, 10, 100])
def test_a_budget_that_pulls_each_arm_once(policy: str, arms: int) -> None:
    run = played(rising(arms), policy, arms)
    agrees(run)
    assert run.game.pulls.tolist() == [1] * arms and run.cost.rounds == 0


@pytest.mark.parametrize(
    ("policy", "given"),
    [("epsilon-greedy", {"eps": 0.0}), ("epsilon-greedy", {"eps": 1.0}), ("softmax", {"tau": 0.02}),
     ("softmax", {"tau": 0.001}), ("softmax", {"tau": 100.0}), ("pursuit", {"beta": 0.2}), ("pursuit", {"beta": 0.0}),
     ("pursuit", {"beta": 1.0})],
)  # fmt: skip
def test_parameters(policy: str, given: dict[str, float]) -> None:
    """A step that explores is decided by the dealt order alone; a tau of 0.001 overflows nothing."""
    agrees(played(rising(6), policy, 80, **given))
    agrees(played(rising(40), policy, 60, **given))


@pytest.mark.parametrize("policy", POLICIES)
def test_other_masks_give_the_same_pulls(policy: str) -> None:
    """Coins stay, every mask of the dealer, of the owners and between the parties is another."""
    games = []
    for fresh in (False, True):
        own = simulation(policy, 6, 40)
        if fresh:
            own.dealer.keys = tuple(fresh_key() for _ in own.dealer.keys)
            own.dealer._own_key = fresh_key()
        while own.done < 40:
            own.turn()
        games.append(own.result().game)
    assert games[0].equals(games[1])


def test_hosts_change_nothing() -> None:
    for policy in ("thompson", "epsilon-greedy", "pursuit"):
        runs = [played(rising(10), policy, 50, hosts=hosts) for hosts in (1, 3, 10)]
        assert runs[0].game.equals(runs[1].game) and runs[0].game.equals(runs[2].game)
        assert [len(block) for block in runs[1].settings.blocks] == [4, 3, 3]


def test_a_different_reference_shows() -> None:
    run = played(rising(4), "ucb", 30)
    assert run.reference is not None
    pulled = run.reference.arms.copy()
    pulled[-1] = (pulled[-1] + 1) % 4
    assert not replace(run, reference=replace(run.reference, arms=pulled)).equal
    assert not replace(run, total=run.total + 1).equal
    assert replace(run, reference=None).equal is None


def test_scores_that_are_closer_than_32_bits_are_told_apart(reveal: Callable[..., Any]) -> None:
    """Two UCB scores may be 6e-10 apart: the larger one wins, whatever the dealt order says; equal ones tie."""
    settings = Settings("ucb", 2, 100_000)
    own = simulation("ucb", 2, 100_000)
    won, tied = set(), set()
    for step in range(12):
        own.dealer.enter(step)
        for scores, seen in (([0.5, 0.5 + 6e-10], won), ([0.5, 0.5], tied)):
            shared = own.session.share(words(np.array(scores), settings.fraction_bits(1)), scale=0)
            seen.add(tuple(reveal(own.session.run(select(own.session, shared, settings, 1)))))
    assert won == {(0, 1)} and tied == {(0, 1), (1, 0)}


def test_numbers_of_numpy_are_numbers() -> None:
    made, own = Settings("ucb", np.int64(4), np.int32(20), np.uint8(2)), Settings("ucb", 4, 20, 2)  # type: ignore[arg-type]
    assert made == own and made.digest == own.digest
    with pytest.raises(ConfigError, match=r"budget is a whole number, not 20\.0"):
        Settings("ucb", 4, 20.0)  # type: ignore[arg-type]

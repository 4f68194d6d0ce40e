"""HELBA as an object: the policy's arms, one call at a time, here and on a network."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest

from bandits.helba import HELBA, Batches, Constants, fresh, play
from mpc.client import ClientProgram
from mpc.errors import ConfigError, RangeError
from mpc.session import Session
from protocols.helba.clients import user
from protocols.helba.library import EncryptedLinearBandit
from protocols.helba.program import USER
from protocols.helba.settings import Settings
from protocols.run.desk import MemoryDesk, World

from ...parties.threads import over_tcp, side_by_side, values

GIVEN = Constants(growth=None)


@pytest.mark.parametrize("batches", Batches)
def test_the_policys_arms(batches: Batches) -> None:
    problem = fresh(GIVEN, 10, 4, arms=3)
    bandit = EncryptedLinearBandit(Settings(GIVEN, 3, 10, batches), parties=2)
    arms = []
    for features, rewards in zip(problem.features, problem.rewards):
        arm = bandit.predict(features)
        assert arm is not None
        bandit.learn(rewards[arm])
        arms.append(arm)
    assert arms == play(HELBA(GIVEN, batches), problem).arms.tolist()
    assert bandit.learned == 10 and bandit.cost.rounds > 160
    assert next(entry.what for entry in bandit.ledger) == "arm"
    with pytest.raises(RangeError, match="all 10 steps of this bandit are played"):
        bandit.predict(problem.features[0])


def test_threads_take_turns() -> None:
    """One that finds another's arm unpaid is told so, and what all learn is what one thread learns from the same."""
    problem, told = fresh(GIVEN, 6, 4), list[tuple[int, int]]()
    settings = Settings(GIVEN, 2, 6, Batches.NONE)
    bandit, alone = (EncryptedLinearBandit(settings, parties=2) for _ in range(2))

    def work(rows: range) -> None:
        for row in rows:
            arm = None
            while arm is None:
                with contextlib.suppress(ConfigError):
                    arm = bandit.predict(problem.features[row])
            told.append((row, arm))
            bandit.learn(problem.rewards[row, arm])

    usual = sys.getswitchinterval()
    sys.setswitchinterval(10e-6)
    try:
        values(side_by_side(*[lambda at=at: work(range(at, 6, 3)) for at in range(3)]))
    finally:
        sys.setswitchinterval(usual)
    assert bandit.learned == 6 and sorted(row for row, _ in told) == list(range(6))
    for row, arm in told:
        assert alone.predict(problem.features[row]) == arm
        alone.learn(problem.rewards[row, arm])
    assert bandit.cost.rounds == alone.cost.rounds


def test_calls_in_the_wrong_order_or_with_wrong_numbers_change_nothing() -> None:
    problem = fresh(GIVEN, 4, 4)
    bandit, other = (EncryptedLinearBandit(Settings(GIVEN, 2, 4), parties=2) for _ in range(2))
    for step in range(4):
        with pytest.raises(ConfigError, match="there is no arm to be paid for"):
            bandit.learn(0.5)
        with pytest.raises(RangeError, match=f"step {step}, arm 1: features longer than L = 5.5"):
            bandit.predict(problem.features[step] + [[0.0, 0.0], [5.6, 0.0]])
        with pytest.raises(ConfigError, match=r"features of shape \(2, 2\), a row an arm, are wanted, not \(3, 2\)"):
            bandit.predict(np.zeros((3, 2)))
        with pytest.raises(ConfigError, match="give the features here"):
            bandit.predict()
        arm = bandit.predict(problem.features[step])
        assert arm == other.predict(problem.features[step])
        with pytest.raises(ConfigError, match="not paid yet"):
            bandit.predict(problem.features[step])
        with pytest.raises(ConfigError, match="give the reward here"):
            bandit.learn()
        for bad in (3.5, float("nan")):
            with pytest.raises(RangeError, match="a reward beyond R = 3"):
                bandit.learn(bad)
        assert arm is not None
        for each in (bandit, other):
            each.learn(problem.rewards[step, arm])
    assert bandit.cost.rounds == other.cost.rounds and bandit.ledger.table() == other.ledger.table()


def test_ends_on_a_network() -> None:
    """Each party has one; the user is a process of its own."""
    problem = fresh(GIVEN, 6, 4)
    settings, world = Settings(GIVEN, 2, 6), World()

    def party(session: Session) -> tuple[int, int]:
        bandit = EncryptedLinearBandit(settings, session=session)
        for _ in range(6):
            assert bandit.predict() is None
            with pytest.raises(ConfigError, match="on a network its process sends them: leave out the reward here"):
                bandit.learn(0.5)
            bandit.learn()
        return bandit.learned, bandit.cost.rounds

    def users() -> ClientProgram:
        return user(problem.features, problem.rewards, settings, MemoryDesk(world))

    *parties, _ = over_tcp(2, party, clients={USER: users})
    assert all(outcome.error is None for outcome in parties), [outcome.error for outcome in parties]
    assert parties[0].value == parties[1].value and parties[0].value[0] == 6
    assert np.array(world.notes).tolist() == play(HELBA(GIVEN), problem).arms.tolist()

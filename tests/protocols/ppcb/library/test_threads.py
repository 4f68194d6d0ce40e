"""Threads that share a bandit: their calls take turns, in one process and at a party's end of a network."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.session import Session
from mpc.turns import Turn
from protocols.ppcb import PrivateContextualBandit, Say, payer_client, puller_client
from protocols.ppcb.player import split
from tests.parties.threads import over_tcp, side_by_side, values

from .runs import CLOSE, OUTCOMES, X, made, pay, regressions, taught

THREADS = 8


@pytest.fixture
def _switching() -> Iterator[None]:
    """Threads change places every 10 microseconds."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(10e-6)
    yield
    sys.setswitchinterval(usual)


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    return values(side_by_side(*[lambda at=at: work(at) for at in range(THREADS)]))


@pytest.mark.usefixtures("_switching")
def test_threads_learn_what_one_thread_learns() -> None:
    bandit, alone = made(), made()

    def work(at: int) -> list[tuple[int, int, int]]:
        done = []
        for row in range(at, 24, THREADS):
            told = bandit.predict(X[row])
            pay(bandit, told, row)
            done.append((told.decision_id, row, told.arm))
        return done

    numbers, rows, arms = np.array(sorted(one for done in in_threads(work) for one in done)).T
    assert numbers.tolist() == list(range(24)) and [entry.count for entry in bandit.ledger] == [24]
    assert bandit.learned == 24 and bandit.unpaid == ()
    alone.partial_fit(arms, OUTCOMES[rows, arms], X[rows])
    assert np.abs(regressions(bandit) - regressions(alone)).max() < CLOSE


@pytest.mark.usefixtures("_switching")
def test_any_calls_take_turns(tmp_path: Path) -> None:
    bandit = made()
    calls = [
        lambda row: bandit.partial_fit([row % 4], [0.5], X[row]),
        lambda row: bandit.forget(bandit.predict(X[row]).decision_id),
        lambda row: bandit.save(tmp_path),
        lambda row: bandit.remove_arm(bandit.add_arm()),
    ]
    in_threads(lambda at: [calls[at % 4](row) for row in range(at, 24, THREADS)])
    assert [entry.count for entry in bandit.ledger] == [6] and bandit.unpaid == () and bandit.learned == 6
    bandit.save(tmp_path)
    loaded = PrivateContextualBandit.load(tmp_path)
    rows = np.array([row for at in (0, 4) for row in range(at, 24, THREADS)])
    expected = taught(X[rows], rows % 4, np.full(6, 0.5))
    assert np.abs(regressions(loaded) - expected).max() < CLOSE and loaded.arms == (0, 1, 2, 3)


@pytest.mark.usefixtures("_switching")
def test_threads_share_an_end_of_a_network() -> None:
    """Each party's threads make the same calls, as it has to be; rounds of two never mix."""
    calls = 3 * THREADS

    def party(session: Session) -> PrivateContextualBandit:
        bandit = PrivateContextualBandit.over(session, n_arms=4, dim=8, eps=0.2)
        own = split(X, 2)[session.hosted[0]][0]
        in_threads(lambda _: [bandit.learn(own) for _ in range(3)])
        return bandit

    clients = {
        "puller": lambda: puller_client([Say([1], range(4))] * calls, lambda *_: None),
        "payer": lambda: payer_client([0.5] * calls),
    }
    bandits = values(over_tcp(2, party, clients=clients))[:2]
    alone = made()
    for _ in range(calls):
        alone.learn(X[0], 1, 0.5)
    assert [bandit.learned for bandit in bandits] == [calls, calls]
    assert np.abs(regressions(*bandits) - regressions(alone)).max() < CLOSE


def test_a_fork_does_not_wait_for_a_thread_that_it_has_not() -> None:
    """Whether it may go on is for the sources of its masks to say."""
    turn, held, free = Turn(), threading.Event(), threading.Event()

    def hold() -> None:
        with turn:
            held.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if (child := os.fork()) == 0:
        with turn:
            os._exit(7)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    free.set()
    thread.join()
    assert ended == 7

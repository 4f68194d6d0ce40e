"""How long a bandit learns: as it says, longer when extended, with refreshes where its bits do not last."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import RangeError
from protocols.ppcb import PrivateContextualBandit
from protocols.ppcb.library.fitting import most_steps

from .runs import CLOSE, X, made, pay, regressions, taught


@pytest.mark.parametrize(("parties", "bound", "ridge"), [(3, 1.0, 1.0), (8, 1.0, 1.0), (3, 5.0, 1.0), (3, 5.0, 100.0)])
def test_a_bandit_lasts_as_long_as_it_says_or_is_refused_with_what_is_possible(
    parties: int, bound: float, ridge: float
) -> None:
    kind = {"parties": parties, "bound": bound, "ridge": ridge}
    usual = made(**kind).settings
    assert usual.steps == 10_000 and (usual.refresh or usual.lasts >= usual.steps)
    with pytest.raises(RangeError, match="to be learned from, not 1,000,000,000: use `steps` up to") as refused:
        made(steps=10**9, **kind)
    most = int(str(refused.value).split("up to ")[1].split(",")[0])
    made(steps=most, **kind)
    try_cures(refused.value, {**kind, "steps": 10**9}, least=1)
    with pytest.raises(RangeError) as refused:
        made(steps=most + 1, **kind)
    try_cures(refused.value, {**kind, "steps": most + 1}, least=1)


def try_cures(error: BaseException, kind: dict[str, Any], *, least: int) -> None:
    """Do what an error says, each cure by itself."""
    offers = re.findall(r"(bound|ridge|alpha) (\S+?)(?:,|$)", str(error).split(": ", 1)[1])
    assert len(offers) >= least
    for name, value in offers:
        made(**{**kind, name: float(value)})


@pytest.mark.parametrize(
    "kind",
    [
        {"bound": 100.0},
        {"bound": 1e9},
        {"ridge": 1e-9},
        {"ridge": 1e9},
        {"ridge": 1e-30},
        {"alpha": 1e30, "policy": "linucb"},
    ],
)
def test_what_leaves_no_room_is_refused_with_what_does(kind: dict[str, Any]) -> None:
    with pytest.raises(RangeError, match="leave a word no room: make the bandit with") as refused:
        made(**kind)
    try_cures(refused.value, kind, least=1)


def test_bits_for_more_contexts_than_usual_cost_no_round_before_they_must() -> None:
    rounds = []
    for steps in (100, 10_000, 100_000):
        bandit = made(steps=steps)
        pay(bandit, bandit.predict(X[0]), 0)
        rounds.append((bandit.settings.state_bits, bandit.cost.rounds))
    assert rounds == [(26, 5 + 9), (26, 5 + 9), (28, 5 + 9)]


def test_no_more_is_learned_than_the_ranges_hold_for() -> None:
    """The error names the call that goes on, and that goes on with more bits and the same regressions."""
    bandit = made(steps=5)
    bandit.partial_fit([0, 1, 2], [1.0, 0.0, 1.0], X[:3])
    told = bandit.predict(X[:3])
    with pytest.raises(
        RangeError, match=r"3 contexts were learned from, 3 more are given, .* for 5: call extend\(steps=10\)"
    ):
        bandit.learn(decision_id=told.decision_id, reward=np.zeros(3))
    assert bandit.unpaid == (0, 1, 2)
    bandit.learn(decision_id=told.decision_id[:2], reward=np.zeros(2))
    before, bits = regressions(bandit), bandit.settings.state_bits
    bandit.extend(100_000)
    assert (regressions(bandit) == before).all() and bandit.settings.state_bits > bits
    bandit.learn(decision_id=told.decision_id[2:], reward=np.ones(1))
    arms = np.array([0, 1, 2, *told.arm])
    expected = taught(X[[0, 1, 2, 0, 1, 2]], arms, np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]))
    assert np.abs(regressions(bandit) - expected).max() < CLOSE
    assert 0 <= bandit.predict(X[5]).arm < 4
    wide: dict[str, Any] = {"n_arms": 100, "bound": 0.1, "reward_range": (-1000.0, 1000.0)}
    many = made(**wide)
    bits = many.settings.state_bits
    many.extend(10**5)
    assert many.settings.state_bits >= bits > made(**wide, steps=10**5).settings.state_bits


def test_a_bandit_at_the_end_of_what_is_possible_says_so() -> None:
    """As with a run so long that its state has no more bits; here the largest number is met by a small one."""
    bandit = made(bound=5.0, steps=1000)
    most = most_steps(replace(bandit.settings, steps=1, refresh=None), refreshes=False)
    with pytest.raises(RangeError, match=f"allow {most:,} contexts to be learned from"):
        bandit.extend(most + 1)
    bandit.extend(most)
    bandit._service.held.learned = most
    with pytest.raises(RangeError, match=f"{most:,} is the most; make another, of scaled features"):
        bandit.learn(X[0], 0, 1.0)


def tilted(rows: int) -> np.ndarray:
    """Contexts at the bound 10 of two owners, most of them nearly in one direction: what costs P its precision."""
    rng = np.random.default_rng(2)
    x = np.ones((rows, 8)) + 0.3 * rng.normal(size=(rows, 8))
    for block in (slice(0, 4), slice(4, 8)):
        x[:, block] *= 10.0 / np.linalg.norm(x[:, block], axis=-1, keepdims=True)
    return x


def test_where_bits_do_not_last_the_state_is_refreshed(tmp_path: Path) -> None:
    """The twin's regressions, also across a save, a new arm and one that left; what they had lost comes back."""
    rows, arms = tilted(300), np.arange(300) % 3
    rewards = np.random.default_rng(3).uniform(size=300)
    bandit = made(n_arms=3, bound=10.0, steps=5000)
    every = bandit.settings.refresh
    assert every is not None and every < 100 and bandit.learn_batch <= every
    bandit.partial_fit(arms[:99], rewards[:99], rows[:99])
    assert bandit.add_arm() == 3
    bandit.remove_arm(1)
    bandit.save(tmp_path)
    bandit = PrivateContextualBandit.load(tmp_path, seed=5)
    held = bandit._service.held
    assert held.unrefreshed == 99 % every, "as it was"
    still = arms[99:] != 1
    bandit.partial_fit(arms[99:][still], rewards[99:][still], rows[99:][still])
    expected = taught(rows[arms != 1], arms[arms != 1], rewards[arms != 1])[[0, 2, 3]]
    assert np.abs(regressions(bandit) - expected).max() < 1e-3
    held = bandit._service.held
    assert np.abs(regressions(bandit) - expected).max() > 1e-5, "so long after the last refresh rounding shows"
    more = every - held.unrefreshed
    bandit.partial_fit([3] * more, [0.5] * more, rows[:more])
    expected[2] = taught(rows[:more], np.full(more, 3), np.full(more, 0.5))[3]
    assert held.unrefreshed == 0 and np.abs(regressions(bandit) - expected).max() < 1e-6


@pytest.mark.parametrize(("contexts", "bound", "steps"), [(1, 10.0, 5000), (2, 4.0, 20_000)])
def test_a_plan_of_a_refreshing_bandit_lasts_from_one_refresh_to_the_next(
    contexts: int, bound: float, steps: int
) -> None:
    bandit = made(bound=bound, steps=steps)
    dealer, drawn = bandit._hosting.dealer, []
    make = dealer.make
    dealer.make = lambda item: drawn.append(item) or make(item)
    for _ in range(bandit.settings.refresh // contexts):
        bandit.learn(decision_id=bandit.predict(np.ones((contexts, 8))).decision_id, reward=np.ones(contexts))
    assert bandit._service.held.unrefreshed == 0 and bandit.plan(contexts).items == tuple(drawn)

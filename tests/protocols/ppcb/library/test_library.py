"""The private bandit as a library: the twin's arms and regressions, honest propensities, and a cure in every error."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import arm_probabilities
from bandits.environments import synthetic_linear
from mpc.client import serve
from mpc.errors import ConfigError, Desync, MaskedError, OutOfMaterial, RangeError
from mpc.ledger import Entry
from mpc.net.joining import listen
from mpc.net.tcp import Tcp, TcpClient
from mpc.session import Session
from offline import Store, StoreSource, deal
from protocols.ppcb import Hear, Prediction, PrivateContextualBandit, Say, payer_client, puller_client
from protocols.ppcb.library.fitting import most_steps
from protocols.ppcb.play import split
from tests.parties.threads import TOKEN, over_tcp, side_by_side, values

ENVIRONMENT = synthetic_linear(4, 8, rows=400, seed=1)
EPISODE = ENVIRONMENT.episode(120, 3)
X, OUTCOMES = EPISODE.contexts, EPISODE.outcomes
CLOSE = 1e-4


def made(**changes: Any) -> PrivateContextualBandit:
    return PrivateContextualBandit(**{"n_arms": 4, "dim": 8, "eps": 0.2, "parties": 2, "seed": 5, **changes})


def regressions(*bandits: PrivateContextualBandit) -> np.ndarray:
    """[P_a; w_a'] in the clear, from the shares of all parties."""
    words = np.concatenate([bandit._service.held.table for bandit in bandits])
    return words.sum(axis=0, dtype=np.uint64).view(np.int64)[0] * 2.0 ** -bandits[0].settings.state_bits


def taught(rows: np.ndarray, arms: np.ndarray, rewards: np.ndarray, n_arms: int = 4) -> np.ndarray:
    """The same in plaintext, by normal equations."""
    tables = []
    for arm in range(n_arms):
        x, r = rows[arms == arm], rewards[arms == arm]
        inverse = np.linalg.inv(np.eye(8) + x.T @ x)
        tables.append(np.concatenate([inverse, (inverse @ x.T @ r)[None]]))
    return np.stack(tables)


def pay(bandit: PrivateContextualBandit, told: Any, row: int) -> None:
    bandit.learn(decision_id=told.decision_id, reward=OUTCOMES[row, told.arm])


@pytest.mark.parametrize("policy", ["epsilon-greedy", "thompson"])
@pytest.mark.parametrize("batch", [1, 5])
def test_it_pulls_the_arms_of_its_twin(policy: str, batch: int) -> None:
    bandit = made(policy=policy, parties=3)
    pulled = []
    for start in range(0, len(X), batch):
        rows = np.arange(start, start + batch)
        told = bandit.predict(X[rows] if batch > 1 else X[start])
        arms = np.atleast_1d(told.arm)
        bandit.learn(decision_id=told.decision_id, reward=OUTCOMES[rows, arms])
        pulled.append(arms)
    twin = bandit.twin()
    for number, choice in enumerate(bandit.coins()):
        rows = np.arange(number * batch, (number + 1) * batch)
        arms = choice.pick(twin.scores(X[None, rows], choice))
        assert (arms[0] == pulled[number]).all(), number
        twin.update(X[None, rows], arms, OUTCOMES[rows, arms[0]][None])
    assert np.abs(regressions(bandit)[:, 8] - twin.weights[0]).max() < 1e-3
    assert bandit.learned == len(X) and bandit.unpaid == ()


def test_rewards_come_late_and_in_any_order(parties: int) -> None:
    bandit = made(parties=parties, policy="linucb")
    told = [bandit.predict(X[row]) for row in range(8)]
    order = np.random.default_rng(0).permutation(8)
    for row in order[:4]:
        pay(bandit, told[row], row)
    bandit.predict(X[20])
    late = order[4:]
    ids = np.array([told[row].decision_id for row in late])
    bandit.learn(reward=[OUTCOMES[row, told[row].arm] for row in late], decision_id=ids)
    arms = np.array([one.arm for one in told])
    assert np.abs(regressions(bandit) - taught(X[:8], arms, OUTCOMES[np.arange(8), arms])).max() < CLOSE
    assert bandit.unpaid == (8,)


def test_contexts_may_be_tensors() -> None:
    torch = pytest.importorskip("torch")
    bandit = PrivateContextualBandit(3, 2, parties=2, seed=1)
    told = bandit.predict(torch.tensor([[0.5, -0.5], [1.0, 0.0]]))
    bandit.learn(decision_id=told.decision_id, reward=torch.tensor([1.0, 0.0]))
    assert bandit.learned == 2


def test_many_are_decided_on_in_the_rounds_of_one_and_learned_from_in_batches() -> None:
    """More than could be learned from together; and no more than fit in memory."""
    bandit = made(dim=9, parties=3)
    alone = bandit.predict(np.zeros(9)) and bandit.cost.rounds
    told = bandit.predict(np.full((200, 9), 0.2))
    assert bandit.cost.rounds == 2 * alone and bandit.learn_batch < 200
    bandit.learn(decision_id=told.decision_id[:40], reward=np.ones(40))
    most = 300_000 // (6 * 3)
    with pytest.raises(ValueError, match=f"than fit in memory: at most {most:,} in a call"):
        bandit.predict(np.zeros((most + 1, 9)))


def test_only_eligible_arms_are_pulled() -> None:
    bandit = made(eps=1.0)
    assert set(bandit.predict(X[:40], eligible=[3, 1]).arm) == {1, 3}
    one = bandit.predict(X[0], [2])
    assert (one.arm, one.propensity) == (2, (1.0, 1.0))
    assert bandit.predict(X[0], eligible=[0, 2]).propensity == (0.5, 0.5)


def test_another_arm_than_the_predicted_one_may_be_pulled(parties: int) -> None:
    """Two of three decisions are overridden, and no party's share of the one-hot says by which arm."""
    bandit = made(parties=parties)
    told = bandit.predict(X[:3])
    actions = (told.arm + np.array([1, 0, 2])) % 4
    bandit.learn(None, actions, [1.0, 0.25, 1.0], decision_id=told.decision_id)
    assert np.abs(regressions(bandit) - taught(X[:3], actions, np.array([1.0, 0.25, 1.0]))).max() < CLOSE
    assert list(bandit.ledger)[1:] == [
        Entry("everyone", "that a decision was overridden", 2, "another arm was pulled than predicted")
    ]


def test_logged_rows_are_learned_from_in_batches(parties: int) -> None:
    arms = np.arange(70) % 4
    rewards = OUTCOMES[np.arange(70), arms]
    bandit, single = made(parties=parties), made(parties=parties)
    bandit.partial_fit(arms, rewards, X[:70])
    single.learn(X[0], 3, 0.5)
    assert np.abs(regressions(bandit) - taught(X[:70], arms, rewards)).max() < 1e-3
    assert np.abs(regressions(single) - taught(X[:1], np.array([3]), np.array([0.5]))).max() < CLOSE
    assert bandit.cost.rounds < 70 * single.cost.rounds / 3
    assert len(bandit.ledger) == 0, "what is learned from is an input: nobody learns anything"


def test_arms_come_and_go_and_keep_their_numbers() -> None:
    bandit = made()
    early = bandit.predict(X[:6], eligible=[1, 2])
    assert bandit.add_arm() == 4
    bandit.remove_arm(1)
    assert bandit.arms == (0, 2, 3, 4)
    assert np.abs(regressions(bandit)[3, :8] - np.eye(8)).max() < 2**-19
    rewards = OUTCOMES[np.arange(6), early.arm]
    bandit.learn(decision_id=early.decision_id, reward=rewards)
    assert {1, 2} <= set(early.arm)
    expected = taught(X[:6], early.arm, rewards, 5)[[0, 2, 3, 4]]
    assert np.abs(regressions(bandit) - expected).max() < CLOSE, "rewards of arm 1 change nothing, those of 2 count"
    assert bandit.predict(X[0], eligible=[4]).arm == 4
    bandit.learn(X[7], 4, 1.0)
    assert regressions(bandit)[3, 8] @ X[7] == pytest.approx(0.5, abs=CLOSE)
    with pytest.raises(ConfigError, match=r"no arm 1: the arms are 0, 2, 3, 4"):
        bandit.predict(X[0], eligible=[1])
    assert bandit.add_arm() == 5


def test_a_propensity_is_the_interval_that_everybody_knows() -> None:
    bandit = made()
    told = bandit.predict(X[:3])
    assert told.propensity.low.tolist() == [0.05] * 3
    assert told.propensity.high == pytest.approx([0.85] * 3)
    assert bandit.predict(X[0], [0, 1, 2]).propensity == pytest.approx((0.2 / 3, 0.8 + 0.2 / 3))
    assert [entry.what for entry in bandit.ledger] == ["arm"]


def test_a_revealed_propensity_is_exact_and_in_the_ledger(parties: int) -> None:
    """Ties at the start, then what `arm_probabilities` says; in front of a subset of arms too."""
    bandit = made(parties=parties, eps=0.5)
    start = bandit.predict(X[:5], reveal_propensity=True)
    assert start.propensity.low == pytest.approx([0.25] * 5), "four arms tie"
    bandit.partial_fit(np.arange(30) % 4, OUTCOMES[np.arange(30), np.arange(30) % 4], X[:30])
    told = bandit.predict(X[:30], reveal_propensity=True)
    scores = X[:30] @ regressions(bandit)[:, 8].T
    exact = arm_probabilities(scores, 0.5)[np.arange(30), told.arm]
    assert told.propensity.low == pytest.approx(exact) and (told.propensity.low == told.propensity.high).all()
    assert len(np.unique(exact)) == 2, "both a best and an explored arm were pulled"
    few = bandit.predict(X[:30], [0, 3], reveal_propensity=True)
    exact = arm_probabilities(scores[:, [0, 3]], 0.5)[np.arange(30), few.arm // 3]
    assert few.propensity.low == pytest.approx(exact)
    what = "whether the arm was the best, and with how many tied"
    assert [(entry.what, entry.role, entry.count) for entry in bandit.ledger][1] == (what, "puller", 65)


MISTAKES: dict[str, tuple[Callable[[PrivateContextualBandit], Any], str]] = {
    "width": (lambda b: b.predict(X[0, :5]), r"shape \(8,\), several have \(contexts, 8\); these have \(5,\)"),
    "no rows": (lambda b: b.predict(np.zeros((0, 8))), "at least one"),
    "ragged": (lambda b: b.predict([[1.0, 2.0], [1.0]]), "array of one shape"),
    "nan": (lambda b: b.predict(np.full(8, np.nan)), "NaN or infinite"),
    "norm": (lambda b: b.predict(np.full(8, 0.6)), r"party 0 have a norm of 1\.2, bound is 1: scale"),
    "eligible": (lambda b: b.predict(X[0], [0, 7]), r"no arm 7: the arms are 0 to 3"),
    "none eligible": (lambda b: b.predict(X[0], []), "no arm is eligible"),
    "unknown id": (lambda b: b.learn(decision_id=9, reward=1.0), r"no decision 9: predictions gave 0 to 1"),
    "used id": (lambda b: b.learn(decision_id=0, reward=1.0), "decision 0 was learned from or forgotten already"),
    "twice": (lambda b: b.learn(decision_id=[1, 1], reward=[1.0, 1.0]), "each is paid once"),
    "reward": (lambda b: b.learn(decision_id=1, reward=1.5), r"rewards lie in \[0, 1\]"),
    "negative": (lambda b: b.learn(X[0], 0, -0.5), r"rewards lie in \[0, 1\]"),
    "nan reward": (lambda b: b.learn(decision_id=1, reward=np.nan), "forget"),
    "no reward": (lambda b: b.learn(decision_id=1), "the reward alone"),
    "no action": (lambda b: b.learn(X[0], reward=1.0), "action and reward are wanted"),
    "no context": (lambda b: b.learn(action=1, reward=1.0), "decision_id, or the context"),
    "action": (lambda b: b.learn(X[0], 4, 1.0), "no arm 4"),
    "override": (lambda b: b.learn(None, 8, 1.0, decision_id=1), "no arm 8"),
    "half an arm": (lambda b: b.learn(X[0], 0.5, 1.0), "whole numbers"),
    "complex": (lambda b: b.predict(np.full(8, 0.1j)), "real numbers in an array"),
    "text": (lambda b: b.predict("a context"), "real numbers in an array of one shape, not str"),
    "nothing": (lambda b: b.predict(None), r"these have \(\)"),
    "ragged arms": (lambda b: b.predict(X[0], [[1], [1, 2]]), "one flat list: these are nested unevenly"),
    "mask of arms": (lambda b: b.predict(X[0], [True, False, True, True]), "arms are whole numbers .* not bool"),
    "says no": (lambda b: b.predict(X[0], reveal_propensity="no"), "reveal_propensity is True or False, not 'no'"),
    "whole prediction": (lambda b: b.learn(decision_id=Prediction(0, (0.1, 0.2), 1), reward=1.0), "its `decision_id`"),
    "ragged ids": (lambda b: b.learn(decision_id=[[1], [1, 2]], reward=1.0), "nested unevenly"),
    "huge id": (lambda b: b.learn(decision_id=2**70, reward=1.0), r"below 2\^63"),
    "no ids": (lambda b: b.forget([]), "no decision ids in this call"),
    "id of nothing": (lambda b: b.forget(None), "decision ids are whole numbers .* not NoneType"),
    "reward of text": (lambda b: b.learn(decision_id=1, reward="good"), "rewards are real numbers"),
    "overridden text": (lambda b: b.learn(decision_id=1, reward=1.0, overridden="no"), "`overridden` is True or False"),
    "remove several": (lambda b: b.remove_arm([0, 1]), r"arm is a whole number, not \[0, 1\]"),
    "folder": (lambda b: b.save(5), "named by text or a path, not 5"),
    "not a folder": (lambda b: b.save("/dev/null"), "/dev/null: .* save into a folder of your own"),
    "load a number": (lambda b: PrivateContextualBandit.load(5), "named by text or a path"),
    "no session": (lambda b: PrivateContextualBandit.load("x", session=5), "its session on the network, not int"),
    "half a plan": (lambda b: b.plan(1.5), "contexts is a whole number, not 1.5"),
    "shorter": (lambda b: b.extend(10_000), "made for 10,000 contexts: extend it to more, not to 10,000"),
    "counts": (lambda b: b.partial_fit([0, 1], [1.0], X[:2]), r"rewards of shape \(1,\) .* 2, one for each row"),
    "overridden": (lambda b: b.learn(decision_id=1, reward=1.0, overridden=True), "leave `overridden` out"),
    "remove": (lambda b: b.remove_arm(4), "no arm 4"),
    "plan": (lambda b: b.plan(1000), "1 to 32 contexts"),
    "no load": (lambda b: PrivateContextualBandit.load("/nonexistent"), "holds no bandit"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_cure_and_changes_nothing(mistake: str) -> None:
    bandit = made()
    pay(bandit, bandit.predict(X[0]), 0)
    bandit.predict(X[1])
    before, rows = regressions(bandit), list(bandit.ledger)
    call, words = MISTAKES[mistake]
    with pytest.raises((ConfigError, RangeError), match=words) as refused:
        call(bandit)
    assert isinstance(refused.value, ValueError) or mistake in ("no load", "not a folder"), "that of an argument is one"
    assert (regressions(bandit) == before).all() and bandit.unpaid == (1,) and list(bandit.ledger) == rows
    bandit.learn(decision_id=1, reward=1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_arms": 1}, "at least 2 arms, not 1"),
        ({"policy": "greedy"}, "no policy 'greedy': choose one of epsilon-greedy, linucb, thompson"),
        ({"eps": 1.5}, "probability"),
        ({"parties": 1}, "at least 2 parties"),
        ({"ridge": 0.0}, "positive"),
        ({"dim": 2.5}, r"dim is a whole number, not 2\.5"),
        ({"seed": -1}, "seed lies in"),
        ({"seed": 1.5}, r"seed is a whole number, not 1\.5"),
        ({"n_arms": 1001}, "more than 1000, .* use fewer arms"),
        ({"parties": 9}, "9 parties of 8 features: each owns at least one, so use at most 8 parties"),
        ({"dim": 1}, "at least 2 features"),
        ({"parties": "3"}, "parties is a whole number, not '3'"),
        ({"eps": "0.1"}, r"eps is a number, not '0\.1'"),
        ({"alpha": None}, "alpha is a number, not None"),
        ({"ridge": [1.0]}, "ridge is a number"),
        ({"ridge": np.nan}, "ridge nan .* positive"),
        ({"bound": 1j}, "bound is a number"),
        ({"steps": 1e4}, r"steps is a whole number, not 10000\.0"),
        ({"steps": 0}, "at least 1, not 0"),
        ({"most_unpaid": 0}, "at least 1 decision"),
    ],
)
def test_bandits_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MaskedError, match=words) as refused:
        made(**changes)
    assert isinstance(refused.value, ValueError)


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
    "kind", [{"bound": 100.0}, {"bound": 1e9}, {"ridge": 1e-9}, {"ridge": 1e9}, {"alpha": 1e30, "policy": "linucb"}]
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
    assert rounds == [(26, 5 + 9), (26, 5 + 9), (28, 6 + 9)]


def test_two_arms_stay() -> None:
    bandit = made(n_arms=2)
    with pytest.raises(ConfigError, match="at least 2 arms: add another"):
        bandit.remove_arm(0)


@pytest.mark.parametrize("policy", ["linucb", "thompson"])
def test_propensities_of_other_policies_stay_bounds(policy: str) -> None:
    bandit = made(policy=policy)
    assert bandit.predict(X[0]).propensity == pytest.approx((0.05, 0.85))
    with pytest.raises(ConfigError, match="leave out reveal_propensity"):
        bandit.predict(X[0], reveal_propensity=True)


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
    many = made(n_arms=100, bound=0.03)
    bits = many.settings.state_bits
    many.extend(10**7)
    assert many.settings.state_bits >= bits > made(n_arms=100, bound=0.03, steps=10**7).settings.state_bits


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


def test_a_plan_of_a_refreshing_bandit_lasts_from_one_refresh_to_the_next() -> None:
    bandit = made(bound=10.0, steps=5000)
    dealer, drawn = bandit._hosting.dealer, []
    make = dealer.make
    dealer.make = lambda item: drawn.append(item) or make(item)
    for _ in range(bandit.settings.refresh):
        bandit.learn(decision_id=bandit.predict(np.ones(8)).decision_id, reward=1.0)
    assert bandit._service.held.unrefreshed == 0 and bandit.plan(1).items == tuple(drawn)


def test_of_what_is_never_paid_the_latest_are_kept() -> None:
    bandit = made(most_unpaid=5)
    for row in range(8):
        bandit.predict(X[row])
    bandit.predict(X[8:10])
    assert bandit.unpaid == (5, 6, 7, 8, 9)
    with pytest.raises(ValueError, match=r"decision 4 .* older than the 5 that are kept for a reward \(most_unpaid\)"):
        bandit.learn(decision_id=4, reward=1.0)
    with pytest.raises(ValueError, match=r"6 contexts, and 5 decisions are kept .* several calls"):
        bandit.predict(X[:6])
    bandit.learn(decision_id=9, reward=1.0)
    assert bandit.learned == 1
    left = bandit._service.held.open[8]
    assert left.x.base is None and left.o.base is None, "one that is left does not keep the shares of a whole call"


def test_a_closed_bandit_says_so_and_keeps_its_ledger() -> None:
    with made() as bandit:
        pay(bandit, bandit.predict(X[0]), 0)
    for call in (lambda: bandit.predict(X[0]), bandit.add_arm, lambda: bandit.save("x"), lambda: bandit.arms):
        with pytest.raises(ConfigError, match="closed: make another"):
            call()
    assert [entry.count for entry in bandit.ledger] == [1] and bandit.cost.rounds > 0
    assert "closed" in repr(bandit)


def test_coins_are_known_with_a_seed_alone() -> None:
    bandit = made(seed=None)
    bandit.predict(X[0])
    with pytest.raises(ConfigError, match="seed"):
        bandit.coins()
    first, second = (made().predict(X[:20]).arm.tolist() for _ in range(2))
    assert first == second


def saved(folder: Path) -> PrivateContextualBandit:
    """A bandit with a removed arm, a late arm and unpaid decisions, as it was saved."""
    bandit = made(n_arms=np.int64(4), dim=np.int64(8))
    bandit.partial_fit(np.arange(20) % 4, OUTCOMES[np.arange(20), np.arange(20) % 4], X[:20])
    bandit.predict(X[:3])
    bandit.add_arm()
    bandit.remove_arm(0)
    bandit.predict(X[3:5])
    bandit.save(folder)
    return bandit


def test_a_loaded_bandit_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    first = saved(tmp_path)
    second = PrivateContextualBandit.load(tmp_path, seed=5)
    assert list(second.ledger) == list(first.ledger) and second.cost == first.cost
    assert (second.arms, second.unpaid, second.learned) == (first.arms, first.unpaid, first.learned)
    outcomes = []
    for bandit in (first, second):
        bandit.learn(decision_id=[4, 1, 0], reward=[1.0, 0.5, 0.0])
        bandit.learn(decision_id=2, reward=0.25, action=4)
        outcomes.append((bandit.predict(X[40:60]).arm.tolist(), bandit.add_arm()))
    assert outcomes[0] == outcomes[1]
    assert np.abs(regressions(first) - regressions(second)).max() < CLOSE
    second.save(tmp_path)
    assert PrivateContextualBandit.load(tmp_path).unpaid == (3, *range(5, 25))
    with pytest.raises(ConfigError, match="later state"):
        first.save(tmp_path)


def test_a_party_file_holds_that_partys_shares_alone(tmp_path: Path) -> None:
    held = saved(tmp_path)._service.held
    paths, rows = sorted(tmp_path.glob("*/*.npz")), list[dict[str, np.ndarray]]()
    assert [path.parent.name for path in paths] == ["party-0", "party-1", "puller"]
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for party, path in enumerate(paths[:2]):
        with np.load(path) as kept:
            assert set(kept.files) == {"facts", "table", "x", "o"}
            rows.append({name: kept[name] for name in ("table", "x", "o")})
        assert held.table[1 - party].tobytes()[:64] not in path.read_bytes()
    table, x = (np.concatenate([row[name] for row in rows]) for name in ("table", "x"))
    assert (table.sum(axis=0) == held.table.sum(axis=0)).all()
    assert (x.sum(axis=0) == np.concatenate([one.x.sum(axis=0)[0] for one in held.open.values()])).all()


def test_no_file_follows_from_the_seed(tmp_path: Path) -> None:
    """Two bandits of one seed hold the same shares, and write others that add up to the same."""
    tables = []
    for name in ("a", "b"):
        bandit = made()
        bandit.partial_fit(np.arange(8) % 4, OUTCOMES[np.arange(8), np.arange(8) % 4], X[:8])
        bandit.save(tmp_path / name)
        kept = [np.load(next((tmp_path / name / f"party-{party}").glob("*.npz")))["table"] for party in range(2)]
        tables.append((bandit._service.held.table, np.concatenate(kept)))
    (held, first), (again, second) = tables
    assert (held == again).all(), "the masks follow from the seed"
    assert (first.sum(axis=0) == held.sum(axis=0)).all() and (second.sum(axis=0) == held.sum(axis=0)).all()
    for party in range(2):
        assert (first[party] != second[party]).all() and (first[party] != held[party]).all()


def cut_short(bandit: PrivateContextualBandit, folder: Path, *, calls: int) -> None:
    """Save after so many calls, and die after party 0's file."""
    bandit._service.held.calls += calls
    bandit.save(folder)
    for role in ("party-1", "puller"):
        sorted((folder / role).glob("*.npz"))[-1].unlink()


def test_half_a_save_is_dropped_and_another_state_is_not_written_over(tmp_path: Path) -> None:
    first = saved(tmp_path)
    second = PrivateContextualBandit.load(tmp_path)
    cut_short(first, tmp_path, calls=0)
    second.learn(decision_id=0, reward=1.0)
    second.save(tmp_path)
    again = PrivateContextualBandit.load(tmp_path)
    assert again.learned == 21 and np.abs(regressions(again) - regressions(second)).max() == 0
    third = PrivateContextualBandit.load(tmp_path)
    third.save(tmp_path)
    cut_short(third, tmp_path, calls=3)
    again = PrivateContextualBandit.load(tmp_path)
    cut_short(again, tmp_path, calls=0)
    assert np.abs(regressions(PrivateContextualBandit.load(tmp_path)) - regressions(third)).max() == 0
    with pytest.raises(ConfigError, match="later state"):
        second.save(tmp_path)


def _cut(folder: Path) -> None:
    path = next((folder / "party-1").glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-200])


def _flipped(folder: Path) -> None:
    path = next((folder / "party-1").glob("*.npz"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))


def _swapped(folder: Path) -> None:
    shutil.copy(next((folder / "party-0").glob("*.npz")), next((folder / "party-1").glob("*.npz")))


def _foreign(folder: Path) -> None:
    saved(folder / "other")
    shutil.copy(next((folder / "other/party-1").glob("*.npz")), next((folder / "party-1").glob("*.npz")))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_cut, "damaged"),
        (_flipped, "damaged"),
        (_swapped, "party-1.* is not of this bandit and role"),
        (_foreign, "party-1.* is not of this bandit and role"),
        (lambda folder: shutil.rmtree(folder / "party-1"), "has 2 parties, files of 1"),
        (lambda folder: shutil.rmtree(folder / "puller"), "a file for every party"),
    ],
    ids=["cut", "flipped", "swapped", "foreign", "lost", "no puller"],
)
def test_files_that_do_not_belong_are_refused(harm: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    saved(tmp_path)
    harm(tmp_path)
    with pytest.raises(ConfigError, match=words):
        PrivateContextualBandit.load(tmp_path)


def test_a_save_that_was_cut_short_leaves_the_one_before(tmp_path: Path) -> None:
    bandit = saved(tmp_path)
    bandit.learn(decision_id=0, reward=1.0)
    bandit.save(tmp_path)
    sorted((tmp_path / "party-1").glob("*.npz"))[-1].unlink()
    assert PrivateContextualBandit.load(tmp_path).unpaid == (0, 1, 2, 3, 4)


def test_another_bandits_folder_is_not_written_over(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(ConfigError, match="another bandit"):
        made().save(tmp_path)


ENDS: dict[str, Any] = {"n_arms": 4, "dim": 8, "eps": 0.2}


def test_the_same_class_is_one_partys_end_of_a_network(tmp_path: Path) -> None:
    """Three parties, the puller and the payer over tcp; the joined shares are what a plaintext learner gets."""
    blocks = split(X, 3)
    heard: list[tuple[np.ndarray, Any]] = []

    def party(session: Session) -> PrivateContextualBandit:
        own = blocks[session.hosted[0]]
        bandit = PrivateContextualBandit.over(session, **ENDS)
        first = bandit.predict(own[0])
        second = bandit.predict(own[1:4], eligible=[0, 2], reveal_propensity=True)
        assert first.arm is None and second.arm is None and second.decision_id.tolist() == [1, 2, 3]
        bandit.learn(decision_id=[3, 0], overridden=[True, False])
        bandit.learn(own[4:6])
        assert [(entry.role, entry.count) for entry in bandit.ledger] == [("puller", 4), ("puller", 3), ("everyone", 1)]
        bandit.save(tmp_path)
        again = PrivateContextualBandit.load(tmp_path, session=session)
        assert again.add_arm() == 4
        again.learn(decision_id=1)
        again.forget(2)
        with pytest.raises(ConfigError, match="leave them out here"):
            again.learn(own[5], 1, 1.0)
        return again

    def puller() -> Any:
        calls = [Hear(), Hear(3, propensity=True), Say([1], range(4)), Say([3, 3], range(4))]
        return puller_client(calls, lambda arms, ties: heard.append((arms, ties)))

    def payer() -> Any:
        return payer_client([[1.0, 0.5], [0.25, 1.0], 1.0])

    bandits = values(over_tcp(3, party, clients={"puller": puller, "payer": payer}))[:3]
    (first, none), (second, ties) = heard
    assert none is None and ties.tolist() == [2, 2, 2] and set(second) <= {0, 2}
    arms = np.array([1, first[0], 3, 3, second[0]])
    expected = taught(X[[3, 0, 4, 5, 1]], arms, np.array([1.0, 0.5, 0.25, 1.0, 1.0]), 5)
    assert np.abs(regressions(*bandits) - expected).max() < CLOSE
    assert bandits[0].unpaid == ()


def test_parties_whose_calls_differ_find_out() -> None:
    def party(eligible: list[int]) -> Callable[[Session], Any]:
        return lambda session: PrivateContextualBandit.over(session, **ENDS).predict(np.zeros(4), eligible)

    clients = {"puller": lambda: puller_client([Hear()], lambda *_: None), "payer": lambda: payer_client([])}
    ended = over_tcp(2, {0: party([0, 1]), 1: party([0, 2])}, clients=clients)
    assert any(isinstance(one.error, Desync) for one in ended[:2])


def _forgets(number: int) -> Callable[[PrivateContextualBandit], Any]:
    return lambda bandit: bandit.forget(number)


@pytest.mark.parametrize(
    ("calls", "changes"),
    [
        ([_forgets(0), _forgets(1)], [{}, {}]),
        ([lambda b: b.remove_arm(0), lambda b: b.remove_arm(1)], [{}, {}]),
        ([lambda b: b.extend(20_000), lambda b: b.extend(30_000)], [{}, {}]),
        ([lambda b: None, lambda b: None], [{}, {"ridge": 2.0}]),
        ([lambda b: None, lambda b: None], [{}, {"most_unpaid": 3}]),
    ],
    ids=["forget", "remove_arm", "extend", "ridge", "most_unpaid"],
)
def test_calls_without_a_round_are_compared_in_the_next(calls: list[Any], changes: list[dict[str, Any]]) -> None:
    def party(own: Any, change: dict[str, Any]) -> Callable[[Session], Any]:
        def run(session: Session) -> None:
            bandit = PrivateContextualBandit.over(session, **{**ENDS, **change})
            if not change and not changes[1]:
                bandit.predict(np.zeros((2, 4)))
            own(bandit)
            bandit.predict(np.zeros(4))

        return run

    hear = [Hear()] if changes[1] else [Hear(2), Hear()]
    clients = {"puller": lambda: puller_client(hear, lambda *_: None), "payer": lambda: payer_client([])}
    ended = over_tcp(2, {at: party(calls[at], changes[at]) for at in range(2)}, clients=clients)
    assert any(isinstance(one.error, Desync) for one in ended[:2])


def test_dealt_material_follows_the_plan_of_a_cycle(tmp_path: Path) -> None:
    """Two cycles of two contexts from stores; a call that is not planned is refused."""
    plan = made(seed=None).plan(2)
    deal(plan, 3, tmp_path)
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]
    blocks, heard = split(X, 2), []

    def party(node: int) -> Any:
        transport = Tcp.join(node, addresses, token=TOKEN, clients=2, listener=listeners[node], timeout=20.0)
        with Session(transport, StoreSource(Store(tmp_path / f"party-{node}")), roles=("puller", "payer")) as session:
            bandit = PrivateContextualBandit.over(session, **ENDS)
            for cycle in range(2):
                told = bandit.predict(blocks[node][2 * cycle : 2 * cycle + 2])
                bandit.learn(decision_id=told.decision_id)
            with pytest.raises(OutOfMaterial, match="the plan of 'library'"):
                bandit.predict(blocks[node][4])
            return bandit

    def client(node: int, program: Any) -> Any:
        return serve(TcpClient.join(node, addresses, token=TOKEN, timeout=20.0), program)

    calls = [lambda node=node: party(node) for node in range(2)]
    calls += [
        lambda: client(2, puller_client([Hear(2)] * 2, lambda arms, _: heard.append(arms))),
        lambda: client(3, payer_client([[1.0, 0.0], [0.5, 1.0]])),
    ]
    bandits = values(side_by_side(*calls)[:2])
    arms = np.concatenate(heard)
    assert np.abs(regressions(*bandits) - taught(X[:4], arms, np.array([1.0, 0.0, 0.5, 1.0]))).max() < CLOSE


def test_a_session_of_all_parties_needs_no_end(simulate: Callable[..., Session]) -> None:
    with pytest.raises(ConfigError, match="without `over`"):
        PrivateContextualBandit.over(simulate(2), **ENDS)

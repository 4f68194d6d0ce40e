"""What a bandit cannot use is refused with a cure, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError, MaskedError, RangeError, told_to_peers
from protocols.ppcb import Prediction, PrivateContextualBandit

from .runs import X, made, pay, regressions

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


SECRET = "blood pressure 171"
ASTRAY: dict[str, Callable[[PrivateContextualBandit], Any]] = {
    "flag": lambda b: b.predict(X[0], reveal_propensity=SECRET),
    "whole number": lambda b: b.plan(SECRET),
    "arm": lambda b: b.remove_arm(SECRET),
    "folder": lambda b: b.save([SECRET]),
    "number": lambda _: made(eps=SECRET),
    "range": lambda _: made(reward_range=[[SECRET]] * 3),
    "parties": lambda _: made(parties=SECRET, owners=[4, 4]),
    "names": lambda _: made(n_arms=None, arms=SECRET),
    "unhashable name": lambda _: made(n_arms=None, arms=[[SECRET], "b"]),
    "the same name": lambda _: made(n_arms=None, arms=[SECRET, SECRET]),
    "count of names": lambda _: made(n_arms=SECRET, arms=["a", "b"]),
    "new name": lambda b: b.add_arm(SECRET),
    "new unhashable name": lambda _: made(n_arms=None, arms=["a", "b"]).add_arm([SECRET]),
    "old name": lambda _: made(n_arms=None, arms=["a", SECRET]).add_arm(SECRET),
    "name to be saved": lambda _: made(n_arms=None, arms=["a", frozenset([SECRET])]).save("nowhere"),
}


@pytest.mark.parametrize("given", ASTRAY)
def test_what_a_call_was_given_is_said_to_its_caller_alone(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context may be given in the place of anything; peers hear an error's text."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        ASTRAY[given](made())
    assert SECRET in str(refused.value)
    assert SECRET not in told_to_peers(refused.value).text and "..." in told_to_peers(refused.value).text


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


def test_a_closed_bandit_says_so_and_keeps_its_ledger() -> None:
    with made() as bandit:
        pay(bandit, bandit.predict(X[0]), 0)
    for call in (lambda: bandit.predict(X[0]), bandit.add_arm, lambda: bandit.save("x"), lambda: bandit.arms):
        with pytest.raises(ConfigError, match="closed: make another"):
            call()
    assert [entry.count for entry in bandit.ledger] == [1] and bandit.cost.rounds > 0
    assert "closed" in repr(bandit)

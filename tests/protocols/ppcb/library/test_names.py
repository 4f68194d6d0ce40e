"""Arms by any hashable names, frames by the names of their columns, fit anew, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError, RangeError
from protocols.ppcb import PrivateContextualBandit

from .runs import CLOSE, OUTCOMES, X, made, regressions, taught

COLUMNS = tuple(f"x{at}" for at in range(8))


def named(**changes: Any) -> PrivateContextualBandit:
    return made(**{"n_arms": None, "arms": ["aspirin", ("statin", 20), 7, 2.5], **changes})


def test_arms_have_any_hashable_names() -> None:
    bandit, numbered = named(), made()
    told, other = bandit.predict(X[:6]), numbered.predict(X[:6])
    assert told.arm.tolist() == [bandit.arms[number] for number in other.arm]
    assert bandit.predict(X[0]).arm == bandit.arms[numbered.predict(X[0]).arm]
    rewards = OUTCOMES[np.arange(6), other.arm]
    bandit.learn(decision_id=told.decision_id, reward=rewards, action=told.arm)
    numbered.learn(decision_id=other.decision_id, reward=rewards)
    assert np.abs(regressions(bandit) - regressions(numbered)).max() < CLOSE
    assert bandit.predict(X[0], eligible=[("statin", 20)]).arm == ("statin", 20)
    assert bandit.predict(X[0], eligible={7}).arm == 7
    bandit.partial_fit(["aspirin", 7], [1.0, 0.0], X[:2])
    bandit.learn(X[3], ("statin", 20), 1.0)
    assert bandit.learned == 9


def test_names_come_and_go() -> None:
    bandit = named()
    assert bandit.add_arm("new") == "new" and bandit.arms[-1] == "new"
    bandit.remove_arm(("statin", 20))
    assert bandit.arms == ("aspirin", 7, 2.5, "new")
    for call, words in (
        (lambda: bandit.add_arm("new"), "there is or was an arm 'new'"),
        (lambda: bandit.add_arm(("statin", 20)), "names are given once"),
        (bandit.add_arm, "an arm is called by a hashable name, not None"),
        (lambda: bandit.add_arm(["list"]), "hashable name"),
        (lambda: bandit.remove_arm("aspirine"), "there is no arm 'aspirine': the arms are 'aspirin', 7, 2.5, 'new'"),
        (lambda: bandit.predict(X[0], eligible=[("statin", 20)]), r"there is no arm \('statin', 20\)"),
        (lambda: bandit.learn(X[0], [[7]], 1.0), r"there is no arm \[7\]"),
        (lambda: made().add_arm("new"), "this bandit's arms have numbers: leave 'new' out"),
        (lambda: named(arms=["a", "a"]), "two arms are called 'a'"),
        (lambda: named(arms=["a", float("nan")]), "arms have hashable names, not nan"),
        (lambda: named(arms="ab"), "arms are a list of names, not 'ab'"),
        (lambda: named(n_arms=3), "n_arms is 3 and 4 arms have names"),
        (lambda: PrivateContextualBandit(dim=3), "say how many: n_arms=, or their names as arms="),
    ):
        with pytest.raises(ConfigError, match=words):
            call()


def test_a_name_that_is_unknown_is_for_the_caller_alone() -> None:
    with pytest.raises(ConfigError) as caught:
        named().learn(X[0], "secret", 1.0)
    assert "secret" in str(caught.value) and "secret" not in caught.value.told


def test_names_are_saved_and_loaded(tmp_path: Path) -> None:
    bandit = named(dim=None, features=COLUMNS)
    bandit.remove_arm(7)
    told = bandit.predict(X[:2])
    bandit.save(tmp_path)
    with PrivateContextualBandit.load(tmp_path) as loaded:
        assert loaded.arms == ("aspirin", ("statin", 20), 2.5) and loaded.features == COLUMNS
        with pytest.raises(ConfigError, match="there is or was an arm 7"):
            loaded.add_arm(7)
        loaded.learn(decision_id=told.decision_id, reward=[1.0, 0.0])
    strange = named(arms=[frozenset({1}), frozenset({2})])
    with pytest.raises(ConfigError, match="a name to be saved is text, a number, or a tuple of them"):
        strange.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_columns_of_a_frame_are_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:4], columns=list(COLUMNS))
    bandit, plain = made(), made()
    assert bandit.predict(frame).arm.tolist() == plain.predict(X[:4]).arm.tolist()
    assert bandit.features == COLUMNS, "the first frame says them"
    assert bandit.predict(frame.iloc[0]).arm == plain.predict(X[0]).arm, "a row knows its columns too"
    assert bandit.predict(X[:4]).arm.shape == (4,), "what has no names is taken as it comes"
    back = frame[list(COLUMNS[::-1])]
    for given, words in (
        (back, r"has x7, x6, .* in another order: this bandit's features are x0, x1, .*give frame\[\['x0', 'x1'"),
        (back.iloc[0], "in another order"),
        (frame.drop(columns="x3"), "lacks x3: "),
        (frame.rename(columns={"x3": "y"}), "lacks x3 and also has y: "),
        (frame.assign(more=1.0), "also has more: "),
        (frame.astype({"x2": object}).assign(x2="high"), "column x2 holds no real numbers: encode it"),
        (frame.assign(x2=np.nan), "NaN"),
    ):
        with pytest.raises(RangeError, match=words):
            bandit.predict(given)
    fresh = made()
    with pytest.raises(RangeError, match="norm"):
        fresh.predict(back * 100)
    assert fresh.features is None, "a frame that was refused says nothing"


def test_columns_without_names_of_their_own_are_not_reordered_either() -> None:
    pandas = pytest.importorskip("pandas")
    frame, bandit = pandas.DataFrame(X[:4]), made()
    counted = list(range(8))
    assert bandit.predict(frame).arm.shape == (4,) and bandit.features is None, "numbers from 0 are no names"
    for given in (frame[counted[::-1]], frame[counted[::-1]].iloc[0]):
        with pytest.raises(RangeError, match=r"has 7, 6, .* in another order: .*give frame\[\[0, 1, 2"):
            bandit.predict(given)
    named = made(dim=None, features=counted)
    assert named.predict(frame).arm.shape == (4,)
    with pytest.raises(RangeError, match="in another order"):
        named.predict(frame[counted[::-1]])
    with pytest.raises(RangeError, match="lacks 0 and also has 8"):
        named.predict(frame.rename(columns={0: 8}))
    doctors = pandas.MultiIndex.from_product([["clinic", "lab"], counted[:4]])
    tuples = pandas.DataFrame(X[:4], columns=doctors)
    bandit.predict(tuples)
    assert bandit.features == tuple(doctors)
    with pytest.raises(RangeError, match="in another order"):
        bandit.predict(tuples[list(doctors)[::-1]])
    twice = pandas.DataFrame(X[:4], columns=list(COLUMNS))[["x0", *COLUMNS]]
    with pytest.raises(RangeError, match="the frame has two columns x0: "):
        made(dim=None, features=COLUMNS).predict(twice)
    assert made().predict(frame.iloc[1]).arm == made().predict(X[1]).arm


def test_rewards_that_are_labelled_otherwise_than_their_decisions_are_not_learned_from() -> None:
    pandas = pytest.importorskip("pandas")
    bandit = made()
    told = pandas.DataFrame(
        {"decision": bandit.predict(X[:3]).decision_id, "reward": [0.0, 1.0, 0.5]}, index=list("abc")
    )
    with pytest.raises(ConfigError, match="decision_id and reward have the same rows in another order"):
        bandit.learn(decision_id=told["decision"], reward=told["reward"].sort_values())
    bandit.learn(decision_id=told["decision"], reward=told["reward"])
    assert bandit.learned == 3 and bandit.unpaid == ()


def test_rows_that_are_labelled_otherwise_are_not_learned_from() -> None:
    pandas = pytest.importorskip("pandas")
    labels = [7, 5, 3, 1]
    contexts, rewards = pandas.DataFrame(X[:4], index=labels), pandas.Series([1.0, 0.0, 1.0, 0.0], index=labels)
    bandit, plain = made(), made()
    with pytest.raises(ConfigError, match="rewards and contexts have the same rows in another order"):
        bandit.partial_fit([0, 1, 0, 1], rewards.sort_index(), contexts)
    bandit.partial_fit([0, 1, 0, 1], rewards, contexts)
    bandit.partial_fit([0, 1, 0, 1], rewards.reset_index(drop=True), contexts)
    for _ in range(2):
        plain.partial_fit([0, 1, 0, 1], [1, 0, 1, 0], X[:4])
    assert np.abs(regressions(bandit) - regressions(plain)).max() < CLOSE


def test_as_many_parties_as_have_features() -> None:
    for owners in ([5, 3], [2, 2, 2, 2], None):
        assert PrivateContextualBandit(2, 8, owners=owners).parties == len(owners or "abc")
    with pytest.raises(ConfigError, match="parties is 3 and owners has a number for 2: leave parties out"):
        PrivateContextualBandit(2, 8, parties=3, owners=[5, 3])


def test_rewards_and_actions_come_as_series() -> None:
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame(X[:8], columns=list(COLUMNS)).assign(arm=["aspirin", 7] * 4, paid=[1, 0] * 4)
    bandit, plain = named(features=COLUMNS), made()
    bandit.partial_fit(log["arm"], log["paid"], log[list(COLUMNS)])
    plain.partial_fit([0, 2] * 4, [1, 0] * 4, X[:8].tolist())
    assert np.abs(regressions(bandit) - regressions(plain)).max() < CLOSE


def test_tensors_with_a_gradient_are_numbers() -> None:
    torch = pytest.importorskip("torch")
    bandit, plain = made(), made()
    rows = torch.tensor(X[:5], requires_grad=True)
    assert bandit.predict(rows).arm.tolist() == plain.predict(X[:5]).arm.tolist()
    bandit.partial_fit(torch.tensor([0, 1, 2, 3, 0]), torch.ones(5, requires_grad=True), rows * 1.0)
    assert bandit.learned == 5
    for strange in (rows.to(torch.bfloat16), rows.detach().to_sparse()):
        with pytest.raises(RangeError, match=r"not a Tensor of torch\..*: give x\.to_dense\(\)\.float\(\)"):
            bandit.predict(strange)


def test_fit_learns_anew() -> None:
    bandit = named(steps=30)
    told = bandit.predict(X[:3])
    bandit.partial_fit(["aspirin"] * 20, OUTCOMES[:20, 0], X[:20])
    arms = np.arange(20) % 4
    rewards = OUTCOMES[np.arange(20), arms]
    bandit.fit([bandit.arms[arm] for arm in arms], rewards, X[:20])
    assert np.abs(regressions(bandit) - taught(X[:20], arms, rewards)).max() < CLOSE
    assert bandit.learned == 20 and bandit.unpaid == ()
    with pytest.raises(ConfigError):
        bandit.learn(decision_id=told.decision_id, reward=[1.0] * 3)
    assert bandit.predict(X[0]).decision_id == 3, "numbers of decisions go on"
    before = regressions(bandit)
    for mistake in (
        lambda: bandit.fit(["nobody"] * 2, [1.0, 1.0], X[:2]),
        lambda: bandit.fit(["aspirin"] * 2, [1.0, 7.0], X[:2]),
        lambda: bandit.fit(["aspirin"] * 31, [1.0] * 31, X[:31]),
        lambda: bandit.fit(None, None, X[:2]),
    ):
        with pytest.raises((ConfigError, RangeError)):
            mistake()
    assert (regressions(bandit) == before).all(), "what is refused forgets nothing"


def test_expectations_are_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"expected rewards are not told: .* `predict` tells the arm"):
        made().predict_expectations(X[:2])

"""Estimates on shares against those in the clear, what they cost and what they tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandits.columns import NamedLog
from bandits.logs import LogError, RecordedLog
from mpc.errors import RangeError
from mpc.rounds import Reveal, Rounds
from mpc.session import Session
from offline import InProcessDealer
from protocols.ppcb.library.arguments import ArgumentError
from protocols.ppcb.library.bandit import PrivateContextualBandit
from protocols.ppcb.library.log_evaluation import PRIVATE, TWIN, evaluate_log
from protocols.ppcb.library.offline_evaluation import estimate_offline, logger_client
from protocols.ppcb.library.on_shares import Declared, check, inverse_propensity, row_values

ARMS, EPS = 3, 0.2


def log(rows: int, seed: int = 1, *, greedy: bool = False) -> NamedLog:
    """Softmax propensities of at least 0.05; or epsilon-greedy ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)) * [1, 10, 100, 0.1]
    scores = (x / [1, 10, 100, 0.1]) @ rng.normal(size=(4, ARMS))
    best = scores == scores.max(axis=1, keepdims=True)
    p = EPS / ARMS + (1 - EPS) * best if greedy else 0.05 + 0.85 * np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    arms = (p.cumsum(axis=1) <= rng.random((rows, 1))).sum(axis=1).clip(max=ARMS - 1)
    paid = (rng.random(rows) < 1 / (1 + np.exp(-scores[np.arange(rows), arms]))).astype(float)
    whole = RecordedLog(x, arms, paid, p[np.arange(rows), arms])
    return NamedLog(whole, ("a", "b", "c"), ("s", "t", "u", "v"), (1, 1, 1, 1))


@pytest.mark.parametrize(
    ("owners", "more"),
    [((2, 2), {}), ((2, 1, 1), {"logged_eps": EPS}), ((1, 1, 1, 1, 0), {"policy": "linucb", "alpha": 0.5})],
)
def test_on_shares_as_in_the_clear(owners: tuple[int, ...], more: dict[str, object]) -> None:
    found = evaluate_log(log(300, greedy="logged_eps" in more), owners=owners, eps=0.1, **more)  # type: ignore[arg-type]
    assert found.difference is not None and found.difference < 2.0**-10
    own = {each.estimator: each.estimate for each in found.findings if each.policy == PRIVATE}
    twin = {each.estimator: each.estimate for each in found.findings if each.policy == TWIN}
    assert own.keys() == {"ips", "snips", "dr"}
    assert all(abs(own[name].value - twin[name].value) < 2.0**-10 for name in own)
    assert [(entry.role, entry.what, entry.count) for entry in found.ledger] == [
        ("everyone", "estimate by IPS, SNIPS, DR", 3), ("everyone", "its variance", 3),
    ]  # fmt: skip


def test_a_difference_is_told_in_the_units_of_the_log() -> None:
    given = log(200)
    dear = replace(given, log=replace(given.log, rewards=1e6 * given.log.rewards))
    one, other = evaluate_log(given, owners=(2, 2)), evaluate_log(dear, owners=(2, 2))
    assert one.difference is not None and other.difference == pytest.approx(1e6 * one.difference)
    own, twin = (
        {each.estimator: each.estimate for each in other.findings if each.policy == of} for of in (PRIVATE, TWIN)
    )
    apart = [abs(own[name].value - twin[name].value) for name in own]
    assert 0 < max(apart) <= other.difference * (1 + 1e-9) and one.left_out == other.left_out == ()


def test_digits_that_do_not_resolve_an_estimate_are_named() -> None:
    """A single reward of 1e5 among the rows that are learned from is the unit of what is told."""
    given = log(200)
    rewards = given.log.rewards.copy()
    rewards[3] = 1e5
    spike = evaluate_log(replace(given, log=replace(given.log, rewards=rewards)), owners=(2, 2))
    doubts = {each.estimator: each.doubts for each in spike.findings if each.policy == PRIVATE}
    for name in ("ips", "snips"):
        assert "told in steps of 1.53: too coarse for this estimate" in doubts[name]
    values = {each.policy: each.estimate.value for each in spike.findings if each.estimator == "ips"}
    assert spike.difference is not None
    assert abs(values[PRIVATE] - values[TWIN]) <= spike.difference and spike.difference > 0.1
    for usual in (given, replace(given, log=replace(given.log, rewards=np.zeros(200)))):
        found = evaluate_log(usual, owners=(2, 2)).findings
        assert not any("in steps of" in doubt for each in found for doubt in each.doubts)


def test_a_ratio_that_is_missing_says_why_and_is_left_out_of_the_difference() -> None:
    given = log(200)
    wrong = evaluate_log(replace(given, log=replace(given.log, propensities=np.full(200, 0.06))), owners=(2, 2))
    found = {each.estimator: each for each in wrong.findings if each.policy == PRIVATE}
    assert np.isnan(found["snips"].estimate.value) and wrong.left_out == ("snips",)
    (why,) = [doubt for doubt in found["snips"].doubts if "1/4 to 4" in doubt]
    assert why == "weights do not average 1/4 to 4: on shares there is no ratio"
    assert not any("errors of 0" in doubt for doubt in found["snips"].doubts)
    assert not any("1/4 to 4" in doubt for name in ("ips", "dr") for doubt in found[name].doubts)
    assert wrong.difference is not None and np.isfinite(wrong.difference)


def test_a_column_that_few_rows_would_scale_away_is_named() -> None:
    given = log(200)
    contexts = given.log.contexts.copy()
    contexts[[3], 1], contexts[150:, 2] = 1e9, 1e9  # rows that are judged scale nothing
    odd = evaluate_log(replace(given, log=replace(given.log, contexts=contexts)), owners=(2, 2), shares=False)
    (note,) = odd.named.notes
    assert "column 't', to its owner" in note and "in 1 of the first 100 rows" in note and "1e" not in note
    assert evaluate_log(given, owners=(2, 2), shares=False).named.notes == ()


def test_propensities_of_another_logger_are_no_bit() -> None:
    bandit = PrivateContextualBandit(ARMS, 4, parties=2, owners=[2, 2], steps=10, seed=1)
    for given, eps in ((log(30), EPS), (log(30, greedy=True), EPS / 2)):
        small = replace(given.log, contexts=given.log.contexts / 500)
        with pytest.raises(ArgumentError, match="this log has others: correct logged_eps, or leave it out"):
            estimate_offline(bandit, small, logged_eps=eps)


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_rounds_are_those_of_batches_and_of_the_end(parties: int) -> None:
    for rows, batches, steps, coarser in ((30, 1, 10, 0), (260, 2, 10, 0), (30, 1, 2500, 1)):
        given = log(rows).log
        small = RecordedLog(given.contexts / 500, given.arms, given.rewards, given.propensities)
        owners = [4, *[0] * (parties - 1)]
        bandit = PrivateContextualBandit(ARMS, 4, parties=parties, owners=owners, steps=steps, seed=1)
        estimate_offline(bandit, small, floor=2.0**-5)
        assert (check(bandit.settings, Declared(rows, 2.0**-5)) < 20) == coarser
        assert bandit.cost.rounds == 10 * batches + 28 + coarser and bandit.cost.client_hops == 3 * batches


def test_rewards_that_hardly_come_are_not_nothing_for_sure() -> None:
    given = log(300)
    never = replace(given, log=replace(given.log, rewards=np.eye(300)[200]))
    found = {each.estimator: each for each in evaluate_log(never, owners=(2, 2)).findings if each.policy == PRIVATE}
    for name in ("ips", "snips"):
        estimate, doubts = found[name].estimate, found[name].doubts
        assert estimate.high > 1 / 150 and any("too short" in doubt for doubt in doubts)


def test_weights_that_are_none_give_no_ratio() -> None:
    given = log(200).log
    wrong = RecordedLog(given.contexts / 400, given.arms, given.rewards, np.full(200, 0.06))
    bandit = PrivateContextualBandit(ARMS, 4, 0.5, parties=2, steps=10, seed=1)
    found = estimate_offline(bandit, wrong)
    assert np.isnan(found["snips"]).all() and np.isfinite(found["ips"]).all() and found["ips"].value > 1.0


def test_what_an_estimate_is_refused_for() -> None:
    given = log(30).log
    bandit = PrivateContextualBandit(ARMS, 4, parties=2, steps=10)
    small = RecordedLog(given.contexts / 400, given.arms, given.rewards, given.propensities)
    with pytest.raises(ArgumentError, match="declared as the least"):
        estimate_offline(bandit, small, floor=0.9)
    with pytest.raises(ArgumentError, match="no propensities"):
        estimate_offline(bandit, RecordedLog(small.contexts, small.arms, small.rewards))
    with pytest.raises(RangeError, match="judge fewer rows"):
        check(bandit.settings, Declared(1000, 2.0**-40))
    with pytest.raises(LogError, match="has none"):
        evaluate_log(NamedLog(RecordedLog(small.contexts, small.arms, small.rewards), ("a", "b", "c"), ("x",), (4,)))
    assert bandit.ledger.table().count("estimate") == 0


def test_who_logged_holds_to_the_floor_that_all_say() -> None:
    """A weight beyond it would leave its word, and the errors told would be too small."""
    given = log(30).log
    rare = RecordedLog(given.contexts, given.arms, given.rewards, np.r_[0.0002, np.full(29, 0.5)])
    with pytest.raises(ArgumentError, match=r"a propensity is 0[.]0002, and 0[.]25 was declared as the least"):
        next(logger_client(rare, ARMS, floor=0.25))
    next(logger_client(rare, ARMS, floor=0.0002))
    with pytest.raises(RangeError, match=r"at least 0[.]0667, and 0[.]25 was declared as the least propensity"):
        next(logger_client(log(30, greedy=True).log, ARMS, floor=0.25, logged_eps=EPS))
    next(logger_client(log(30, greedy=True).log, ARMS, floor=EPS / ARMS, logged_eps=EPS))


@pytest.mark.parametrize("floor", [0.0, -1.0, 1.5, float("nan"), float("inf"), 5e-324])
def test_a_floor_that_is_no_propensity_is_refused(floor: float) -> None:
    bandit = PrivateContextualBandit(ARMS, 4, parties=2, steps=10)
    words = "judge fewer rows" if floor == 5e-324 else "a least propensity lies above 0 and at most 1, not "
    with pytest.raises(RangeError, match=words):
        check(bandit.settings, Declared(1000, floor))
    for eps in (0.0, -0.2, 0.01, 1.5, float("nan")):
        with pytest.raises(RangeError):
            check(bandit.settings, Declared(1000, 0.05, eps))


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_a_propensity_that_nobody_knows(parties: int) -> None:
    """g comes from two one-hots on shares; 5 rounds for a batch of rows, and each value as in the clear."""
    rng = np.random.default_rng(3)
    o, logged, best = (np.eye(ARMS)[rng.integers(0, ARMS, 20)][None] for _ in range(3))
    s, r = rng.random((1, 20, ARMS)), rng.random((1, 20))
    session = Session.simulate(parties, InProcessDealer(parties))
    shared = [session.share(each.astype(np.int64), owner=1, scale=0) for each in (o, logged)]
    bits = session.share((best * logged).sum(axis=-1).astype(np.int64), scale=0)

    def program() -> Rounds[list[np.ndarray]]:
        inverse = inverse_propensity(bits, EPS, ARMS)
        rows = yield from row_values(
            session, shared[0], session.share(s), shared[1], inverse, session.share(r, owner=1), 0.1
        )
        return list((yield tuple(Reveal(each) for each in rows)))

    w, wr, psi = session.run(program())
    assert session.meter.total.rounds == 6  # one to reveal
    pi = 0.1 / ARMS + 0.9 * o
    clear = (pi * logged).sum(-1) / (EPS / ARMS + (1 - EPS) * (best * logged).sum(-1))
    assert np.allclose(w, clear, atol=2**-15) and np.allclose(wr, clear * r, atol=2**-15)
    assert np.allclose(psi, (pi * s).sum(-1) + clear * (r - (logged * s).sum(-1)), atol=2**-14)

"""The same class as one party's end of a network: over tcp, with dealt material, and where calls differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.logs import RecordedLog
from mpc.client import serve
from mpc.errors import ConfigError, Desync, OutOfMaterial, PeerLost
from mpc.ledger import Entry
from mpc.net.joining import listen
from mpc.net.tcp import Tcp, TcpClient
from mpc.session import Session
from offline import Store, StoreSource, deal
from protocols.ppcb import Hear, PrivateContextualBandit, Say, evaluate_offline, payer_client, puller_client
from protocols.ppcb.library.journal import Journal, Told
from protocols.ppcb.library.offline_evaluation import (
    estimate_offline,
    estimate_over,
    log_payer_client,
    logger_client,
)
from protocols.ppcb.player import split
from protocols.run.checkpoint import Checkpoint
from tests.parties.threads import KEYS, over_tcp, side_by_side, values

from .runs import CLOSE, X, made, regressions, taught

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


@pytest.mark.parametrize("logged_eps", [None, 0.4])
def test_a_log_is_judged_over_a_network_as_in_one_process(logged_eps: float | None) -> None:
    """300 rows are two batches; the parties have their features alone, the puller arms and propensities."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 8)) / 8
    best = rng.random(300) < 0.7
    p = np.full(300, 0.25) if logged_eps is None else np.where(best, 0.7, 0.1)
    log = RecordedLog(x, rng.integers(4, size=300), rng.integers(0, 2, 300).astype(float), p)
    alone = PrivateContextualBandit(4, 8, 0.2, parties=2, seed=1)
    alone.partial_fit(log.arms[:6], log.rewards[:6], x[:6])
    expected = estimate_offline(alone, log, floor=0.125 if logged_eps is None else None, logged_eps=logged_eps)
    floor = 0.125 if logged_eps is None else logged_eps / 4
    blocks = split(x, 2)

    def party(session: Session) -> Any:
        bandit = PrivateContextualBandit.over(session, **ENDS)
        bandit.learn(blocks[session.hosted[0]][:6])
        found = estimate_over(bandit, blocks[session.hosted[0]], floor=floor, logged_eps=logged_eps)
        return found, [(entry.role, entry.what, entry.count) for entry in bandit.ledger]

    def puller() -> Any:
        yield from puller_client([Say(log.arms[:6].tolist(), range(4))], lambda *_: None)
        yield from logger_client(log, 4, floor=floor, logged_eps=logged_eps)

    def payer() -> Any:
        yield from payer_client([log.rewards[:6]])
        yield from log_payer_client(log.rewards, 4)

    for found, ledger in values(over_tcp(2, party, clients={"puller": puller, "payer": payer}))[:2]:
        for name, each in expected.items():
            assert np.allclose(found[name], each, atol=2.0**-12), name
        assert ledger == [("everyone", "estimate by IPS, SNIPS, DR", 3), ("everyone", "its variance", 3)]
    with pytest.raises(ConfigError, match="judge the log with estimate_offline"):
        estimate_over(alone, x, floor=0.1)


@pytest.mark.parametrize(("logger", "parties"), [((0.125, None), (0.25, None)), ((0.1, 0.4), (0.1, 0.5))])
def test_a_logger_that_declares_something_else_is_no_estimate(
    logger: tuple[float, float | None], parties: tuple[float, float | None]
) -> None:
    """How large sums may be follows from it: with another one a variance could leave its word."""
    x, p = np.full((8, 8), 0.1), np.full(8, 0.25) if logger[1] is None else np.full(8, 0.7)
    log = RecordedLog(x, np.zeros(8, np.int64), np.ones(8), p)

    def party(session: Session) -> Any:
        bandit, (floor, logged_eps) = PrivateContextualBandit.over(session, **ENDS), parties
        return estimate_over(bandit, split(x, 2)[session.hosted[0]], floor=floor, logged_eps=logged_eps)

    clients = {
        "puller": lambda: logger_client(log, 4, floor=logger[0], logged_eps=logger[1]),
        "payer": lambda: log_payer_client(log.rewards, 4),
    }
    ended = over_tcp(2, party, clients=clients)
    assert any(isinstance(one.error, Desync) and "propensities" in str(one.error) for one in ended[:2])
    assert not any(one.error is None for one in ended[:2])


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
        transport = Tcp.join(node, addresses, keys=KEYS[node], clients=2, listener=listeners[node], timeout=300.0)
        with Session(transport, StoreSource(Store(tmp_path / f"party-{node}")), roles=("puller", "payer")) as session:
            bandit = PrivateContextualBandit.over(session, **ENDS)
            for cycle in range(2):
                told = bandit.predict(blocks[node][2 * cycle : 2 * cycle + 2])
                bandit.learn(decision_id=told.decision_id)
            with pytest.raises(OutOfMaterial, match="the plan of 'library'"):
                bandit.predict(blocks[node][4])
            return bandit

    def client(node: int, program: Any) -> Any:
        return serve(TcpClient.join(node, addresses, keys=KEYS[node], timeout=300.0), program)

    calls = [lambda node=node: party(node) for node in range(2)]
    calls += [
        lambda: client(2, puller_client([Hear(2)] * 2, lambda arms, _: heard.append(arms))),
        lambda: client(3, payer_client([[1.0, 0.0], [0.5, 1.0]])),
    ]
    bandits = values(side_by_side(*calls)[:2])
    arms = np.concatenate(heard)
    assert np.abs(regressions(*bandits) - taught(X[:4], arms, np.array([1.0, 0.0, 0.5, 1.0]))).max() < CLOSE


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


def lived(folder: Path, row: int) -> tuple[list[Any], list[list[int]], list[int]]:
    """A session of two parties: load what was saved, if anything, predict two contexts, learn from a row, save.

    Gives the regressions at its beginning, each party's numbers of the decisions, and what its ledger counts then.
    """
    tables: dict[int, Any] = {}
    numbers: dict[int, list[int]] = {}
    counts: dict[int, int] = {}

    def party(session: Session) -> None:
        me = session.hosted[0]
        own, home = split(X, 2)[me], folder / str(me)
        if home.exists():
            bandit = PrivateContextualBandit.load(home, session=session)
        else:
            bandit = PrivateContextualBandit.over(session, **ENDS)
        tables[me] = regressions(bandit)
        numbers[me] = bandit.predict(own[row : row + 2]).decision_id.tolist()
        counts[me] = next(iter(bandit.ledger)).count
        bandit.learn(own[row])
        bandit.save(home)

    clients = {
        "puller": lambda: puller_client([Hear(2), Say([1], range(4))], lambda *_: None),
        "payer": lambda: payer_client([1.0]),
    }
    ended = over_tcp(2, party, clients=clients)
    assert all(one.error is None or isinstance(one.error, (Killed, PeerLost)) for one in ended), ended
    return [tables[me] for me in (0, 1)], [numbers[me] for me in (0, 1)], [counts[me] for me in (0, 1)]


def kill_party_1(place: str, patched: pytest.MonkeyPatch) -> None:
    """At this place inside its save."""

    def dying(real: Callable[..., Any], home: Callable[..., Path], before: str, after: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            own = home(*given).parent.name == "1"
            if own and place == before:
                raise Killed
            result = real(*given)
            if own and place == after:
                raise Killed
            return result

        return call

    begin = dying(Journal.begin, lambda journal, *_: journal._path.parent, "before the journal", "after the journal")
    save = dying(Checkpoint.save, lambda _, home: home, "before the file", "after the file")
    patched.setattr(Journal, "begin", begin)
    patched.setattr(Checkpoint, "save", save)


def test_parties_go_on_from_the_last_save_that_all_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one of them was killed in; with all that any of them knows to be told."""
    places = ["", "before the journal", "after the journal", "before the file", "after the file", "before the file", ""]
    whole: list[int] = []
    for row, place in enumerate([*places, ""]):
        with monkeypatch.context() as patched:
            kill_party_1(place, patched)
            tables, numbers, counts = lived(tmp_path, row)
        expected = taught(X[whole], np.ones(len(whole), np.int64), np.ones(len(whole)))
        assert np.abs(sum(tables) - expected).max() < CLOSE, place
        assert numbers == [[2 * row, 2 * row + 1]] * 2 and counts == [2 * row + 2] * 2
        whole += [row] if place in ("", "after the file") else []


def test_the_greatest_count_of_any_party_holds(tmp_path: Path) -> None:
    """Party 1 noted what party 0 had not come to, and party 0's journal is gone."""
    lived(tmp_path, 0)
    told = Told(7, (Entry("puller", "arm", 9, "it is pulled"),))
    Journal(tmp_path / "1" / "party-1").append(told)
    (tmp_path / "0" / "party-0" / "journal").unlink()
    _, numbers, counts = lived(tmp_path, 1)
    assert numbers == [[7, 8]] * 2 and counts == [11] * 2


def test_where_no_party_has_its_journal_all_refuse(tmp_path: Path) -> None:
    """Saves of counts of zero say nothing of what was told behind them."""

    def saved(session: Session) -> None:
        PrivateContextualBandit.over(session, **ENDS).save(tmp_path / str(session.hosted[0]))

    def refused(session: Session) -> str:
        with pytest.raises(ConfigError, match=r"journal below .* is gone") as found:
            PrivateContextualBandit.load(tmp_path / str(session.hosted[0]), session=session)
        return str(found.value)

    values(over_tcp(2, saved))
    for me in (0, 1):
        (tmp_path / str(me) / f"party-{me}" / "journal").unlink()
    assert len(set(values(over_tcp(2, refused)))) == 2, "each names its own folder"


def test_a_log_is_not_replayed_on_an_end() -> None:
    """Said before anything is told: with this party's own columns it would look like contexts to predict."""

    def party(session: Session) -> str:
        own = split(X, 2)[session.hosted[0]]
        log = RecordedLog(own[:4], np.zeros(4, np.int64), np.ones(4))
        with pytest.raises(ConfigError, match="not on a party's end") as refused:
            evaluate_offline(PrivateContextualBandit.over(session, **ENDS), log)
        assert session.round == 0 and not list(session.ledger)
        return str(refused.value)

    said = values(over_tcp(2, party))
    assert said[0] == said[1]


def test_a_session_of_all_parties_needs_no_end(simulate: Callable[..., Session]) -> None:
    with pytest.raises(ConfigError, match="without `over`"):
        PrivateContextualBandit.over(simulate(2), **ENDS)

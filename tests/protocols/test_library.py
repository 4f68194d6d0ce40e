"""The private bandit as a library: the twin's arms and regressions, honest propensities, and a cure in every error."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parties.threads import TOKEN, over_tcp, side_by_side, values

from bandits import arm_probabilities
from bandits.environments import synthetic_linear
from mpc.client import serve
from mpc.errors import ConfigError, Desync, MaskedError, OutOfMaterial, RangeError
from mpc.ledger import Entry
from mpc.net.joining import listen
from mpc.net.tcp import Tcp, TcpClient
from mpc.session import Session
from offline import Store, StoreSource, deal
from protocols.ppcb import Hear, PrivateContextualBandit, Say, payer_client, puller_client
from protocols.ppcb.play import split

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


def test_a_party_may_own_no_feature_and_contexts_may_be_tensors() -> None:
    torch = pytest.importorskip("torch")
    bandit = PrivateContextualBandit(3, 2, parties=5, seed=1)
    told = bandit.predict(torch.tensor([[0.5, -0.5], [1.0, 0.0]]))
    bandit.learn(decision_id=told.decision_id, reward=torch.tensor([1.0, 0.0]))
    assert bandit.learned == 2


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
    with pytest.raises((ConfigError, RangeError), match=words):
        call(bandit)
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
        ({"dim": 2.5}, r"whole numbers, not 4, 2\.5"),
        ({"seed": -1}, "seed lies in"),
    ],
)
def test_bandits_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MaskedError, match=words):
        made(**changes)


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
    bandit = made(steps=5)
    bandit.partial_fit([0, 1, 2], [1.0, 0.0, 1.0], X[:3])
    told = bandit.predict(X[:3])
    with pytest.raises(
        RangeError, match=r"3 contexts were learned from, and ranges and rounding hold for 5: .* more `steps`"
    ):
        bandit.learn(decision_id=told.decision_id, reward=np.zeros(3))
    assert bandit.unpaid == (0, 1, 2)
    bandit.learn(decision_id=told.decision_id[:2], reward=np.zeros(2))


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
    paths = sorted(tmp_path.glob("*/*.npz"))
    assert [path.parent.name for path in paths] == ["party-0", "party-1", "puller"]
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for party, path in enumerate(paths[:2]):
        with np.load(path) as kept:
            assert set(kept.files) == {"facts", "table", "x", "o"}
            assert (kept["table"] == held.table[party]).all()
            assert (kept["x"] == np.concatenate([one.x[party, 0] for one in held.open.values()])).all()
            raw = path.read_bytes()
        assert held.table[1 - party].tobytes()[:64] not in raw


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

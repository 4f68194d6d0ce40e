"""SAMBA as published: pulls and sum are the plaintext policy's, whatever the masks; who learns what; going on later."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.samba import NAMES, SeededCoins, Seeds, by_name, run
from bandits.samba.coins import CommonCoins
from mpc.errors import ConfigError
from protocols.published.paillier import Counts
from protocols.samba.classic.messages import Kind, Spec
from protocols.samba.classic.outcome import Operations
from protocols.samba.classic.run import ReferenceCoins
from protocols.samba.classic.selecting import Seen
from protocols.samba.owners import game_of
from protocols.samba.policies import local_policy

from .runs import BITS, MEANS, classic, noted, plays, same

SIZES = [(1, 1), (1, 9), (2, 2), (2, 60), (10, 10), (10, 120), (100, 100), (100, 180)]
SPECS = [
    Spec("epsilon-greedy", eps=0.3), Spec("epsilon-greedy", eps=0.0), Spec("epsilon-greedy", eps=1.0),
    Spec("softmax", tau=0.02), Spec("softmax", tau=0.001), Spec("softmax", tau=1.0), Spec("softmax", tau=1000.0),
    Spec("pursuit", beta=0.2), Spec("pursuit", beta=0.0), Spec("pursuit", beta=1.0),
]  # fmt: skip


@pytest.mark.parametrize(("arms", "budget"), SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_pulls_and_sum_are_the_plaintext_policys(name: str, arms: int, budget: int) -> None:
    assert same(classic(name, np.linspace(0.1, 0.9, arms), budget, seed=arms))


@pytest.mark.parametrize("name", NAMES)
def test_fifty_seeds(name: str) -> None:
    assert all(same(classic(name, [0.3, 0.5, 0.4, 0.6], 30, seed=seed)) for seed in range(50))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_other_constants(spec: Spec) -> None:
    assert all(same(classic(spec, [0.2, 0.5, 0.3, 0.4, 0.6], 60, seed=seed)) for seed in range(3))


@pytest.mark.parametrize("means", [[0.0] * 6, [1.0] * 6, [0.5] * 6, [0.0, 1.0, 0.0, 1.0]], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_ties_are_broken_alike(name: str, means: list[float]) -> None:
    runs = [classic(name, means, 40, seed=seed) for seed in range(6)]
    assert all(same(one) for one in runs)
    assert len({tuple(one.game.arms) for one in runs}) > 1  # by the permutation, not by the arm's number


@pytest.mark.parametrize("name", NAMES)
def test_another_mask_gives_the_same_pulls(name: str) -> None:
    first: list[Seen] = []
    second: list[Seen] = []
    one = classic(name, budget=60, mask_seed=1, seen=first)
    other = classic(name, budget=60, mask_seed=2, seen=second)
    assert one.game.equals(other.game) and one.total == other.total and same(one)
    assert [seen[:2] for seen in first] == [seen[:2] for seen in second]
    assert all(a.values != b.values for a, b in zip(first, second) if any(a.values))
    assert classic(name, budget=60).game.equals(one.game)  # with masks from the system


@pytest.mark.parametrize("hosts", [[range(3)], [range(1), range(1, 3)]], ids=["together", "in two"])
@pytest.mark.parametrize("name", NAMES)
def test_owners_play_alike_wherever_they_are_hosted(name: str, hosts: list[range]) -> None:
    alone, _ = noted(plays(Spec(name), 40))
    hosted, _ = noted(plays(Spec(name), 40, hosts=hosts))
    states = [[outcome.state for outcome in outcomes.values() if outcome.state] for outcomes in (alone, hosted)]
    games = [game_of(({name: np.array(rows) for name, rows in one.items()} for one in each), 40) for each in states]
    assert len(states[0]) == 3 and len(states[1]) == len(hosts) and games[0].equals(games[1])
    assert hosted["DC"].total == alone["DC"].total
    seeds = Seeds.of(1)
    coins = ReferenceCoins(seeds, 3, local_policy(name))
    plain = run(by_name(name, 3), _arms(), 40, coins, seeds.rewards)
    assert games[0].equals(plain)


def _arms() -> Any:
    from bandits.samba import BernoulliArms

    return BernoulliArms(np.array(MEANS))


@pytest.mark.parametrize("zeros", [False, True])
def test_an_exploring_step_pulls_any_arm(zeros: bool) -> None:
    """800 steps of four arms: each count is within five standard deviations of 200."""
    spec = Spec("epsilon-greedy", eps=1.0, zeros=zeros)
    pulls = Counter(classic(spec, [0.0, 0.0, 0.0, 1.0], 804).game.arms[4:].tolist())
    assert set(pulls) == {0, 1, 2, 3} and all(abs(count - 200) < 5 * math.sqrt(150) for count in pulls.values())


@pytest.mark.parametrize("spec", [Spec("epsilon-greedy", eps=0.5, zeros=True), Spec("epsilon-decreasing", zeros=True)])
def test_as_in_the_text_owners_send_a_zero_where_a_step_explores(spec: Spec) -> None:
    """The Controller is told nothing of it, and the game is that of the policy in the clear, with its own coins."""
    seen: list[Seen] = []
    done = classic(spec, budget=63, seen=seen)
    assert done.pulls_equal_reference
    exploring = [one.step for one in seen if not any(one.values)]
    coins, policy = CommonCoins(Seeds.of(1).common), spec.policy()
    assert exploring == [t for t in range(4, 64) if coins.explore(t, policy.explores(t))] != []
    assert len(seen) == 60 and done.counts.masks == 180
    roles = {entry.role for entry in done.ledger if entry.what == "whether a step explores"}
    assert roles == {"Comp", "owner 0", "owner 1", "owner 2"}
    plain = run(by_name(spec.name, 3, eps=spec.eps), _arms(), 63, SeededCoins(Seeds.of(1), 3), Seeds.of(1).rewards)
    assert done.game.equals(plain)


# ---- what is on the wire, and what Comp sees


@pytest.mark.parametrize("name", NAMES)
def test_lengths_tell_nothing_and_no_ciphertext_comes_twice(name: str) -> None:
    _, sent = noted(plays(Spec(name), 40, means=(0.0, 1.0, 0.5)))
    lengths: dict[tuple[str, str, int, int], set[int]] = {}
    for sender, to, raw in sent:
        if raw[5] in (Kind.SCORES, Kind.ANSWERS, Kind.EXPLORE):
            lengths.setdefault((sender, to, raw[5], raw[6]), set()).add(len(raw))
    assert all(len(found) == 1 for found in lengths.values())
    bodies = [raw[24:] for sender, _, raw in sent if sender.startswith("owner") and raw[5] == Kind.SCORES]
    assert len({body[2:] for body in bodies}) == len(bodies) > 20


def test_comp_gets_masked_scores_in_another_order_each_time() -> None:
    seen: list[Seen] = []
    means, pulls = np.linspace(0.1, 0.9, 8), 120
    done = classic("ucb", means, pulls, seen=seen)
    n, s = np.ones(8), np.zeros(8)
    seeds = Seeds.of(1)
    from bandits.samba import BernoulliArms

    arms = BernoulliArms(means)
    for arm in range(8):
        s[arm] = arms.reward(seeds.rewards, arm, arm + 1)
    places, masks = Counter(), []
    for one, arm in zip(seen, done.game.arms[8:], strict=True):
        scores = s / n + np.sqrt(2.0 * math.log(one.step) / n)
        values = np.array(one.values)
        assert np.allclose(np.sort(values) / values.max(), np.sort(scores) / scores.max(), rtol=1e-9)
        masks.append(values.max() / scores.max())
        places[int(values.argmax())] += 1
        s[arm] += arms.reward(seeds.rewards, arm, one.step)
        n[arm] += 1
    assert len(set(np.round(np.log2(masks)))) > 60  # scales over 1024 octaves
    assert len(places) == 8


def test_the_slots_are_the_owners_secret() -> None:
    """A message's slot is another one in every step, and Comp's answer comes back under it."""
    _, sent = noted(plays(Spec("ucb"), 60))
    slots = [raw[24:26] for sender, to, raw in sent if sender == "owner 1" and raw[5] == Kind.SCORES]
    assert Counter(slots).keys() == {b"\0\0", b"\1\0", b"\2\0"} and max(Counter(slots).values()) < 35


# ---- who learns what, and what it takes


def test_the_ledger_lists_what_each_one_sees() -> None:
    rows = {(entry.role, entry.what, entry.count) for entry in classic("ucb", budget=13).ledger}
    owner = {(f"owner {i}", what, count) for i in range(3) for what, count in
             (("policy and budget", 1), ("whether it is pulled", 10))}  # fmt: skip
    assert rows == owner | {
        ("DC", "cumulative reward", 1), ("Controller", "policy and budget", 1), ("Comp", "policy and budget", 1),
        ("Comp", "masked score, arms permuted: its ratio to the list's others", 30),
        ("Comp", "place of the selected arm, arms permuted", 10),
    }  # fmt: skip


def test_the_ledger_of_a_policy_that_explores_and_of_one_with_two_iterations() -> None:
    done = classic(Spec("epsilon-greedy", eps=0.5), budget=43)
    counts = {(entry.role, entry.what): entry.count for entry in done.ledger}
    asked = done.counts.masks // 3
    assert 0 < asked < 40
    assert counts["Controller", "whether a step explores"] == counts["Comp", "whether a step explores"] == 40
    assert counts["Comp", "masked score, arms permuted: its ratio to the list's others"] == 3 * asked
    counts = {(entry.role, entry.what): entry.count for entry in classic("pursuit", budget=43).ledger}
    assert counts["Comp", "masked score, arms permuted: its ratio to the list's others"] == 120
    assert counts["Comp", "masked weight, arms permuted: its exact ratio to the list's others"] == 120
    assert counts["Comp", "place of the selected arm, arms permuted"] == 80
    assert counts["owner 2", "whether its score is the largest"] == counts["owner 2", "whether it is pulled"] == 40


@pytest.mark.parametrize(("name", "iterations"), [("ucb", 1), ("pursuit", 2)])
def test_operations_by_participant(name: str, iterations: int) -> None:
    done = classic(name, budget=23)
    lists = 20 * iterations
    assert done.outcomes["owners 0 to 2"].counts == Operations(
        seals=3 * lists, opens=3 * lists, masks=3 * lists, paillier=Counts(encryptions=3)
    )
    assert done.outcomes["Comp"].counts == Operations(seals=3 * lists, opens=3 * lists)
    assert done.outcomes["Controller"].counts == Operations(permutations=2 * lists, paillier=Counts(additions=2))
    assert done.outcomes["DC"].counts == Operations(paillier=Counts(decryptions=1))
    assert set(done.seconds) == {"DC", "Controller", "Comp", "owners"} and min(done.seconds.values()) > 0
    assert done.seconds_per_step > 0 and done.cpu_seconds_per_step > 0


def test_progress_is_told() -> None:
    told: list[int] = []
    classic("ucb", budget=8, watch=told.append)
    assert told == [4, 5, 6, 7, 8]


# ---- going on later


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_run_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    whole = classic(name, budget=60)
    first = _stopped(name, 60, 30, tmp_path)
    assert (
        not first.finished
        and first.total is None
        and first.done == 30
        and first.game.arms.tolist() == whole.game.arms[:30].tolist()
    )
    assert first.pulls_equal_reference and first.cumulative_reward == first.game.total
    second = classic(name, budget=60, folder=tmp_path, resume=True)
    assert same(second) and second.game.equals(whole.game) and second.total == whole.total
    assert set(second.ledger) == set(whole.ledger)
    again = classic(name, budget=60, folder=tmp_path, resume=True)  # which only adds up
    assert again.total == whole.total and again.counts.seals == 0


def _stopped(name: str, budget: int, after: int, folder: Path) -> Any:
    steps: list[int] = []
    return classic(name, budget=budget, folder=folder, watch=steps.append, stop=lambda: steps[-1:] == [after])


def test_what_was_kept_serves_one_that_died(tmp_path: Path) -> None:
    def dies(step: int) -> None:
        if step == 47:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        classic("thompson", budget=60, folder=tmp_path, every=10, watch=dies)
    kept = sorted(path.name for path in tmp_path.glob("owners-0-to-2/*.npz"))
    assert kept == ["checkpoint-000000030.npz", "checkpoint-000000040.npz"]
    told: list[int] = []
    assert same(classic("thompson", budget=60, folder=tmp_path, resume=True, watch=told.append))
    assert told[0] == 41


def test_a_run_with_fresh_seeds_goes_on_with_them(tmp_path: Path) -> None:
    first = classic("thompson", budget=60, seed=None, folder=tmp_path, stop=lambda: True)
    assert first.done == 3
    assert same(classic("thompson", budget=60, seed=None, folder=tmp_path, resume=True))
    runs = [classic("ucb", [0.5] * 9, 40, seed=None) for _ in range(2)]
    assert not runs[0].game.equals(runs[1].game)


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    classic("ucb", folder=tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    assert (tmp_path / "run" / "run.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 61}, "budget = 60, this one has 61"), ({"seed": 2}, "other seeds"),
        ({"means": [0.1] * 3}, "other means"),
        ({"policy": "thompson"}, "policy = ucb, this one has thompson"),
    ],
)  # fmt: skip
def test_another_run_is_not_taken_up(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    _stopped("ucb", 60, 30, tmp_path)
    with pytest.raises(ConfigError, match=words):
        classic(**{"policy": "ucb", "budget": 60, "folder": tmp_path, "resume": True, **change})


def test_damage_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no checkpoint in"):
        classic("ucb", folder=tmp_path, resume=True)
    _stopped("ucb", 60, 30, tmp_path)
    for path in tmp_path.glob("owners-0-to-2/*.npz"):
        path.write_bytes(b"no archive")
    with pytest.raises(ConfigError, match="is damaged"):
        classic("ucb", budget=60, folder=tmp_path, resume=True)
    for path in tmp_path.glob("owners-0-to-2/*.npz"):
        path.unlink()
    with pytest.raises(ConfigError, match="no checkpoint of the owners"):
        classic("ucb", budget=60, folder=tmp_path, resume=True)
    path = tmp_path / "run.json"
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(ConfigError, match=r"run\.json is damaged"):
        classic("ucb", budget=60, folder=tmp_path, resume=True)


def test_a_run_that_is_none_leaves_what_is_there(tmp_path: Path) -> None:
    _stopped("ucb", 60, 30, tmp_path)
    with pytest.raises(ConfigError, match="order at least 3"):
        classic("ucb", budget=2, folder=tmp_path)
    assert same(classic("ucb", budget=60, folder=tmp_path, resume=True))
    classic("ucb", budget=20, folder=tmp_path, overwrite=True)  # a new run: the old one goes
    assert [path.name for path in tmp_path.glob("owners-0-to-2/*.npz")] == ["checkpoint-000000020.npz"]


def test_bits_are_agreed_on() -> None:
    with pytest.raises(ConfigError, match="hides nothing"):
        classic("ucb", bits=512, insecure=False)
    assert same(classic("ucb", bits=1024, insecure=False))
    assert BITS == 256

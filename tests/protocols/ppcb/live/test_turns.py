"""Turns of a service, all parties in this process: what is asked is served, and what is not kept is asked again."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import EVERYONE
from mpc.errors import ConfigError
from mpc.net.requests import ANYONE, Answer, Refused, Request
from mpc.session import Session
from offline import InProcessDealer
from protocols.ppcb.live import feeds, program, site
from protocols.ppcb.live.feeds import Feed, OwnerFeed, PayerFeed, PullerFeed
from protocols.ppcb.live.program import Live, Turns
from protocols.ppcb.program import PAYER, PULLER
from protocols.ppcb.settings import Settings
from protocols.run import chained_log
from protocols.run.desk import MemoryDesk, World
from protocols.run.rehearsal import rehearse

WIDTHS = (2, 1, 1)


class Owners(Feed):
    """All owners' parts."""

    def __init__(self, widths: Sequence[int], settings: Settings) -> None:
        bound, bits = settings.bound, settings.fraction_bits
        self.each = [OwnerFeed(owner, width, bound, bits=bits) for owner, width in enumerate(widths)]

    def rows(self, party: int, digests: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        return self.each[party].rows(party, digests)

    def over(self, digests: Sequence[int]) -> None:
        for feed in self.each:
            feed.over(digests)

    def put(self, *names: str) -> None:
        for feed, width in zip(self.each, WIDTHS):
            feed.put(names, [[0.5] * width] * len(names))


def settings_of(parties: int, **more: Any) -> Settings:
    given: dict[str, Any] = {"arms": 2, "dim": sum(WIDTHS[:parties]), "owners": parties, "batch": 4, "steps": 200}
    return Settings(**{**given, "widths": WIDTHS[:parties], "eps": 0.0, **more}).for_run(parties, 200)


class Played:
    """A service whose roles are all here.  folder: of the puller's and the payer's feeds."""

    def __init__(
        self, folder: Path, parties: int = 3, kept: Any = None, done: int = 0, *, program: Live | None = None,
        widths: Sequence[int] = WIDTHS,
    ) -> None:  # fmt: skip
        self.program = program or Live(settings_of(parties), parties, 10_000)
        self.owners = Owners(widths[:parties], self.program.settings)
        self.puller = PullerFeed(folder / "puller", most=4, beat=0.0)
        self.payer = PayerFeed(folder / "payer")
        self._begin(kept, done)

    def _begin(self, kept: Any, done: int) -> None:
        desk, parties = MemoryDesk(World(), start=done), self.program.parties
        clients = {}
        for role, feed in ((PULLER, self.puller), (PAYER, self.payer)):
            self.program.feed = feed
            clients[role] = self.program.client(role, {}, desk)
        self.session = Session.simulate(parties, InProcessDealer(parties), clients=clients)
        self.turns = Turns(self.session, self.program.settings, self.owners, kept, done)

    def back(self, kept: Any, done: int) -> Played:
        """The same roles in a new session, in which all go back to that."""
        again = copy(self)
        again._begin(kept, done)
        return again

    def ask(self, *names: str, key: str | None = None) -> Future[Answer]:
        request = Request(PULLER, None, repr(names), key)
        return self.puller.answers.once(
            "predict", request, lambda given: self.puller.predict(given, names, alone=len(names) == 1)
        )

    def pay(self, *pairs: tuple[int, float]) -> Answer:
        numbers, rewards = zip(*pairs)
        return self.payer.reward(Request(PAYER, None, "", None), numbers, rewards).result()

    def play(self, turns: int) -> None:
        for _ in range(turns):
            self.turns.turn()

    def learned(self) -> np.ndarray:
        words: np.ndarray = self.turns.state()["table"].sum(axis=0, dtype=np.uint64).view(np.int64)[0]
        return words * 2.0**-self.program.settings.state_bits


def test_arms_are_told_and_paid_for_as_in_plaintext(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b", "c")
    first, two = played.ask("a"), played.ask("b", "c")
    played.play(1)
    assert not first.done(), "not before all parties keep it"
    played.play(1)
    told = first.result(0)
    assert told["decision_id"] == 0 and [each["decision_id"] for each in two.result(0)["decisions"]] == [1, 2]
    assert played.pay((0, 1.0), (2, 1.0)) == {"received": 2}
    played.play(2)
    x = np.full(4, 0.5)
    counts = [0, 0]
    for each in (told, two.result(0)["decisions"][1]):
        counts[each["arm"]] += 1
    for arm, count in enumerate(counts):
        inverse = np.linalg.inv(np.eye(4) + count * np.outer(x, x))
        expected = np.concatenate([inverse, [inverse @ x * count]])
        assert np.abs(played.learned()[arm] - expected).max() < 1e-4
    assert (played.payer.learned, played.payer.passed_over, played.payer.waiting) == (2, 0, 0)


def test_a_turn_that_nobody_asks_anything_of_draws_nothing_and_all_others_the_same(tmp_path: Path) -> None:
    played = Played(tmp_path, 2)
    wanted = rehearse(played.program).plan.items
    assert wanted
    meter = played.session.meter
    before = meter.total.opened_bytes
    played.play(3)
    idle = meter.total.opened_bytes - before
    for feed, width in zip(played.owners.each, WIDTHS):
        feed.put(["a"], [[0.5] * width])
    answer = played.ask("a")
    played.play(2)
    assert answer.result(0) and meter.total.opened_bytes - before > 5 * idle
    told = {(entry.role, entry.what) for entry in played.session.ledger}
    assert ("puller", "arm") in told and not any(what == "arm" for role, what in told if role != "puller")
    assert sum(entry.count for entry in played.session.ledger if entry.what == "arm") == 1


def test_these_rows_are_all_that_the_ledger_of_a_turn_has(tmp_path: Path) -> None:
    """Each with how much was told: to everyone what SECURITY.md says that all parties learn, and nothing else."""
    played = Played(tmp_path)

    def told(turns: int) -> dict[tuple[str, str], int]:
        before = {(entry.role, entry.what, entry.why): entry.count for entry in played.session.ledger}
        played.play(turns)
        after = {(entry.role, entry.what, entry.why): entry.count for entry in played.session.ledger}
        return {key[:2]: count - before.get(key, 0) for key, count in after.items() if count > before.get(key, 0)}

    size = played.program.settings.batch
    each = {
        (PULLER, "turns that are kept"): 1, (PAYER, "turns that are kept"): 1,
        (EVERYONE, "numbers, and digests of ids"): 2 * size, (EVERYONE, "numbers of paid decisions"): size,
    }  # fmt: skip
    asked = {
        (EVERYONE, "whether an owner has its part"): 2 * 3, (PULLER, "arm"): 2,
        (PULLER, "whether all owners have a context"): 2,
    }  # fmt: skip
    assert told(1) == each, "where nobody asks anything"
    played.owners.put("a")
    played.ask("a")
    played.ask("b")
    assert told(1) == each | asked
    told(1)
    played.pay((0, 1.0))
    assert told(1) == each | {(PAYER, "whether a decision waited for its reward"): 1}


def test_a_context_that_an_owner_lacks_is_refused_and_the_others_are_served(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a")
    played.owners.each[0].put(["half"], [[0.5, 0.5]])
    half, whole = played.ask("half"), played.ask("a")
    played.play(2)
    assert whole.result(0)["decision_id"] == 1
    with pytest.raises(Refused, match="context 'half' lacks an owner's part"):
        half.result(0)
    played.pay((0, 1.0))
    played.play(2)
    assert played.payer.passed_over == 1, "it was never decided on"


def test_a_context_is_decided_on_once_though_it_is_asked_about_twice(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b")
    first, both, other = played.ask("a"), played.ask("a", "c"), played.ask("b")
    played.play(1)
    assert [len(feed.waiting) for feed in played.owners.each] == [2, 2, 2], "not before all parties keep it"
    played.play(1)
    assert first.result(0)["decision_id"] == 0
    assert [len(feed.waiting) for feed in played.owners.each] == [1, 1, 1]
    played.play(1)
    with pytest.raises(Refused, match="context 'a' lacks an owner's part"):
        both.result(0)
    assert other.result(0)
    assert [len(feed.waiting) for feed in played.owners.each] == [1, 1, 1], "as its turn had a request that is refused"


def test_what_was_decided_on_for_a_request_that_is_refused_waits_for_the_next_one(tmp_path: Path) -> None:
    """Else who sends what lacks, and asks again, would lack another each time."""
    played = Played(tmp_path)
    played.owners.put("a")
    both = played.ask("a", "b")
    played.play(2)
    with pytest.raises(Refused, match="context 'b' lacks an owner's part"):
        both.result(0)
    played.owners.put("b")
    both = played.ask("a", "b")
    played.play(2)
    assert len(both.result(0)["decisions"]) == 2 and not any(len(feed.waiting) for feed in played.owners.each)


def test_rewards_that_nothing_waits_for_are_passed_over_and_each_is_learned_once(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b")
    played.ask("a", "b")
    played.play(2)
    played.pay((0, 1.0), (77, 1.0))
    with pytest.raises(Refused, match="waits already"):
        played.pay((0, 1.0))
    played.play(2)
    played.pay((0, 1.0), (1, 0.0))
    played.play(2)
    assert (played.payer.learned, played.payer.passed_over) == (2, 2)


@pytest.mark.parametrize("bits", [20, 24])
def test_a_context_that_is_taken_is_one_that_its_party_shares(bits: int, tmp_path: Path) -> None:
    played = Played(tmp_path, 2, program=Live(settings_of(2, fraction_bits=bits, state_bits=24), 2, 100))
    first, second = played.owners.each
    unit = np.array([0.6, 0.8])
    with pytest.raises(Refused, match="bound is 1"):
        first.put(["a"], [(unit * (1.0 + 2.0 ** (1 - bits))).tolist()])
    first.put(["a"], [(unit * (1.0 + 2.0 ** (-1 - bits))).tolist()])
    second.put(["a"], [[0.5]])
    told = played.ask("a")
    played.play(2)
    assert told.result(0)["decision_id"] == 0


@pytest.mark.parametrize("role", ["owner 1", ANYONE])
def test_a_part_that_is_said_to_be_another_owner_s_is_refused(role: str, tmp_path: Path) -> None:
    place = site.place_of(Live(settings_of(2), 2, 10), "party 1", tmp_path, 1.0)
    (endpoint,) = place.site.endpoints.values()
    part = {"id": "a", "features": [0.5]}
    with pytest.raises(Refused, match="this is owner 1's service") as caught:
        endpoint.call(Request(role, {**part, "owner": 0}, "", None))
    assert caught.value.status == 403
    for own in (part, {**part, "owner": 1}):
        assert endpoint.call(Request(role, own, "", None)) == {"received": 1}


def test_a_decision_waits_until_as_many_later_ones_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_UNPAID", 3)
    played = Played(tmp_path, 2)

    def decide(name: str) -> None:
        for feed, width in zip(played.owners.each, WIDTHS):
            feed.put([name], [[0.5] * width])
        played.ask(name)
        played.play(2)

    for number in range(4):
        decide(f"first {number}")
        if number:
            played.pay((number, 1.0))
            played.play(2)
    played.pay((0, 1.0))
    played.play(2)
    assert (played.payer.learned, played.payer.passed_over) == (4, 0), "it was the only one that waited"
    for number in range(4, 8):
        decide(f"later {number}")
    played.pay((4, 1.0), (5, 1.0), (7, 1.0))
    played.play(2)
    assert (played.payer.learned, played.payer.passed_over) == (6, 1), "three later ones waited"
    assert (played.turns.state()["numbers"] >= 0).sum() == 1


def test_numbers_that_no_word_holds_are_refused_and_passed_over_where_they_were_taken(tmp_path: Path) -> None:
    played = Played(tmp_path)
    (endpoint,) = site._payer(played.payer, (0.0, 1.0)).site.endpoints.values()
    with pytest.raises(Refused, match="a whole number from 0"):
        endpoint.call(Request(PAYER, {"decision_id": 1 << 62, "reward": 1.0}, "", None))
    played.pay((1 << 62, 1.0), ((1 << 62) - 1, 1.0))  # as a release did that took both
    again = Played(tmp_path)
    assert again.payer.waiting == 1
    again.play(2)
    assert (again.payer.waiting, again.payer.passed_over) == (0, 1)


def test_a_turn_that_was_lost_is_asked_for_again_under_new_numbers(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b")
    first = played.ask("a")
    played.play(2)
    kept, done = {name: array.copy() for name, array in played.turns.state().items()}, played.turns.done
    lost = played.ask("b")
    played.pay((first.result(0)["decision_id"], 1.0))
    played.play(1)  # and here all go back to the state before
    again = played.back(kept, done)
    assert not lost.done()
    again.play(1)
    assert all(len(feed.waiting) == 1 for feed in again.owners.each), "what is asked for again is there"
    again.play(1)
    assert not any(len(feed.waiting) for feed in again.owners.each)
    assert lost.result(0)["decision_id"] > first.result(0)["decision_id"] + 1
    assert (again.payer.learned, again.payer.passed_over, again.payer.waiting) == (1, 0, 0), (
        "once, in the turn that counts"
    )
    arms = {entry.why: entry.count for entry in again.session.ledger if entry.what == "arm"}
    assert sorted(arms.values()) == [1, 1] and any("that were lost" in why for why in arms), "the lost turn's as well"


def test_a_turn_that_all_have_kept_is_asked_for_again_where_the_puller_did_not_hear_of_it(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a")
    told = played.ask("a")
    played.play(1)
    again = played.back(played.turns.state(), played.turns.done)
    again.play(1)
    assert not told.done() and all(len(feed.waiting) == 1 for feed in again.owners.each)
    again.play(1)
    assert told.result(0)["decision_id"] == 1 and not any(len(feed.waiting) for feed in again.owners.each)


def test_what_a_puller_and_a_payer_keep_outlasts_them(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b", "c")
    told = played.ask("a", key="k")
    played.play(2)
    played.pay((told.result(0)["decision_id"], 1.0))
    kept, done = {name: array.copy() for name, array in played.turns.state().items()}, played.turns.done
    again = Played(tmp_path, kept=kept, done=done)
    assert again.ask("a", key="k").result(0) == told.result(0) and again.payer.waiting == 1
    again.owners.put("c")
    later = again.ask("c")
    again.play(2)
    assert later.result(0)["decision_id"] > told.result(0)["decision_id"] and again.payer.learned == 1


def test_numbers_that_somebody_changed_are_not_gone_on_with(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a")
    played.ask("a")
    played.play(2)
    kept = tmp_path / "puller" / "numbers"
    kept.write_bytes(kept.read_bytes().replace(b"100", b"000"))
    with pytest.raises(ConfigError, match="no number is to be given twice"):
        PullerFeed(tmp_path / "puller", most=4, beat=0.0)


def test_rewards_beyond_the_steps_wait_for_more_of_them(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.turns._settings = replace(played.turns._settings, steps=1)
    played.owners.put("a", "b")
    played.ask("a", "b")
    played.play(2)
    played.pay((0, 1.0), (1, 0.5), (77, 1.0))
    played.play(2)
    assert (played.payer.learned, played.payer.passed_over, played.payer.waiting) == (1, 1, 1)
    with pytest.raises(Refused, match="give all roles more 'steps'"):
        played.pay((1, 1.0))
    kept, done = {name: array.copy() for name, array in played.turns.state().items()}, played.turns.done
    again = Played(tmp_path, kept=kept, done=done)
    again.play(2)
    assert (again.payer.learned, again.payer.waiting) == (1, 0)
    assert again.program.kept_for() == Live(replace(again.program.settings, steps=7), 3, 9).kept_for()
    assert again.program.kept_for() != Live(replace(again.program.settings, state_bits=28), 3, 9).kept_for()


def test_a_puller_that_lost_its_numbers_gives_none_again(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.owners.put("a", "b")
    played.ask("a")
    played.play(2)
    kept, done = {name: array.copy() for name, array in played.turns.state().items()}, played.turns.done
    again = Played(tmp_path / "elsewhere", kept=kept, done=done)
    again.owners.put("b")
    again.ask("b")
    with pytest.raises(ConfigError, match="given before: its owner puts back the folder 'serve'"):
        again.play(1)


def test_logs_begin_anew_with_what_still_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "_LOG", 0)
    played = Played(tmp_path)
    played.owners.put("a", "b")
    told = played.ask("a", key="k")
    played.play(2)
    played.pay((0, 1.0))
    played.ask("b", key="l")
    played.play(2)
    logs = [tmp_path / "puller" / "answers", tmp_path / "payer" / "rewards"]
    sizes = [log.stat().st_size for log in logs]
    again = Played(tmp_path)
    assert again.ask("a", key="k").result(0) == told.result(0) and again.payer.waiting == 0
    assert [log.stat().st_size for log in logs] == sizes, "a line each"


def test_on_a_full_disk_nothing_is_said_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(tmp_path)
    played.owners.put("a")
    told = played.ask("a", key="k")
    played.play(1)

    def full(log: int, record: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(chained_log, "append", full)
    with pytest.raises(Refused, match="no room to keep a reward") as refused:
        played.pay((0, 1.0))
    assert refused.value.status == 503 and played.payer.waiting == 0
    with pytest.raises(ConfigError, match=r"No space left on device.*make room"):
        played.puller.kept()
    assert not told.done()
    played.puller.end()
    with pytest.raises(Refused, match="ask again when it is back"):
        told.result(0)


def test_those_who_wait_at_the_end_hear_of_it(tmp_path: Path) -> None:
    played = Played(tmp_path)
    waits = played.ask("a")
    with pytest.raises(Refused, match="4 contexts at most"):
        played.ask(*"abcde")
    played.puller.end()
    with pytest.raises(Refused, match="ask again when it is back"):
        waits.result(0)
    with pytest.raises(Refused, match="ask again when it is back"):
        played.ask("a")


def test_options_that_a_service_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="leave out delay and replicas"):
        Live(settings_of(3, delay=1), 3, 10)

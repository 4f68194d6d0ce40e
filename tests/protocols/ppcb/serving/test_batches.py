"""Requests that wait are one batch; each is served as a whole, or refused as a whole and alone."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mpc.net.requests import Refused
from protocols.ppcb.serving.durable import DurableBandit
from protocols.ppcb.serving.service import Wanted

from .services import Asked, asked


class Held:
    """Keeps the bandit's thread in its first batch until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.go, decide = threading.Event(), threading.Event(), DurableBandit.decide

        def waiting(bandit: DurableBandit, rows: Any) -> Any:
            self.there.set()
            assert self.go.wait(300)
            return decide(bandit, rows)

        monkeypatch.setattr(DurableBandit, "decide", waiting)


def begun(made: Asked, monkeypatch: pytest.MonkeyPatch) -> Held:
    """A first batch is under way; what comes now waits."""
    made.send("first")
    held = Held(monkeypatch)
    made.later("puller", "/predict", {"id": "first"})
    assert held.there.wait(300)
    return held


def test_what_waits_is_taken_together_and_one_that_is_refused_hurts_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked(tmp_path) as made:
        paid = made.decide("a", "b", "c")
        before = made.service.measures.total("batches")
        held = begun(made, monkeypatch)
        made.send("d", "e")
        asks = [
            made.later("payer", "/reward", {"decision_id": number, "reward": 1}, key)
            for number, key in ((0, None), (1, "k"), (0, None), (99, None), (1, "k"))
        ]
        asks += [made.later("puller", "/predict", {"ids": ["d", "e"]})]
        held.go.set()
        ends = [_end(ask) for ask in asks]
        assert ends[:5] == [{"learned": 1}, {"learned": 1}, 409, 404, {"learned": 1}] and len(ends[5]["decisions"]) == 2
        assert made.service.measures.total("batches") == before + 3, "the one that was held, all rewards, all decisions"
        assert made.service.found.bandit.learned == 2 and paid[2]["decision_id"] in made.service.found.held.open


def test_while_many_rewards_wait_nobody_waits_long_for_an_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(tmp_path) as made:
        together = made.service.found.learn_batch
        paid = made.decide(*(f"early {at}" for at in range(3 * together)))
        held = begun(made, monkeypatch)
        made.send("late")
        rewards = [made.later("payer", "/reward", {"decision_id": each["decision_id"], "reward": 1}) for each in paid]
        late, learned = made.later("puller", "/predict", {"id": "late"}), list[int]()
        late.add_done_callback(lambda _: learned.append(made.service.found.bandit.learned))
        held.go.set()
        assert all(_end(ask) == {"learned": 1} for ask in rewards) and _end(late)["decision_id"] == len(paid) + 1
        assert learned == [together], "one batch of rewards went before it"


def _end(ask: Any) -> Any:
    assert isinstance(ask, Future)
    try:
        return ask.result(60.0)
    except Refused as refused:
        return refused.status


def test_so_many_wait_and_a_batch_has_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(tmp_path, most=2, longest=3) as made:
        held = begun(made, monkeypatch)
        made.send(*"abcde")
        waiting = [made.later("puller", "/predict", {"id": name}) for name in "abc"]
        with pytest.raises(Refused, match="wait already: ask again later") as caught:
            made.later("puller", "/predict", {"id": "d"})
        assert caught.value.status == 503 and caught.value.retry == 1
        held.go.set()
        assert [_end(ask)["decision_id"] for ask in waiting] == [1, 2, 3]
        assert made.service.measures.total("batches") == 3
        assert made.ask("puller", "/predict", {"id": "d"})["decision_id"] == 4, "asked again as it was, its parts wait"
        assert len(made.decide(*"uvwxyz")) == 6, "one request of more is a batch of its own"


def test_what_waits_is_answered_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asked(tmp_path) as made:
        held = begun(made, monkeypatch)
        made.send("a")
        late = made.later("puller", "/predict", {"id": "a"})
        held.go.set()
    assert _end(late)["decision_id"] == 1
    with pytest.raises(Refused, match="the service ends"):
        made.later("payer", "/reward", {"decision_id": 0, "reward": 1})


def test_after_an_error_of_ours_nothing_is_served_and_all_who_wait_hear_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked(tmp_path) as made:
        (told,) = made.decide("a")
        usual = DurableBandit.pay

        def broken(*_: Any) -> None:
            raise ZeroDivisionError("0.123456789")

        monkeypatch.setattr(DurableBandit, "pay", broken)
        with pytest.raises(Refused, match="start it again") as caught:
            made.pay(told["decision_id"])
        assert caught.value.status == 503 and "0.123" not in "".join(made.log) and "ZeroDivisionError" in made.log[0]
        assert made.status("payer", "/reward", {"decision_id": 0, "reward": 1}) == 503
        assert made.service.endpoints.pages()["/healthz"]()[0] == 503
    monkeypatch.setattr(DurableBandit, "pay", usual)
    with asked(tmp_path) as made:
        assert made.pay(told["decision_id"]) == {"learned": 1}


def test_who_waits_behind_an_error_of_ours_hears_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes on from a half."""
    with asked(tmp_path) as made:
        (told,) = made.decide("a")
        held = begun(made, monkeypatch)
        made.send("late")

        def broken(*_: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(DurableBandit, "pay", broken)
        pay = made.later("payer", "/reward", {"decision_id": told["decision_id"], "reward": 1})
        late = made.later("puller", "/predict", {"id": "late"})
        held.go.set()
        assert (_end(pay), _end(late)) == (503, 503)


def test_a_batch_learns_what_it_was_paid(tmp_path: Path) -> None:
    """Nothing is explored, so the arm that alone was paid is pulled from there on."""
    with asked(tmp_path, Wanted(arms=2, owners=[2, 1], eps=0.0, steps=100)) as made:
        numbers = made.decide(*"abcdefgh")
        good = numbers[0]["arm"]
        pays = [{"decision_id": each["decision_id"], "reward": float(each["arm"] == good)} for each in numbers]
        made.ask("payer", "/reward", {"rewards": pays})
        assert {each["arm"] for each in made.decide(*"ijklmnop")} == {good}

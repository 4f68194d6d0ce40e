"""A service whose process ends without a word goes on: nothing that was answered is lost, no number is given twice."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError
from mpc.net.requests import Refused
from protocols.ppcb.serving.durable import DurableBandit
from protocols.ppcb.serving.service import Wanted

from ..library.runs import CLOSE, regressions
from .services import WANTED, Asked, asked


def killed(folder: Path, copy: Path) -> Path:
    """The folder as a kill leaves it at this moment."""
    shutil.copytree(folder, copy)
    return copy


def table(made: Asked) -> np.ndarray:
    """The regressions in the clear."""
    return regressions(made.service.found.bandit)


def test_what_was_answered_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    with asked(tmp_path / "one") as made:
        first = made.decide("a", "b", key="k")
        made.pay(first[0]["decision_id"], 0.75, key="p")
        (third,) = made.decide("c")
        made.send("waits")
        left = killed(tmp_path / "one", tmp_path / "two")
        before = table(made)
    with asked(left, Wanted()) as again:
        assert np.abs(table(again) - before).max() < CLOSE, "learned again, with other masks"
        assert again.service.found.bandit.learned == 1 and again.told() == 3
        assert again.ask("puller", "/predict", {"ids": ["a", "b"]}, "k")["decisions"] == first
        assert again.pay(0, 0.75, key="p") == {"learned": 1} and again.service.found.bandit.learned == 1
        assert again.status("payer", "/reward", {"decision_id": 0, "reward": 1}) == 409
        assert again.status("puller", "/predict", {"id": "waits"}) == 404, "parts of contexts are sent again"
        again.pay(first[1]["decision_id"])
        again.pay(third["decision_id"])
        (fourth,) = again.decide("a")
        assert fourth["decision_id"] > third["decision_id"] and again.told() == 4


def test_a_save_begins_the_log_anew_and_nothing_changes(tmp_path: Path) -> None:
    with asked(tmp_path / "one") as made:
        (first,) = made.decide("a", key="k")
        made.pay(first["decision_id"])
        (second,) = made.decide("b")
        size, before = made.service.found.log_bytes, table(made)
    with asked(tmp_path / "one") as made:  # it was saved at the end
        assert made.service.found.log_bytes < size and np.array_equal(table(made), before)
        assert made.ask("puller", "/predict", {"ids": ["a"]}, "k")["decisions"] == [first]
        made.pay(second["decision_id"])
        left = killed(tmp_path / "one", tmp_path / "two")
    with asked(left) as again:
        assert again.service.found.bandit.learned == 2


def test_a_kill_between_a_save_and_its_log_learns_nothing_twice(tmp_path: Path) -> None:
    with asked(tmp_path / "one") as made:
        numbers = [each["decision_id"] for each in made.decide("a", "b")]
        made.pay(numbers[0])
        made.service.found.bandit.save(tmp_path / "one" / "bandit")
        left = killed(tmp_path / "one", tmp_path / "two")
        before = table(made)
    with asked(left) as again:
        assert np.array_equal(table(again), before) and again.service.found.bandit.learned == 1
        again.pay(numbers[1])


def test_a_line_that_a_kill_cut_short_was_never_answered(tmp_path: Path) -> None:
    with asked(tmp_path / "one") as made:
        made.decide("a")
        left = killed(tmp_path / "one", tmp_path / "two")
        whole = made.service.found.log_bytes
        made.decide("b")
        cut = (tmp_path / "one" / "service" / "log").read_bytes()[: whole + 50]
    (left / "service" / "log").write_bytes(cut)
    with asked(left) as again:
        (told,) = again.decide("c")
        assert told["decision_id"] == 1, "the journal of the copy knows of one"
        again.pay(0)


def test_a_log_that_was_changed_is_refused(tmp_path: Path) -> None:
    with asked(tmp_path) as made:
        made.decide("a")
        left = killed(tmp_path, tmp_path.parent / f"{tmp_path.name}-changed")
    log = left / "service" / "log"
    raw = bytearray(log.read_bytes())
    raw[len(raw) // 2] ^= 1
    log.write_bytes(raw)
    with pytest.raises(ConfigError, match="is damaged, or not of this place: put it back"), asked(left):
        pass


@pytest.mark.parametrize("lost", ["service/log", "service", "emptied"])
def test_without_its_log_a_save_is_refused(lost: str, tmp_path: Path) -> None:
    """Rewards that were answered would be forgotten."""
    with asked(tmp_path / "one") as made:
        (told,) = made.decide("a")
        made.pay(told["decision_id"])
        left = killed(tmp_path / "one", tmp_path / "two")
    with pytest.raises(ConfigError, match=r"log is missing or empty.*: put it back, or begin in another folder"):
        DurableBandit(without(left, lost), Wanted().make)


def test_a_log_that_is_removed_while_it_is_written_comes_back_whole(tmp_path: Path) -> None:
    with asked(tmp_path / "one") as made:
        numbers = [each["decision_id"] for each in made.decide("a", "b")]
        made.pay(numbers[0])
        (tmp_path / "one" / "service" / "log").unlink()
        made.pay(numbers[1])
        left = killed(tmp_path / "one", tmp_path / "two")
    with asked(left) as again:
        assert again.service.found.bandit.learned == 2


def test_a_log_that_is_emptied_while_it_is_written_ends_the_service(tmp_path: Path) -> None:
    with asked(tmp_path) as made:
        (told,) = made.decide("a")
        os.truncate(tmp_path / "service" / "log", 0)
        assert made.status("payer", "/reward", {"decision_id": told["decision_id"], "reward": 1}) == 503
        assert "log was emptied while it was written: put it back" in made.log[0]


def without(folder: Path, lost: str) -> Path:
    """What an operator removed."""
    if lost == "service":
        shutil.rmtree(folder / lost)
    elif lost == "emptied":
        os.truncate(folder / "service" / "log", 0)
    else:
        (folder / lost).unlink()
    return folder


@pytest.mark.parametrize("ended", [False, True])
def test_a_log_without_its_save_is_refused(ended: bool, tmp_path: Path) -> None:
    """Numbers of decisions would be given twice; with an older save, what was learned before its log began is lost."""
    with asked(tmp_path / "one") as made:
        first = killed(tmp_path / "one", tmp_path / "first")
        made.decide("a")
        left = killed(tmp_path / "one", tmp_path / "two")
    left = tmp_path / "one" if ended else left
    shutil.rmtree(left / "bandit")
    with pytest.raises(ConfigError, match="bandit is missing, and its log is there: put it back"):
        DurableBandit(left, WANTED.make)
    assert not (left / "bandit").exists()
    if ended:
        shutil.copytree(first / "bandit", left / "bandit")
        with pytest.raises(ConfigError, match=r"bandit is of before its log began: put that of .*log back"):
            DurableBandit(left, WANTED.make)


def test_where_no_room_is_left_nothing_is_answered_and_it_goes_on_when_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked(tmp_path / "one") as made:
        (first,) = made.decide("a")
        made.send("b", "c")
        full, flush = [True], os.fdatasync

        def flushed(log: int) -> None:
            if full[0] and os.readlink(f"/proc/self/fd/{log}").endswith("service/log"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            flush(log)

        monkeypatch.setattr(os, "fdatasync", flushed)
        with pytest.raises(Refused, match="no room to keep") as caught:
            made.pay(first["decision_id"])
        assert caught.value.status == 503 and caught.value.retry
        assert made.status("puller", "/predict", {"id": "b"}) == 503
        assert made.service.found.bandit.learned == 0 and len(made.log) == 2 and "make room there" in made.log[0]
        full[0] = False
        assert made.pay(first["decision_id"]) == {"learned": 1}
        assert made.ask("puller", "/predict", {"id": "c"})["decision_id"] == 2, "number 1 was noted and never told"
        assert made.ask("puller", "/predict", {"id": "b"})["decision_id"] == 3, "its parts wait until it is decided on"
        left = killed(tmp_path / "one", tmp_path / "two")
    with asked(left) as again:
        assert again.service.found.bandit.learned == 1


def test_where_the_journal_has_no_room_a_context_waits_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with asked(tmp_path) as made:
        made.send("a")
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", full)
            assert made.status("puller", "/predict", {"id": "a"}) == 503
        assert made.ask("puller", "/predict", {"id": "a"})["arm"] in ("a", "b")


def test_two_services_of_one_folder_are_refused(tmp_path: Path) -> None:
    with asked(tmp_path), pytest.raises(ConfigError), asked(tmp_path):
        pass


def test_a_folder_goes_on_with_what_it_was_made_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="say --arms and --owners"), asked(tmp_path, Wanted()):
        pass
    with asked(tmp_path):
        pass
    for other, said in (
        (Wanted(arms=3), "--arms 2, not 3"), (Wanted(eps=0.5), "--eps 0.1, not 0.5"),
        (Wanted(steps=10), "declared for --steps 1,000, and never for fewer"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said), asked(tmp_path, other):
            pass
    with asked(tmp_path, WANTED):
        pass


def test_more_steps_are_learned_from_when_they_are_declared(tmp_path: Path) -> None:
    with asked(tmp_path, Wanted(arms=2, owners=[2, 1], steps=2)) as made:
        numbers = [each["decision_id"] for each in made.decide("a", "b", "c")]
        made.pay(numbers[0])
        with pytest.raises(Refused, match="2 rewards were declared: start the service with more --steps"):
            made.ask("payer", "/reward", {"rewards": [{"decision_id": n, "reward": 1} for n in numbers[1:]]})
        made.pay(numbers[1])
    with asked(tmp_path, Wanted(steps=10)) as made:
        made.pay(numbers[2])
        assert made.service.found.bandit.learned == 3


def test_a_save_is_due_after_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocols.ppcb.serving.durable._MOST_LEARNED", 3)
    with asked(tmp_path) as made:
        for each in made.decide("a", "b", "c", "d"):
            made.pay(each["decision_id"])
        assert made.service.measures.total("saves") == 1


def test_a_first_start_that_was_killed_begins_again(tmp_path: Path) -> None:
    half = tmp_path / "bandit.new" / "party-0"
    half.mkdir(parents=True)
    (half / "checkpoint-1.npz").write_bytes(b"half")
    assert DurableBandit(tmp_path, WANTED.make).bandit.learned == 0 and not half.exists()


def test_a_first_start_begins_again_wherever_it_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each flush and each move of a file."""
    left: list[Path] = []

    def leaving(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            left.append(killed(tmp_path / "one", tmp_path / f"left {len(left)}"))
            return real(*given)

        return call

    with monkeypatch.context() as patched:
        for name in ("fsync", "rename", "replace"):
            patched.setattr(os, name, leaving(getattr(os, name)))
        (tmp_path / "one").mkdir()
        DurableBandit(tmp_path / "one", WANTED.make)
    assert len(left) > 20
    for folder in left:
        assert DurableBandit(folder, WANTED.make).decide(np.zeros((1, 3)))[0] == [0]


def test_warming_up_leaves_no_trace(tmp_path: Path) -> None:
    with asked(tmp_path) as made:
        found = made.service.found
        size, before = found.log_bytes, table(made)
        found.warm_up(3)
        assert found.log_bytes == size and np.array_equal(table(made), before) and made.told() == 0
        assert made.decide("a")[0]["decision_id"] == 0

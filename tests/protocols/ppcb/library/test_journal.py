"""What was told after a save is counted when it is loaded, and its numbers are spent: a journal goes before arms."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.client import HostedClient
from mpc.errors import ConfigError
from mpc.ledger import Entry
from protocols.ppcb import PrivateContextualBandit, evaluate_offline
from protocols.ppcb.library.journal import Journal, Told
from protocols.run.tagged_file import write_kept
from tests.parties.threads import side_by_side

from .runs import OUTCOMES, X, made
from .test_offline_evaluation import log

load = PrivateContextualBandit.load


def counts(bandit: PrivateContextualBandit) -> list[int]:
    return [entry.count for entry in bandit.ledger]


def journal(folder: Path) -> Path:
    return folder / "party-0" / "journal"


def test_what_was_told_after_a_save_is_counted_and_its_numbers_are_spent(tmp_path: Path, parties: int) -> None:
    bandit = made(parties=parties)
    bandit.predict(X[:2])
    bandit.save(tmp_path)
    bandit.predict(X[2:30])
    again = load(tmp_path)
    assert counts(again) == [30] and again.unpaid == (0, 1)
    with pytest.raises(ValueError, match=r"decision 5 was .* lost with what came after a save"):
        again.learn(decision_id=5, reward=1.0)
    assert again.predict(X[30:60]).decision_id.tolist() == list(range(30, 60))
    again.save(tmp_path)
    assert counts(load(tmp_path)) == [60] and load(tmp_path).unpaid == (0, 1, *range(30, 60))


def test_all_that_is_told_is_counted(tmp_path: Path) -> None:
    """Propensities, overridden decisions, and what a replay tells."""
    bandit = made()
    bandit.save(tmp_path)
    told = bandit.predict(X[:3], reveal_propensity=True)
    bandit.learn(None, (told.arm + 1) % 4, np.ones(3), decision_id=told.decision_id)
    evaluate_offline(bandit, log(10), batch=5)
    assert len(list(bandit.ledger)) == 4 and list(load(tmp_path).ledger) == list(bandit.ledger)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Flushes of a journal, and what the puller hears, as they happen."""
    seen: list[str] = []

    def before(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (seen.append(name), real(*given))[1]

    monkeypatch.setattr(os, "fdatasync", before("flushed", os.fdatasync))
    monkeypatch.setattr(HostedClient, "learn", before("told", HostedClient.learn))
    return seen


@pytest.mark.parametrize("revealed", [False, True])
def test_a_call_is_flushed_once_before_it_tells(revealed: bool, tmp_path: Path, order: list[str]) -> None:
    bandit = made()
    bandit.save(tmp_path)
    told = bandit.predict(X[:5], reveal_propensity=revealed)
    assert order == ["flushed", "told", *(["told"] if revealed else [])]
    bandit.learn(decision_id=told.decision_id, reward=np.ones(5))
    assert order.count("flushed") == 1, "the puller learns nothing from a reward"


def test_nothing_is_told_that_cannot_be_noted(
    tmp_path: Path, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    bandit = made()
    bandit.save(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", full)
        with pytest.raises(ConfigError, match=r"journal cannot be written \(No space left on device\).*: make room"):
            bandit.predict(X[0])
        patched.setattr(os, "fsync", full)
        with pytest.raises(ConfigError, match=r"written \(No space left on device\): make room there"):
            bandit._service._journals[tmp_path].begin(Told(0, ()), 0)
    assert order == []
    assert bandit.predict(X[1]).decision_id == 1, "a number that was noted is spent"
    assert load(tmp_path).predict(X[2]).decision_id == 2


def test_a_line_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    bandit = made()
    bandit.save(tmp_path / "whole")
    bandit.predict(X[:2])
    first = journal(tmp_path / "whole").stat().st_size
    bandit.predict(X[2:5])
    last = journal(tmp_path / "whole").stat().st_size
    for size in range(first, last + 1, 9):
        folder = tmp_path / str(size)
        shutil.copytree(tmp_path / "whole", folder)
        os.truncate(journal(folder), size)
        again = load(folder)
        told = 5 if size == last else 2
        assert counts(again) == [told] and again.predict(X[5]).decision_id == told
        assert counts(load(folder)) == [told + 1], "what is written behind half a line counts"


def noted(home: Path, calls: int) -> bytes:
    """The journal of a bandit that told an arm in each of so many calls after its save."""
    write_kept(home / "kept", b"")
    own = Journal(home)
    for told in range(calls + 1):
        own.append(Told(told, (Entry("puller", "arm", told, "it is pulled"),)))
    assert Journal(home).told() == own.told() == Told(calls, (Entry("puller", "arm", calls, "it is pulled"),))
    return (home / "journal").read_bytes()


def test_no_byte_of_a_journal_is_changed_unseen(tmp_path: Path) -> None:
    """Not of its form either: a line that seems to be none is no reason to take the one before it."""
    raw = noted(tmp_path, 2)
    lines = raw.splitlines(keepends=True)
    spoilt = [raw[:at] + bytes([raw[at] ^ 1 << at % 8]) + raw[at + 1 :] for at in range(len(raw))]
    orders = ([0, 2], [1, 2], [0, 1, 2, 2], [0, 2, 1])
    spoilt += [b"".join(lines[at] for at in order) for order in orders]
    zeros = [(0, 42), (len(lines[0]), 42), (len(lines[0]) - 34, 34), (len(lines[0] + lines[1]) - 34, 34), (100, 99)]
    zeros += [(0, len(lines[0])), (0, len(lines[0]) + 42), (90, len(lines[0]) - 90), (90, len(lines[0]))]
    spoilt += [raw[:at] + bytes(count) + raw[at + count :] for at, count in zeros]
    for content in (*spoilt, raw + b"x" * 99, raw[:30], bytes(len(raw)), b"nonsense"):
        (tmp_path / "journal").write_bytes(content)
        with pytest.raises(ConfigError, match="journal is damaged, or not of this place: put it back"):
            Journal(tmp_path)


def test_what_a_crash_leaves_of_the_last_line_is_left_out(tmp_path: Path) -> None:
    """It is cut short, or pages of it never came to the disk; what is written next is read."""
    raw = noted(tmp_path, 2)
    lines = raw.splitlines(keepends=True)
    whole = lines[0] + lines[1]
    torn = [lines[2][:size] for size in range(len(lines[2]))]
    for tail in (*torn, bytes(len(lines[2])), lines[2][:90] + bytes(len(lines[2]) - 90)):
        (tmp_path / "journal").write_bytes(whole + tail)
        own = Journal(tmp_path)
        assert own.told().next_decision == 1
        own.append(Told(9, ()))
        assert Journal(tmp_path).told() == Told(9, ())
        assert (tmp_path / "journal").read_bytes().startswith(whole + b"0")


@pytest.mark.parametrize("lost", ["removed", "emptied", "of the save before"])
def test_without_the_journal_of_its_save_a_bandit_is_not_loaded(lost: str, tmp_path: Path) -> None:
    """What was told since then would be forgotten, and decisions would get numbers of others."""
    bandit = made()
    bandit.save(tmp_path)
    before = journal(tmp_path).read_bytes()
    bandit.predict(X[:7])
    bandit.save(tmp_path)
    bandit.predict(X[:5])
    now = journal(tmp_path).read_bytes()
    journal(tmp_path).unlink()
    if lost != "removed":
        journal(tmp_path).write_bytes(before if lost == "of the save before" else b"")
    with pytest.raises(ConfigError, match=r"less than this one, .* would be forgotten: put back that of this save"):
        load(tmp_path)
    journal(tmp_path).write_bytes(now)
    assert counts(load(tmp_path)) == [12]


def test_a_journal_of_an_earlier_save_is_known_where_its_counts_are_the_same(tmp_path: Path) -> None:
    bandit = made()
    told = bandit.predict(X[:2])
    bandit.save(tmp_path)
    before = journal(tmp_path).read_bytes()
    bandit.learn(decision_id=told.decision_id, reward=np.ones(2))
    bandit.save(tmp_path)
    bandit.predict(X[2:9])
    now = journal(tmp_path).read_bytes()
    journal(tmp_path).write_bytes(before)
    with pytest.raises(ConfigError, match=r"of an earlier save, .* would be forgotten: put back that of this save"):
        load(tmp_path)
    journal(tmp_path).write_bytes(now)
    assert counts(load(tmp_path)) == [9]


@pytest.mark.parametrize("lost", ["removed", "emptied"])
def test_nor_is_one_that_had_told_nothing_when_it_was_saved(lost: str, tmp_path: Path) -> None:
    """Counts of zero are no less than those of such a save, so that there is a journal must be seen."""
    bandit = made()
    bandit.save(tmp_path)
    assert counts(load(tmp_path)) == [], "it told nothing yet, and its journal says so"
    bandit.predict(X[:5])
    now = journal(tmp_path).read_bytes()
    journal(tmp_path).unlink()
    if lost == "emptied":
        journal(tmp_path).touch()
    with pytest.raises(ConfigError, match=r"journal below .* is gone, .* would be forgotten: put back that of this"):
        load(tmp_path)
    journal(tmp_path).write_bytes(now)
    assert load(tmp_path).predict(X[5]).decision_id == 5


def test_of_two_that_go_on_with_one_save_the_second_is_refused(tmp_path: Path) -> None:
    made().save(tmp_path)
    first, second = load(tmp_path), load(tmp_path)
    second.predict(X[0])
    with pytest.raises(ConfigError, match="the same numbers to decisions: go on with one of them, loaded anew"):
        first.predict(X[0])
    with pytest.raises(ConfigError, match="a later state"):
        first.save(tmp_path)
    assert load(tmp_path).predict(X[0]).decision_id == 1


def test_a_journal_of_one_length_and_inode_may_be_another(tmp_path: Path) -> None:
    """A file that takes the place of one gets the inode of the one before it, and counts have equally many digits."""
    write_kept(tmp_path / "kept", b"")
    Journal(tmp_path).begin(Told(20, ()), 0)
    first, second = Journal(tmp_path), Journal(tmp_path)
    second.append(Told(21, ()))
    for _ in range(2):
        second.begin(Told(21, ()), 0)
    assert first.changed and not second.changed
    with pytest.raises(ConfigError, match="something else goes on with this bandit"):
        first.append(Told(21, ()))
    with pytest.raises(ConfigError, match="something else goes on with this bandit"):
        first.begin(Told(21, ()), 0)
    assert Journal(tmp_path).told() == Told(21, ())


def test_threads_that_begin_a_journal_together_do_not_lose_a_line(tmp_path: Path) -> None:
    """Who waited for the file finds that another took its place."""
    for at in range(20):
        home = tmp_path / str(at)
        write_kept(home / "kept", b"")
        own = [Journal(home) for _ in range(4)]
        ended = side_by_side(*[lambda one=one, told=told: one.append(Told(told, ())) for told, one in enumerate(own)])
        (said,) = [told for told, outcome in enumerate(ended) if outcome.error is None]
        assert Journal(home).told() == Told(said, ())


def test_every_folder_of_a_bandit_is_told(tmp_path: Path) -> None:
    bandit = made()
    for name in ("one", "two", "gone"):
        bandit.save(tmp_path / name)
    shutil.rmtree(tmp_path / "gone")
    bandit.predict(X[:3])
    assert [counts(load(tmp_path / name)) for name in ("one", "two")] == [[3], [3]]
    assert not (tmp_path / "gone").exists()


def test_a_folder_that_is_moved_is_told_too(tmp_path: Path) -> None:
    """An operator puts it elsewhere while its bandit is at work; what is put in its place is not gone on with."""
    bandit = made()
    bandit.save(tmp_path / "here")
    bandit.predict(X[:2])
    shutil.copytree(tmp_path / "here", tmp_path / "backup")
    for name in ("there", "elsewhere"):
        (tmp_path / "here").rename(tmp_path / name)
        bandit.predict(X[:3])
        (tmp_path / name).rename(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    again = load(tmp_path / "there")
    assert counts(again) == [8] and again.predict(X[0]).decision_id == 8
    with pytest.raises(ConfigError, match="something else goes on with this bandit"):
        bandit.predict(X[0])
    (tmp_path / "backup").rename(tmp_path / "here")
    with pytest.raises(ConfigError, match="something else goes on with this bandit"):
        bandit.predict(X[0])


def test_a_journal_begins_anew_with_a_save(tmp_path: Path) -> None:
    bandit = made()
    bandit.save(tmp_path)
    for row in range(6):
        bandit.predict(X[row])
    assert len(journal(tmp_path).read_bytes().splitlines()) == 1 + 6
    bandit.learn(decision_id=0, reward=OUTCOMES[0, 0])
    bandit.save(tmp_path)
    assert len(journal(tmp_path).read_bytes().splitlines()) == 1
    assert counts(load(tmp_path)) == [6]

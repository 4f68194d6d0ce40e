"""A loaded bandit goes on; each party's file has its own shares alone, and files of others are refused."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.ppcb import PrivateContextualBandit
from protocols.run.checkpoint import Checkpoint

from .runs import CLOSE, OUTCOMES, X, made, regressions, saved


def test_a_loaded_bandit_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    first = saved(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    second = PrivateContextualBandit.load(tmp_path / "second", seed=5)
    assert list(second.ledger) == list(first.ledger) and second.cost == first.cost
    assert (second.arms, second.unpaid, second.learned) == (first.arms, first.unpaid, first.learned)
    outcomes = []
    for bandit in (first, second):
        bandit.learn(decision_id=[4, 1, 0], reward=[1.0, 0.5, 0.0])
        bandit.learn(decision_id=2, reward=0.25, action=4)
        outcomes.append((bandit.predict(X[40:60]).arm.tolist(), bandit.add_arm()))
    assert outcomes[0] == outcomes[1]
    assert np.abs(regressions(first) - regressions(second)).max() < CLOSE
    second.save(tmp_path / "second")
    assert PrivateContextualBandit.load(tmp_path / "second").unpaid == (3, *range(5, 25))
    with pytest.raises(ConfigError, match="later state"):
        first.save(tmp_path / "second")


def test_a_party_file_holds_that_partys_shares_alone(tmp_path: Path) -> None:
    held = saved(tmp_path)._service.held
    paths, rows = sorted(tmp_path.glob("*/*.npz")), list[dict[str, np.ndarray]]()
    assert [path.parent.name for path in paths] == ["party-0", "party-1", "puller"]
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for party, path in enumerate(paths[:2]):
        with np.load(path) as kept:
            assert set(kept.files) == {"facts", "table", "x", "o"}
            rows.append({name: kept[name] for name in ("table", "x", "o")})
        assert held.words["table"][1 - party].tobytes()[:64] not in path.read_bytes()
    table, x = (np.concatenate([row[name] for row in rows]) for name in ("table", "x"))
    assert (table.sum(axis=0) == held.words["table"].sum(axis=0)).all()
    assert (x.sum(axis=0) == np.concatenate([one.x.sum(axis=0)[0] for one in held.open.values()])).all()


def test_a_new_folder_is_on_the_disk_with_its_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = list[str]()
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.readlink(f"/proc/self/fd/{file}")))
    saved(tmp_path / "new" / "bandit")
    assert {str(tmp_path), f"{tmp_path}/new", f"{tmp_path}/new/bandit"} <= set(flushed)


def test_no_file_follows_from_the_seed(tmp_path: Path) -> None:
    """Two bandits of one seed hold the same shares, and write others that add up to the same."""
    tables = []
    for name in ("a", "b"):
        bandit = made()
        bandit.partial_fit(np.arange(8) % 4, OUTCOMES[np.arange(8), np.arange(8) % 4], X[:8])
        bandit.save(tmp_path / name)
        kept = [np.load(next((tmp_path / name / f"party-{party}").glob("*.npz")))["table"] for party in range(2)]
        tables.append((bandit._service.held.words["table"], np.concatenate(kept)))
    (held, first), (again, second) = tables
    assert (held == again).all(), "the masks follow from the seed"
    assert (first.sum(axis=0) == held.sum(axis=0)).all() and (second.sum(axis=0) == held.sum(axis=0)).all()
    for party in range(2):
        assert (first[party] != second[party]).all() and (first[party] != held[party]).all()


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


def dies(bandit: PrivateContextualBandit, folder: Path, monkeypatch: pytest.MonkeyPatch, *, files: int) -> None:
    """Save, and die after so many files."""
    save, left = Checkpoint.save, iter(range(files))

    def saving(checkpoint: Checkpoint, home: Path) -> Path:
        if next(left, None) is None:
            raise Killed
        return save(checkpoint, home)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Checkpoint, "save", saving)
        bandit.save(folder)


@pytest.mark.parametrize("files", [1, 2])
def test_no_chain_of_crashes_in_save_destroys_a_bandit(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = regressions(saved(tmp_path))
    for work in range(4):
        bandit = PrivateContextualBandit.load(tmp_path)
        assert (regressions(bandit) == whole).all()
        assert [entry.count for entry in bandit.ledger] == [5 + work]
        for _ in range(work):
            bandit.partial_fit([1], [1.0], X[0])
        bandit.predict(X[work])
        dies(bandit, tmp_path, monkeypatch, files=files)
    bandit = PrivateContextualBandit.load(tmp_path)
    bandit.learn(decision_id=1, reward=1.0)
    bandit.save(tmp_path)
    again = PrivateContextualBandit.load(tmp_path)
    assert (regressions(again) == regressions(bandit)).all() and again.unpaid == (0, 2, 3, 4)
    assert again.predict(X[9]).decision_id == 9


def test_half_saves_of_another_way_do_not_push_a_save_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that seem later lie in a folder to which a bandit is saved that went on from elsewhere."""
    saved(tmp_path / "one")
    other = PrivateContextualBandit.load(tmp_path / "one")
    for row in range(2):
        for _ in range(4):
            other.partial_fit([1], [1.0], X[row])
        dies(other, tmp_path / "two", monkeypatch, files=1)
    bandit = PrivateContextualBandit.load(tmp_path / "one")
    bandit.save(tmp_path / "two")
    assert PrivateContextualBandit.load(tmp_path / "two").learned == bandit.learned == 20


def test_a_home_that_was_away_finds_its_save_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = saved(tmp_path)
    (tmp_path / "party-1").rename(tmp_path / "away")
    bandit.learn(decision_id=0, reward=1.0)
    dies(bandit, tmp_path, monkeypatch, files=1)
    _put(tmp_path / "party-1", tmp_path / "away")
    assert PrivateContextualBandit.load(tmp_path).unpaid == (0, 1, 2, 3, 4)


def test_files_of_two_saves_with_one_number_are_not_put_together(tmp_path: Path) -> None:
    """Two copies came to the same number in their own ways, and one got a home of the other."""
    saved(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for name, reward in (("one", 1.0), ("two", 0.0)):
        bandit = PrivateContextualBandit.load(tmp_path / name)
        bandit.learn(decision_id=0, reward=reward)
        bandit.save(tmp_path / name)
    _put(tmp_path / "one/party-1", tmp_path / "two/party-1")
    assert PrivateContextualBandit.load(tmp_path / "one").unpaid == (0, 1, 2, 3, 4), "the save before, which is whole"


def test_another_state_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies(saved(tmp_path), tmp_path, monkeypatch, files=1)
    second, third = PrivateContextualBandit.load(tmp_path), PrivateContextualBandit.load(tmp_path)
    second.learn(decision_id=0, reward=1.0)
    second.save(tmp_path)
    assert (regressions(PrivateContextualBandit.load(tmp_path)) == regressions(second)).all()
    with pytest.raises(ConfigError, match="later state"):
        third.save(tmp_path)


def _cut(folder: Path) -> None:
    path = next((folder / "party-1").glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-200])


def _flipped(folder: Path) -> None:
    path = next((folder / "party-1").glob("*.npz"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))


def _put(home: Path, other: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(other, home)


def _foreign(folder: Path) -> None:
    saved(folder / "other")
    _put(folder / "party-1", folder / "other/party-1")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_cut, "damaged"),
        (_flipped, "damaged"),
        (lambda folder: _put(folder / "party-1", folder / "party-0"), "party-1.* is not of this bandit and role"),
        (_foreign, r"party-0 has save 6 \(\w+\), party-1 has save 6 \(\w+\), .*put back what is missing"),
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


def test_another_bandit_that_did_more_is_another_all_the_same(tmp_path: Path) -> None:
    saved(tmp_path / "first")
    other = saved(tmp_path / "second")
    other.predict(X[0])
    with pytest.raises(ConfigError, match="another bandit"):
        other.save(tmp_path / "first")

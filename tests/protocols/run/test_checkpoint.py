"""A checkpoint is whole or not there, is its owner's alone, and a damaged one is said to be."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints, common, forget_all
from protocols.run.tagged_file import HOME_KEY, write_kept

DAMAGED = "is damaged, .*: delete it, an earlier one may be beside it"


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    given = Checkpoint(7, {"run": "a"}, {"x": np.arange(5, dtype=np.uint64)})
    path = given.save(tmp_path / "home")
    assert path == checkpoint_at(tmp_path / "home", 7)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept = Checkpoint.load(path)
    assert (kept.done, kept.facts, kept.arrays["x"].tolist()) == (7, {"run": "a"}, list(range(5)))
    assert "arrays" not in repr(kept)


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for done in (5, 10, 15):
        Checkpoint(done, {}, {}).save(tmp_path / "a")
    Checkpoint(10, {}, {}).save(tmp_path / "b")
    assert [path.name for path in checkpoints(tmp_path / "a")] == [
        "checkpoint-000000010.npz", "checkpoint-000000015.npz",
    ]  # fmt: skip
    assert common([tmp_path / "a", tmp_path / "b"]) == {10}


def test_saving_removes_what_was_half_written(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-000000040.new").touch()
    Checkpoint(50, {}, {}).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000000050.npz", "home.key"]


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = Checkpoint(7, {}, {"x": np.arange(500)}).save(tmp_path)
    whole = path.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 1
    for spoilt in (b"", b"damaged", whole[:-30], bytes(turned)):
        path.write_bytes(spoilt)
        with pytest.raises(ConfigError, match=DAMAGED):
            Checkpoint.load(path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Large enough that most of its bytes are numbers."""
    words = np.random.default_rng(2).integers(0, 2**63, (3, 1, 4, 9, 8)).astype(np.uint64)
    arrays = {"parties/table": words, "parties/sums": words[:, :, :2], "notes/notes": np.arange(3).reshape(3, 1, 1)}
    return Checkpoint(3, {"run": "a", "role": "simulation", "ledger": [{"count": 3}]}, arrays).save(tmp_path)


def rewritten(path: Path, **parts: Any) -> None:
    """By one who has the key."""
    archive = io.BytesIO()
    np.savez(archive, **parts)
    write_kept(path, archive.getvalue())


def test_a_checkpoint_of_another_version_is_refused(saved: Path) -> None:
    facts = json.dumps({"format": 99, "done": 3}).encode()
    rewritten(saved, facts=np.frombuffer(facts, np.uint8))
    with pytest.raises(ConfigError, match="another version: start the run again"):
        Checkpoint.load(saved)


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"PK\x03\x04 but no archive", b"\x93NUMPY\x01\x00"],
    ids=["empty", "text", "zip", "array"],
)
def test_what_is_no_checkpoint_is_called_damaged(content: bytes, saved: Path) -> None:
    saved.write_bytes(content)
    with pytest.raises(ConfigError, match=DAMAGED):
        Checkpoint.load(saved)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"facts": np.frombuffer(b"{", np.uint8)},
        {"facts": np.frombuffer(b"[1]", np.uint8)},
        {"facts": np.frombuffer(b'{"format": 3}', np.uint8)},
        {"facts": np.array([{}], object)},
    ],
    ids=["no facts", "no JSON", "a list", "no step", "a pickle"],
)
def test_an_archive_without_facts_is_no_checkpoint(parts: dict[str, Any], saved: Path) -> None:
    rewritten(saved, **parts)
    with pytest.raises(ConfigError, match="is no checkpoint: start the run again"):
        Checkpoint.load(saved)


def test_any_end_or_byte_that_is_missing_or_wrong_is_noticed(saved: Path) -> None:
    """A checkpoint cut off anywhere, or with a bit turned, is refused."""
    raw = saved.read_bytes()
    spoilt = [raw[:end] for end in np.random.default_rng(4).integers(0, len(raw), 60)]
    for place in (*range(5, len(raw), 31), len(raw) - 2):
        wrong = bytearray(raw)
        wrong[place] ^= 1 << (place % 8)
        spoilt.append(bytes(wrong))
    for content in (*spoilt, raw + b"x"):
        saved.write_bytes(content)
        with pytest.raises(ConfigError, match=DAMAGED):
            Checkpoint.load(saved)


def test_a_thread_that_parses_meanwhile_spoils_no_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python before 3.11.8 may stop one of two threads that parse, as numpy does for the header of an array."""
    real, stopped = ast.literal_eval, []

    def hurried(text: str) -> Any:
        if len(stopped) < 2:
            stopped.append(text)
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=24)")
        return real(text)

    whole = Checkpoint.load(saved)
    monkeypatch.setattr(ast, "literal_eval", hurried)
    again = Checkpoint.load(saved)
    assert len(stopped) == 2
    assert (again.done, again.facts, list(again.arrays)) == (whole.done, whole.facts, list(whole.arrays))
    assert all(np.array_equal(again.arrays[name], array) for name, array in whole.arrays.items())


def test_a_checkpoint_passes_in_its_own_place_only(saved: Path, tmp_path: Path) -> None:
    """Not by another number, in another home, or in this one for another run."""
    raw, other = saved.read_bytes(), Checkpoint(9, {"run": "b"}, {}).save(tmp_path / "other")
    for place in (checkpoint_at(tmp_path, 4), checkpoint_at(other.parent, 3)):
        place.write_bytes(raw)
        with pytest.raises(ConfigError, match=DAMAGED):
            Checkpoint.load(place)
    forget_all(tmp_path)
    Checkpoint(3, {"run": "c"}, {}).save(tmp_path)
    saved.write_bytes(raw)
    with pytest.raises(ConfigError, match=DAMAGED):
        Checkpoint.load(saved)


@pytest.mark.parametrize("key", [None, b"", bytes(15)], ids=["gone", "emptied", "cut"])
def test_without_its_home_s_key_nothing_is_trusted(key: bytes | None, saved: Path) -> None:
    (saved.parent / HOME_KEY).unlink()
    if key is not None:
        (saved.parent / HOME_KEY).write_bytes(key)
    with pytest.raises(ConfigError, match=r"home\.key is missing or damaged, .*: put it back"):
        Checkpoint.load(saved)


def test_a_full_disk_leaves_the_one_before(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"-000000006\.npz cannot be written \(No space left on device\): make room"):
        Checkpoint(6, {}, {}).save(saved.parent)
    assert Checkpoint.load(saved).done == 3
    assert sorted(path.name for path in saved.parent.iterdir()) == ["checkpoint-000000003.npz", "home.key"]


@pytest.mark.parametrize("name", ["checkpoint-copy.npz", "checkpoint-000000007 (1).npz", "checkpoint-.npz"])
def test_a_copy_by_another_name_is_no_checkpoint(name: str, saved: Path) -> None:
    """Nor is a folder: a run goes on beside them, and they are nobody's to delete."""
    (saved.parent / name).write_bytes(saved.read_bytes())
    (saved.parent / "checkpoint-000000009.npz").mkdir()
    assert checkpoints(saved.parent) == [saved] and common([saved.parent]) == {3}
    forget_all(saved.parent)
    assert (saved.parent / name).exists() and not saved.exists()

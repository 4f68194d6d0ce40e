"""A checkpoint is whole or not there, is its owner's alone, and a damaged one is said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints, common


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
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000050.npz"]


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = Checkpoint(7, {}, {"x": np.arange(500)}).save(tmp_path)
    whole = path.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 1
    for spoilt in (b"", b"damaged", whole[:-30], bytes(turned)):
        path.write_bytes(spoilt)
        with pytest.raises(ConfigError, match="is damaged: delete it, an earlier one may be beside it"):
            Checkpoint.load(path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Large enough that most of its bytes are numbers."""
    words = np.random.default_rng(2).integers(0, 2**63, (3, 1, 4, 9, 8)).astype(np.uint64)
    arrays = {"parties/table": words, "parties/sums": words[:, :, :2], "notes/notes": np.arange(3).reshape(3, 1, 1)}
    return Checkpoint(3, {"run": "a", "role": "simulation", "ledger": [{"count": 3}]}, arrays).save(tmp_path)


def rewritten(path: Path, **parts: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, **parts)


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
    with pytest.raises(ConfigError, match="is damaged: delete it"):
        Checkpoint.load(saved)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"facts": np.frombuffer(b"{", np.uint8)},
        {"facts": np.frombuffer(b"[1]", np.uint8)},
        {"facts": np.frombuffer(b'{"format": 2}', np.uint8)},
        {"facts": np.array([{}], object)},
    ],
    ids=["no facts", "no JSON", "a list", "no step", "a pickle"],
)
def test_an_archive_without_facts_is_called_damaged(parts: dict[str, Any], saved: Path) -> None:
    rewritten(saved, **parts)
    with pytest.raises(ConfigError, match="is damaged: delete it"):
        Checkpoint.load(saved)


def test_an_array_alone_is_called_damaged(saved: Path) -> None:
    with saved.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ConfigError, match="is damaged: delete it"):
        Checkpoint.load(saved)


def test_any_end_or_byte_that_is_missing_or_wrong_is_noticed(saved: Path) -> None:
    """A checkpoint cut off anywhere, or with a bit turned, is refused, or what it holds is as it was."""
    raw, whole = saved.read_bytes(), Checkpoint.load(saved)
    rng = np.random.default_rng(4)
    for end in rng.integers(0, len(raw), 60):
        saved.write_bytes(raw[:end])
        with pytest.raises(ConfigError, match="is damaged: delete it"):
            Checkpoint.load(saved)
    unharmed = 0
    for place in range(5, len(raw), 31):
        wrong = bytearray(raw)
        wrong[place] ^= 1 << (place % 8)
        saved.write_bytes(bytes(wrong))
        try:
            found = Checkpoint.load(saved)
        except ConfigError as error:
            assert "delete it" in str(error)
            continue
        unharmed += 1
        assert (found.done, found.facts) == (whole.done, whole.facts)
        for name, words in whole.arrays.items():
            assert (found.arrays[name] == words).all()
    assert unharmed < 60


def test_a_header_that_claims_fewer_numbers_is_noticed(saved: Path) -> None:
    """What it leaves unread is checked as well."""
    raw = saved.read_bytes()
    assert b"(3, 1, 4, 9, 8)" in raw
    saved.write_bytes(raw.replace(b"(3, 1, 4, 9, 8)", b"(3, 1, 4, 9, 0)"))
    with pytest.raises(ConfigError, match="is damaged: delete it"):
        Checkpoint.load(saved)

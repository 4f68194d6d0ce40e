"""A checkpoint is whole or not there, is its owner's alone, and a damaged one is said to be."""

from __future__ import annotations

from pathlib import Path

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

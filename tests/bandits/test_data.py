"""Environments from data: digits always, MNIST where its files are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandits.data import DataError, load
from bandits.environments import Environment

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def check(environment: Environment, arms: int, dim: int) -> None:
    assert (environment.arms, environment.dim) == (arms, dim)
    assert np.allclose(np.linalg.norm(environment.contexts, axis=1), 1.0)
    assert np.allclose(environment.chances.sum(axis=1), 1.0)
    best = environment.chances.max(axis=1).mean()
    assert best > 2.0 / arms, "the arms tell contexts apart"


def test_digits() -> None:
    check(load("digits", arms=10, dim=20), 10, 20)


def test_mnist() -> None:
    if not (SHARED / "mnist").is_dir():
        pytest.skip("MNIST's files are not beside the project")
    environment = load("mnist", arms=10, dim=20, data=SHARED)
    check(environment, 10, 20)
    assert len(environment.contexts) == 60_000


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nonsense", {}, "digits"),
        ("mnist", {}, "--data"),
        ("mnist", {"data": Path("no-such-folder")}, "train-images"),
        ("digits", {"dim": 65}, "64 dimensions"),
        ("digits", {"arms": 0}, "at least 1 arm"),
    ],
)
def test_what_cannot_be_loaded(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        load(name, **{"arms": 10, "dim": 20, **options})


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"no image")
    with pytest.raises(DataError, match="sha256"):
        load("mnist", arms=10, data=tmp_path)

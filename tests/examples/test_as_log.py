"""Labelled rows as a log: arms are uniform, rewards say whether they were right, and `masked evaluate` takes it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bandits.columns import log_of
from bandits.tables import table_of

from ..protocols.harness import LIMIT, ROOT


def made(folder: Path, *words: str, **arrays: np.ndarray) -> subprocess.CompletedProcess[str]:
    np.savez(folder / "rows.npz", **arrays)
    command = [sys.executable, str(ROOT / "examples/as_log.py"), "rows.npz", "log.csv", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)


@pytest.mark.parametrize("apart", [False, True])
def test_a_row_is_paid_where_its_arm_is_its_class(apart: bool, tmp_path: Path) -> None:
    features, label = np.arange(120).reshape(40, 3), np.arange(40) % 4
    arrays = {"num": features, "label": label} if apart else {"train": np.column_stack([features, label])}
    done = made(tmp_path, "--rows", "30", **arrays)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30 and len({row["x0"] for row in rows}) == 30
    for row in rows:
        own = int(label[int(row["x0"]) // 3])
        assert row["reward"] == str(int(row["arm"] == f"type {own}")) and float(row["propensity"]) == 0.25
    names = ["x0", "x1", "x2"]
    log = log_of(table_of(tmp_path / "log.csv"), context=names, action="arm", reward="reward", propensity="propensity")
    assert log.arms == tuple(f"type {each}" for each in range(4))


@pytest.mark.parametrize("given", [{"a": np.arange(3)}, {"a": np.ones((3, 2))}])
def test_what_is_no_table_of_so_many_rows_is_refused(given: dict[str, np.ndarray], tmp_path: Path) -> None:
    done = made(tmp_path, "--rows", "9", **given)
    assert done.returncode == 2 and "9 rows of features and a class are wanted" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "log.csv").exists()

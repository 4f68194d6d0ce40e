"""The tutorial runs, cell after cell, and prints what its prose says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[1] / "docs" / "tutorial.py"


def test_the_tutorial_runs(capsys: pytest.CaptureFixture[str]) -> None:
    end = runpy.run_path(str(TUTORIAL))
    said = capsys.readouterr().out
    assert end["bandit"].arms == (0, 1, 3, 4) and end["bandit"].learned == 241
    assert said.count("refused: ") == 2
    for words in (
        "learned from 40 decisions, waiting for (0,)",
        "party-2",
        "mode 600",
        "puller    arm",
        "earns the same",
    ):
        assert words in said, words


def test_every_cell_of_code_follows_prose() -> None:
    cells = TUTORIAL.read_text().split("\n# %%")[1:]
    kinds = ["prose" if cell.startswith(" [markdown]") else "code" for cell in cells]
    assert kinds == ["prose", "code"] * (len(cells) // 2) and len(cells) >= 20

"""The news page in a short form: late clicks are learned from as they come, stories come and go, and it learns."""

from __future__ import annotations

import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).resolve().parents[2] / "examples/news_page/page.py"
VISITS = 330


@cache
def example() -> dict[str, Any]:
    return runpy.run_path(str(PAGE))


@cache
def a_day() -> Any:
    return example()["day"](VISITS, seed=3)


def test_stories_come_and_go() -> None:
    page, known = a_day().page, example()
    came = 3 + (VISITS - 1) // known["NEW_STORY"]
    assert len(page.bandit.arms) == known["AT_ONCE"] < came
    assert [int(story.split()[1]) for story in page.bandit.arms] == list(range(came))[-known["AT_ONCE"] :]
    assert any(story not in page.bandit.arms for story in page.shown)


def test_every_decision_is_learned_from_once_or_waits() -> None:
    page = a_day().page
    numbers = [decision for decision, _ in page.paid]
    assert sorted(numbers + list(page.open)) == list(range(VISITS))
    assert tuple(sorted(page.open)) == page.bandit.unpaid
    assert numbers != sorted(numbers), "clicks come in another order than visits"
    clicks = [paid for _, paid in page.paid]
    assert 0 < clicks.count(1.0) < len(clicks) == clicks.count(1.0) + clicks.count(0.0)


def test_a_click_on_a_story_that_left_changes_nothing() -> None:
    """One came, and the arms that are there learned from no more than was paid for them."""
    page = a_day().page
    gone = [decision for decision, _ in page.paid if page.shown[decision] not in page.bandit.arms]
    assert gone and page.bandit.learned <= len(page.paid)


def test_it_pays_and_only_the_page_learns_the_stories() -> None:
    found = a_day()
    late = slice(VISITS // 2, VISITS)
    assert found.chances[late].mean() > found.by_chance[late].mean() + 0.04
    assert [(entry.role, entry.what, entry.count) for entry in found.page.bandit.ledger] == [("puller", "arm", VISITS)]


def test_readers_keep_the_bound_of_each_owner() -> None:
    readers = example()["Readers"]()
    rows = np.array([readers.comes() for _ in range(50)])
    assert max(np.linalg.norm(rows[:, :4], axis=1).max(), np.linalg.norm(rows[:, 4:], axis=1).max()) <= 1.0


def test_the_script_says_what_came_of_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PAGE), "--visits", "3"], capture_output=True, text=True, timeout=300, check=True,
        cwd=tmp_path, env={"PYTHONPATH": str(PAGE.parents[2]), "PATH": ""},
    )  # fmt: skip
    assert "0 decisions were learned from, 3 wait for a click" in done.stdout and "3      it is pulled" in done.stdout

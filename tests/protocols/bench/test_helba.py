"""The benchmark's page has its numbers, missed goals are said, and a small case is measured."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from bandits.helba import Constants, fresh
from protocols.bench.helba import CASES, Case, Row, as_markdown, missed, row_of
from protocols.helba.settings import Settings

ROW = Row("toy", 2, 2, 130, "public", 1.0, 0.5, 18.23, 1200.0, 99_032, 0.2, 0.01, True)


def test_the_page_has_the_numbers() -> None:
    page = as_markdown([ROW, replace(ROW, steps=2000, goal=None)])
    assert "| toy | 2 | 2 | 130 | public | 0.50 | 1.0 | 3.85 | 18.23 | 1,200 | 99,032 | 0.20 | 0.010 | equal |" in page
    assert "148,680 times faster than the paper reports" in page
    assert "times faster" not in as_markdown([replace(ROW, steps=12)]), "the paper has 130 steps"


def test_missed_goals_are_said() -> None:
    assert missed([ROW]) == []
    assert missed([replace(ROW, seconds=1.25)]) == ["d = 2, K = 2, 130 steps took 1.25 s, the goal is 1"]
    assert missed([replace(ROW, agrees=False)]) == ["toy, public: other arms than in the clear"]
    assert [case.goal for case in CASES] == [1.0, None, None, 12.0]


def test_a_case_is_measured() -> None:
    row = row_of(Case("fresh", fresh, Settings(Constants(), 3, 6), 100.0))
    assert row.agrees and (row.steps, row.arms, row.problem) == (6, 3, "fresh") and missed([row]) == []
    assert row.seconds > 0 and row.dealing_seconds > 0 and row.plain_seconds > 0 and row.rounds > 16
    assert json.loads(json.dumps(asdict(row)))["offline_bytes"] == row.offline_bytes

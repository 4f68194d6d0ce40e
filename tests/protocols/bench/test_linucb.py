"""The benchmark's page has its ratios, and missed goals are said."""

from __future__ import annotations

import json
from dataclasses import replace

from protocols.bench.linucb import GOALS, LongRun, Row, as_json, as_markdown, missed

ROWS = [
    Row(
        *size, pulls=200, classic=0.5 * goal, shown=0.01 * goal, shown_rounds=4.975, shown_bytes=1164.0,
        shown_offline=0.01 * goal, shown_offline_bytes=75_960, hidden=0.05 * goal, hidden_rounds=23.0,
        hidden_bytes=7882.0, hidden_offline=0.05 * goal, hidden_offline_bytes=271_392,
    )
    for size, goal in GOALS.items()
]  # fmt: skip
LONG = LongRun(3, 15, 1000, 1.5)


def test_the_page_has_the_ratios() -> None:
    page = as_markdown(ROWS, LONG)
    assert "| 3 | 15 | 1024 | 2.40 | 4.8 | 0.05 | 50 | 25 | 0.24 | 10 | 5 |" in page
    assert "| 5 | 50 | hidden | 23.00 | 7,882 | 271,392 |" in page
    assert "1,000 pulls at d = 3, K = 15" in page and "1.50 s" in page
    assert json.loads(as_json(ROWS, LONG))["long"]["seconds"] == 1.5


def test_missed_goals_are_said() -> None:
    assert missed(ROWS, LONG) == []
    slow = [replace(row, shown=row.classic / 29.0) for row in ROWS]
    assert missed(slow, LONG) == ["on shares at (5, 50, 2048): 29 times faster than classic, the goal is 30"]
    assert len(missed([replace(row, classic=2.1 * row.classic) for row in ROWS], LONG)) == 3
    assert "3.5 s, the goal is 3" in missed(ROWS, replace(LONG, seconds=3.5))[0]

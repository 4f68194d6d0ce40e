"""The benchmark's page has its ratios, and missed goals are said."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from protocols.bench import samba, samba_mpc
from protocols.bench.samba import PUBLISHED, Launched, Length, LongRun, Results, Row, as_json, as_markdown, missed

SHARES = samba_mpc.Row("ucb", 100, 200, 2, 1, 5.0, 10.0, 1000.0, 2.0, 5000)
RESULTS = Results(
    [Row(policy, 100, 1000, published / 4.0, 0.025, 0.2, 0.5, 0.1, 0.4) for policy, published in PUBLISHED.items()]
    + [Row("ucb", 10, 1000, 0.05, 0.01, 0.02, 0.5, 0.1, 0.4)],
    [Launched("ucb", 100, 200, 2.5, SHARES)],
    [Length(10, 2000, 0.1)],
    LongRun(100, 100_000, 30.04, True),
)


def test_the_page_has_the_ratios() -> None:
    page = as_markdown(RESULTS)
    assert "| ucb | 100 | 0.230 | 0.200 | 0.92 | 4.0 | 0.0250 | 9 | 50% | 10% | 40% |" in page
    assert "| ucb | 10 | 0.050 | 0.020 |  |  | 0.0100 | 5 | 50% | 10% | 40% |" in page
    assert "| ucb | 100 | 2.50 | 5.00 | 6 | 2.0 | 7.00 | 10 | 1,000 | 5,000 |" in page
    assert "| 10 | 2,000 | 0.10 | 50 |" in page
    assert "100,000 pulls of 100 arms" in page and "30.0 s in all, the plaintext policy's pulls" in page
    document = json.loads(as_json(RESULTS))
    assert document["published"] == PUBLISHED and document["rows"][0]["classic"] == 0.23


def test_missed_goals_are_said() -> None:
    assert missed(RESULTS) == []
    slow = replace(RESULTS, rows=[replace(row, classic=1.4 * row.classic) for row in RESULTS.rows])
    assert missed(slow)[0] == (
        "classic ucb with 100 arms: 2.9 times faster than the authors' code, the goal is 3"
    ) and len(missed(slow)) == 3  # fmt: skip
    assert "6.2 times the classic step" in missed(replace(RESULTS, launched=[Launched("ucb", 100, 9, 0.8, SHARES)]))[0]
    assert missed(replace(RESULTS, launched=[Launched("ucb", 100, 9, 3.0, replace(SHARES, milliseconds=6.5))])) == [
        "on shares, ucb with 100 arms: 6.50 ms a step, the goal is 6"
    ]
    assert "not the plaintext policy's" in missed(replace(RESULTS, long=replace(RESULTS.long, equal=False)))[0]


def test_what_is_measured_is_what_the_page_says() -> None:
    row = samba.row_of("pursuit", 4, 60, 1)
    assert 0.0 < row.gcm < row.classic and row.plain > 0.0
    assert abs(row.owners + row.controller + row.comp - 1.0) < 1e-9
    assert samba.long_run(4, 60).equal

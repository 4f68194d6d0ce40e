"""The benchmark runs, and its document has the rows and keys that other tools read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpc.cases import cases
from protocols.bench.measure import Row
from protocols.bench.ops import GOALS, as_json, as_markdown, missed

ROOT = Path(__file__).resolve().parents[3]
KEYS = {
    "op", "parties", "transport", "size", "rounds", "bytes_per_party", "offline_bytes", "microseconds",
    "plain_microseconds", "offline_microseconds", "peer_microseconds", "peer_rounds",
}  # fmt: skip
ROW = Row("argmax", 2, "tcp", 10, 4, 505, 33040, 500.0, 2.0, 300.0, 100_000.0, 57)


@pytest.mark.needs("torch")
def test_quick_bench_prints_one_document() -> None:
    only = "product,comparison,argmax"
    done = subprocess.run(
        [sys.executable, "-m", "protocols.bench", "ops", "--quick", "--no-peer", "--json", "-", "--parties", "2",
         "--only", only, "--repeats", "2"],
        capture_output=True, text=True, timeout=300, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(set(row) == KEYS for row in rows)
    assert {row["transport"] for row in rows} == {"memory", "tcp", "gloo"}
    declared = {(case.op, case.size): case.rounds for case in cases(quick=True)}
    measured = {(row["op"], row["size"], row["transport"]): row for row in rows if row["op"] != "exchange"}
    for (op, size, _), row in measured.items():
        assert row["rounds"] == declared[op, size]
        assert row["microseconds"] > 0
        assert row["peer_microseconds"] is None
    for op, size in {(op, size) for op, size, _ in measured}:
        sent = {measured[op, size, transport]["bytes_per_party"] for transport in ("memory", "tcp", "gloo")}
        assert len(sent) == 1


def test_every_goal_names_an_operation_of_the_table() -> None:
    known = {(case.op, case.size) for case in cases()} | {("exchange", 8)}
    assert set(GOALS) <= known


def test_missed_goals_are_said() -> None:
    assert missed([ROW]) == []
    slow = replace(ROW, microseconds=5000.0)
    assert "argmax of 10: 20.0 times faster" in missed([slow])[0]


def test_report_has_the_ratio_and_survives_an_empty_peer_column() -> None:
    page = as_markdown([ROW, replace(ROW, op="sqrt", peer_microseconds=None, peer_rounds=None)], "")
    assert "| argmax | 10 | 500 | 100,000 | 200.0 | 40 | 125.0 | 4 | 57 |" in page
    assert json.loads(as_json([ROW]))[0]["offline_bytes"] == 33040

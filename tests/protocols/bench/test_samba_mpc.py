"""The benchmark's half on shares: it runs, and its rows are those of the run that it timed."""

from __future__ import annotations

from dataclasses import replace

from protocols.bench.samba_mpc import GOALS, measure, missed

from ..samba.mpc.runs import played, rising


def test_a_row_is_of_a_launched_run() -> None:
    row, run = measure("pursuit", 3, 5), played(rising(3), "pursuit", 8)
    assert (row.policy, row.arms, row.steps, row.parties, row.hosts) == ("pursuit", 3, 5, 2, 1)
    assert (row.rounds, row.opened_bytes) == (run.cost.rounds / 5, run.cost.opened_bytes / 5)
    assert row.offline_bytes == run.offline_bytes / 5
    assert row.milliseconds > 0 and row.offline_milliseconds > 0
    assert missed([row]) == []
    slow = replace(row, arms=10, milliseconds=GOALS[10] + 1)
    assert missed([slow]) == ["on shares, pursuit with 10 arms: 3.50 ms a step, the goal is 2.5"]

"""HELBA's figures, small: rows as CSV and a picture."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

from protocols.figures import __main__ as figures
from protocols.figures.helba_runs import SHARES


def made(figure: str, folder: Path, patch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    patch.chdir(folder)
    patch.setattr(sys, "argv", ["script", "helba", "--quick", "--fig", figure, "--out", "out"])
    figures.main()
    assert (folder / f"out/helba-{figure}.png").read_bytes().startswith(b"\x89PNG")
    with (folder / f"out/helba-{figure}.csv").open() as file:
        return list(csv.DictReader(file))


def test_regret_on_shares_is_that_of_the_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made("1", tmp_path, monkeypatch)
    assert {row["run"] for row in rows} == {"0", "1"}
    assert {row["policy"] for row in rows} == {"OFUL", "RSOFUL", "RSOFUL-TR", "HELBA", SHARES}
    curves = {(row["policy"], row["run"], row["t"]): row["regret"] for row in rows}
    assert {t for _, _, t in curves} == {"1", "5", "10", "12"}
    assert all(regret == curves[SHARES, run, t] for (policy, run, t), regret in curves.items() if policy == "HELBA")


def test_what_ends_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made("batches", tmp_path, monkeypatch)
    assert {row["problem"] for row in rows} == {"toy", "fresh"}
    updates = {(row["problem"], row["run"], row["rule"]): int(row["updates"]) for row in rows}
    for (problem, run, rule), count in updates.items():
        assert count == int(next(row["T"] for row in rows if row["problem"] == problem)) or rule != "each step"
        assert count <= updates[problem, run, "each step"]


def test_updates_and_regret_up_to_each_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made("updates", tmp_path, monkeypatch)
    assert {row["T"] for row in rows} == {"10", "18", "32", "56", "100"}
    assert all(row["updates"] == row["T"] for row in rows if row["policy"] == "OFUL")
    for row in rows:
        if row["policy"] == "HELBA":
            assert {"10": 10, "100": 29}.get(row["T"], int(row["updates"])) == int(row["updates"])


def test_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made("time", tmp_path, monkeypatch)
    assert [row["what"] for row in rows] == ["on shares", "dealing", "in the clear"]
    assert all(float(row["seconds"]) > 0 and row["T"] == "10" for row in rows)

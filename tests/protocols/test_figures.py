"""Every figure and table, small: rows as CSV, a picture, and a second call that goes on from what was kept."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from protocols.bench import __main__ as bench
from protocols.bench import agreement
from protocols.figures import __main__ as figures

EXPECTED = {
    "1": {"eps", "step", "run", "reward", "twin_reward"},
    "2": {"eta", "eps", "steps", "reward", "agreement_steps"},
    "3": {"parties", "arms", "milliseconds", "rounds"},
    "4": {"parties", "milliseconds"},
    "5": {"arms", "eta", "reward"},
    "6": {"step", "advantage", "lower", "upper"},
    "7": {"bits", "truncation", "reward"},
    "8": {"newton", "reward"},
}


def call(monkeypatch: pytest.MonkeyPatch, main: object, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["script", *words])
    main()  # type: ignore[operator]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("figure", EXPECTED)
def test_a_figure_is_data_and_a_picture(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--fig", figure, "--steps", "80", "--out", "out")
    table = rows(tmp_path / "out" / f"ppcb-{figure}.csv")
    assert table and EXPECTED[figure] <= set(table[0])
    assert (tmp_path / "out" / f"ppcb-{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_counts_what_the_recast_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--table", "1", "--out", "out")
    rounds = {row["variant"]: float(row["rounds"]) for row in rows(tmp_path / "out" / "ppcb-table-1.csv")}
    assert rounds["recast"] == 12 and rounds["published"] > 7 * rounds["recast"]


def test_kept_units_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("ppcb", "--quick", "--fig", "8", "--steps", "40", "--out", "out")
    call(monkeypatch, figures.main, *words)
    first = (tmp_path / "out" / "ppcb-8.csv").read_text()
    capsys.readouterr()
    call(monkeypatch, figures.main, *words)
    assert "2 of 2 units are kept" in capsys.readouterr().err
    assert (tmp_path / "out" / "ppcb-8.csv").read_text() == first


def test_a_data_set_without_its_files_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        call(monkeypatch, figures.main, "ppcb", "--fig", "1", "--steps", "40", "--runs", "1")
    assert stop.value.code == 2 and "--data-dir" not in capsys.readouterr().out


def test_agreement_says_how_long_runs_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(monkeypatch, agreement.main, "--steps", "150", "--seeds", "3", "--json", str(tmp_path / "out.json"))
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "out.json").read_text())
    assert document["disagreements"] == 0 and document["rounds_per_step"] == 17
    assert document["largest_error_of_P"] < 1e-3 and document["smallest_eigenvalue_of_P"] > 0


def test_the_benchmark_of_the_bandit_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call(monkeypatch, bench.main, "ppcb", "--quick", "--no-peer", "--json", "-")
    document = json.loads(capsys.readouterr().out)
    assert [(row["parties"], row["arms"], row["rounds"]) for row in document["rows"]] == [
        (2, 10, 12),
        (3, 10, 12),
        (2, 100, 12),
    ]
    assert all(row["microseconds"] > 0 and row["opened_bytes"] > 0 for row in document["rows"])
    assert document["simulation"][0]["replicas"] == 40

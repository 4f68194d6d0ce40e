"""Every figure and table, small: rows as CSV, a picture, and a second call that goes on from what was kept."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

from protocols.bench import __main__ as bench
from protocols.bench import ppcb_agreement as agreement
from protocols.figures import __main__ as figures
from protocols.figures import ppcb, ppcb_rewards, style, units
from protocols.figures import ppcb_plots as plots
from protocols.figures.size import Size

EXPECTED = {
    "1": {"eps", "step", "run", "played", "reward", "twin_reward", "state_bits", "refresh"},
    "2": {"eta", "sharper_eta", "eps", "steps", "reward", "agreement_steps"},
    "3": {"parties", "arms", "milliseconds", "rounds"},
    "4": {"parties", "arms", "milliseconds"},
    "5": {"arms", "eta", "sharper_eta", "reward"},
    "6": {"eps", "step", "run", "advantage", "advantage_same_samples"},
    "7": {"bits", "truncation", "reward", "state_bits", "refresh"},
    "8": {"newton", "reward", "state_bits", "refresh"},
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
    assert "<svg" in (tmp_path / "out" / f"ppcb-{figure}.svg").read_text()


def test_eta_is_the_simple_bound_from_one_end_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins where every step explores, at log A, and the sharper one at 0."""
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--fig", "2", "--steps", "60", "--out", "out")
    table = rows(tmp_path / "out" / "ppcb-2.csv")
    assert (table[0]["eta"], table[0]["sharper_eta"], table[0]["eps"]) == ("2.302585", "0.0", "1.0")
    assert (table[-1]["eta"], table[-1]["eps"]) == ("inf", "0.0")
    for row in table[:-6]:
        eta, sharper, eps = (float(row[name]) for name in ("eta", "sharper_eta", "eps"))
        assert eta == pytest.approx(math.log(10 / eps), abs=1e-5)
        assert sharper == pytest.approx(math.log(10 / eps - 9), abs=1e-4)


def test_the_twin_draws_the_first_figure_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--fig", "1", "--twin", "--steps", "60", "--out", "out")
    table = rows(tmp_path / "out" / "ppcb-1.csv")
    assert {row["played"] for row in table} == {"twin"} and "reward" not in table[0]
    assert {row["agreement_steps"] for row in table} == {"60"}


def test_runs_are_the_same_in_any_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run has the contexts of its number, whichever unit plays it: the same arms pay there."""
    size = Size(None, steps=30, runs=7, quick=True, data="digits", keep=tmp_path)
    monkeypatch.setattr(ppcb, "_RUNS", 5)
    assert [unit.arguments[-2:] for unit in ppcb.FIGURE_SET.units("1", size)][:2] == [(0, 5), (5, 2)]
    seen = []
    monkeypatch.setattr(ppcb_rewards, "simulate", lambda program, **_: seen.append(program))
    for first, runs in ((0, 2), (1, 1)):
        with pytest.raises(AttributeError):
            ppcb_rewards.over_time(size, 0.1, first, runs)
    assert (seen[0].world.contexts[:, 1] == seen[1].world.contexts[:, 0]).all()


def test_the_step_table_counts_what_the_recast_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--table", "step", "--out", "out")
    rounds = {row["variant"]: float(row["rounds"]) for row in rows(tmp_path / "out" / "ppcb-table-step.csv")}
    assert rounds == {"recast": 12, "published": 82}


@pytest.mark.needs("torch")
def test_table_1_has_the_papers_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(monkeypatch, figures.main, "ppcb", "--quick", "--table", "1", "--out", "out")
    found = {(row["operation"], row["as"]): row for row in rows(tmp_path / "out" / "ppcb-table-1.csv")}
    rounds = {name: int(row["rounds"]) for name, row in found.items()}
    assert rounds == {
        ("addition", "ours"): 0, ("multiplication", "ours"): 2, ("multiplication", "published"): 2,
        ("reciprocal", "ours"): 1, ("reciprocal", "published"): 46, ("argmax", "ours"): 4, ("argmax", "published"): 28,
    }  # fmt: skip
    assert {row["paper_times_slower"] for row in found.values()} == {"11", "380", "6000", "34000"}
    assert all(float(row["times_slower"]) > 1 for row in found.values())


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


@pytest.mark.parametrize("other", [("--out", "elsewhere"), ("--steps", "41"), ("--kept", "elsewhere")])
def test_kept_units_belong_to_their_figures_and_size(
    other: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("ppcb", "--quick", "--fig", "4", "--steps", "40", "--out", "out")
    monkeypatch.setattr(ppcb, "step_time", lambda *_: [one_time(1.0)])
    call(monkeypatch, figures.main, *words)
    call(monkeypatch, figures.main, *words, *other)
    assert "kept" not in capsys.readouterr().err
    assert (tmp_path / "out" / "kept" / ".gitignore").read_text() == "*\n"


def test_other_code_makes_its_units_anew_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("ppcb", "--quick", "--fig", "4", "--steps", "40", "--out", "out")
    for code, milliseconds in (("a" * 12, 1.0), ("b" * 12, 2.0)):
        monkeypatch.setattr(units, "fingerprint", lambda _, code=code: code)
        monkeypatch.setattr(ppcb, "step_time", lambda *_, m=milliseconds: [one_time(m)])
        call(monkeypatch, figures.main, *words)
    assert "has 2 unit(s) of other code: not used, may be deleted" in capsys.readouterr().err
    assert {row["milliseconds"] for row in rows(tmp_path / "out" / "ppcb-4.csv")} == {"2.0"}


def test_what_other_code_made_is_taken_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest of it, and only where there is none of this code."""
    monkeypatch.chdir(tmp_path)
    words = ("ppcb", "--quick", "--fig", "4", "--steps", "40", "--out", "out")
    monkeypatch.setattr(units, "datetime", _Days())
    for code, milliseconds in (("a" * 12, 1.0), ("b" * 12, 2.0)):
        monkeypatch.setattr(units, "fingerprint", lambda _, code=code: code)
        monkeypatch.setattr(ppcb, "step_time", lambda *_, m=milliseconds: [one_time(m)])
        call(monkeypatch, figures.main, *words)
    for code, wanted, says in (
        ("c" * 12, "2.0", "2 of 2 units are of other code, of day 3 to day 4: taken as they are"),
        ("a" * 12, "1.0", "2 of 2 units are kept"),
    ):
        monkeypatch.setattr(units, "fingerprint", lambda _, code=code: code)
        call(monkeypatch, figures.main, *words, "--older")
        assert {row["milliseconds"] for row in rows(tmp_path / "out" / "ppcb-4.csv")} == {wanted}
        assert says in capsys.readouterr().err


class _Days:
    """A clock that is a day later each time."""

    def __init__(self) -> None:
        self._day = 0

    def now(self, _: object) -> _Days:
        self._day += 1
        return self

    def isoformat(self, **_: str) -> str:
        return f"day {self._day}"


def test_fewer_runs_are_a_part_of_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ppcb, "_ATTACKED", 2)
    monkeypatch.setattr(ppcb, "advantages", lambda _, eps, first, runs: [attacked(eps, first + n) for n in range(runs)])
    words = ("ppcb", "--quick", "--fig", "6", "--out", "out")
    call(monkeypatch, figures.main, *words, "--runs", "2")
    call(monkeypatch, figures.main, *words, "--runs", "4")
    assert "2 of 4 units are kept" in capsys.readouterr().err
    assert {row["run"] for row in rows(tmp_path / "out" / "ppcb-6.csv")} == {"0", "1", "2", "3"}


def attacked(eps: float, run: int) -> dict[str, float]:
    return {"eps": eps, "step": 10, "run": run, "advantage": 0.0, "advantage_same_samples": 0.0}


def one_time(milliseconds: float) -> dict[str, float]:
    return {"parties": 2, "arms": 3, "milliseconds": milliseconds}


def test_work_in_several_processes_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("ppcb", "--quick", "--fig", "8", "--steps", "40")
    call(monkeypatch, figures.main, *words, "--out", "alone")
    call(monkeypatch, figures.main, *words, "--out", "together", "--jobs", "2")
    alone, together = ((tmp_path / out / "ppcb-8.csv").read_text() for out in ("alone", "together"))
    assert alone == together and "2 of 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--steps", "-5"), "--steps is at least 12, not -5"),
        (("--steps", "5"), "--steps is at least 12, not 5"),
        (("--steps", "0"), "--steps is at least 12, not 0"),
        (("--runs", "0"), "--runs is at least 1, not 0"),
        (("--runs", "-1"), "--runs is at least 1, not -1"),
        (("--jobs", "0"), "--jobs is at least 1, not 0"),
        (("--out", "file"), "file is a file: name a folder with --out"),
        (("--out", "file/below"), "Not a directory: choose a place that can be used"),
        (("--data", "letters"), "there is no data set 'letters'"),
    ],
)
def test_a_figure_that_cannot_be_is_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        call(monkeypatch, figures.main, "ppcb", "--quick", "--fig", "8", *words)
    assert stop.value.code == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("figure")]
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0]


@pytest.mark.parametrize("figure", EXPECTED)
def test_the_shortest_run_makes_each_figure(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many steps as the error says; times of processes are left to the other test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ppcb_rewards, "agree", lambda *_: 0)
    monkeypatch.setattr(ppcb, "step_time", lambda *_: [one_time(1.0)])
    call(monkeypatch, figures.main, "ppcb", "--quick", "--fig", figure, "--steps", "12", "--runs", "1", "--out", "out")
    assert rows(tmp_path / "out" / f"ppcb-{figure}.csv")


def test_every_picture_has_a_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = []
    monkeypatch.setattr(style.Figure, "suptitle", lambda _, title, **__: titles.append(title))
    for figure in (*ppcb.FIGURES, "table1"):
        monkeypatch.setitem(plots._DRAWERS, figure, (plots._DRAWERS[figure][0], lambda *_: None))
        plots.draw(figure, [], tmp_path / "picture.png")
    named = [*(f"Figure {n}" for n in ppcb.FIGURES), "Table 1"]
    assert [title.split(":")[0] for title in titles] == named


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
    call(monkeypatch, agreement.main, "--steps", "150", "--seeds", "3", "--json", str(tmp_path / "new" / "out.json"))
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "new" / "out.json").read_text())
    assert document["disagreements"] == 0 and document["rounds_per_step"] == 17
    assert document["largest_error_of_P"] < 1e-3 and document["smallest_eigenvalue_of_P"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--steps", "-5"), "--steps is at least 1, not -5"),
        (("--steps", "0"), "--steps is at least 1, not 0"),
        (("--seeds", "0"), "--seeds is at least 1, not 0"),
        (("--parties", "1"), "--parties is at least 2, not 1"),
        (("--parties", "21"), "21 parties of 20 features: each owns at least one, so at most 20"),
        (("--state-bits", "0"), "0 of the state"),
        (("--json", "file/out.json"), "file: File exists: name another file with --json"),
        (("--json", "."), ".: Is a directory: name another file with --json"),
    ],
)
def test_an_agreement_that_cannot_be_is_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        call(monkeypatch, agreement.main, "--steps", "5", "--seeds", "1", *words)
    (line,) = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and line.startswith("error: ") and message in line


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

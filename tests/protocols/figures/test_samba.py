"""The panels of SAMBA's figure 8, small: rows as CSV, a picture, and a second call that goes on from what was kept."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.samba import NAMES
from protocols.figures import __main__ as figures
from protocols.figures.samba import FIGURE_SET, FIGURES, Mode, Size

Output = pytest.CaptureFixture[str]
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def call(patch: pytest.MonkeyPatch, *words: str) -> None:
    patch.setattr(sys, "argv", ["script", "samba", *words])
    figures.main()


def made(panel: str, folder: Path) -> list[dict[str, str]]:
    assert (folder / f"out/samba-8{panel}.png").read_bytes().startswith(b"\x89PNG")
    with (folder / f"out/samba-8{panel}.csv").open() as file:
        return list(csv.DictReader(file))


def test_times_of_every_mode(script: pytest.MonkeyPatch, tmp_path: Path, capsys: Output) -> None:
    """Panels a, b and d have runs in common: what a has made, the others read."""
    call(script, "--quick", "--fig", "a", "--out", "out", "--runs", "1")
    table = made("a", tmp_path)
    long = [row for row in table if row["N"] == "120"]
    alone = [Mode.PLAIN, Mode.CLASSIC, Mode.SHARES]
    assert [(row["policy"], row["mode"]) for row in long] == [(p, m.value) for p in ("ucb", "pursuit") for m in alone]
    assert {row["mode"] for row in table} == {mode.value for mode in Mode}
    for mode in alone:
        times = [float(row["seconds"]) for row in table if row["policy"] == "ucb" and row["mode"] == mode.value]
        assert len(times) == 6 and sorted(times) == times and times[0] > 0
    capsys.readouterr()
    call(script, "--quick", "--fig", "b", "d", "--out", "out", "--runs", "1")
    said = capsys.readouterr().err
    assert "6 of 6 units are kept" in said and "2 of 2 units are kept" in said
    assert {row["N"] for row in made("b", tmp_path)} == {"60", "72", "84", "96", "108", "120"}
    for row in (row for row in made("d", tmp_path) if row["N"] == "120"):
        assert all(float(row[name]) > 0 for name in ("owners", "Comp", "Controller", "DC"))


def test_rewards_and_what_was_kept(script: pytest.MonkeyPatch, tmp_path: Path, capsys: Output) -> None:
    words = ("--quick", "--fig", "c", "--out", "out")
    call(script, *words)
    table = made("c", tmp_path)
    assert {(row["policy"], row["run"]) for row in table} == {(p, r) for p in ("ucb", "thompson") for r in ("0", "1")}
    for row in table:
        assert 0 <= int(row["reward"]) <= int(row["N"]) <= 120
        assert float(row["random"]) < float(row["best"]) == pytest.approx(0.5 * int(row["N"]))
    before = (tmp_path / "out/samba-8c.csv").read_text()
    capsys.readouterr()
    call(script, *words)
    assert "2 of 2 units are kept" in capsys.readouterr().err
    assert (tmp_path / "out/samba-8c.csv").read_text() == before
    call(script, *words, "--runs", "3", "--steps", "30")
    assert {(row["run"], row["N"]) for row in made("c", tmp_path)} >= {("2", "30"), ("0", "8")}


@pytest.mark.skipif(
    not ((SHARED / "jester").is_dir() and (SHARED / "movielens-100k").is_dir()),
    reason="Jester and MovieLens 100K are not beside the project",
)
def test_rewards_on_ratings(script: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call(script, "--quick", "--fig", "c", "--out", "out", "--data-dir", str(SHARED), "--runs", "1")
    best = {row["data"]: float(row["best"]) / int(row["N"]) for row in made("c", tmp_path)}
    assert best == {
        "MovieLens, the authors' files": pytest.approx(0.5312831),
        "Jester, the authors' files": pytest.approx(0.4960973),
        "MovieLens, the text's formula": 1.0,
        "Jester, the text's formula": pytest.approx(0.5208, abs=1e-4),
    }


def test_in_full_every_policy_is_in_every_panel() -> None:
    for panel in FIGURES:
        names = [unit.name for unit in FIGURE_SET.units(panel, Size(Path("data"), 10_000, 20))]
        assert len(set(names)) == len(names)
        assert all(any(policy in name for name in names) for policy in NAMES)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fig", "1"), "are a, b, c and d"),
        (("--table", "1"), "are a, b, c and d"),
        (("--fig", "c"), "--data-dir"),
        (("--fig", "c", "--data-dir", "nowhere"), "u.data"),
        (("--fig", "e"), "invalid choice"),
    ],
)
def test_a_mistake_says_the_cure(words: tuple[str, ...], says: str, script: pytest.MonkeyPatch, capsys: Output) -> None:
    with pytest.raises(SystemExit) as end:
        call(script, *words, "--out", "out")
    assert end.value.code == 2
    assert says in capsys.readouterr().err


def test_other_figures_are_not_sambas(script: pytest.MonkeyPatch, capsys: Output) -> None:
    script.setattr(sys, "argv", ["script", "ppcb", "--fig", "a"])
    with pytest.raises(SystemExit):
        figures.main()
    assert "ppcb are 1 to 8" in capsys.readouterr().err

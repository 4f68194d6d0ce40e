"""The LinUCB-DS figures, small: rows as CSV, a picture, and a second call that goes on from what was kept."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from protocols.figures import __main__ as figures
from protocols.figures.linucb import FIGURE_SET, FIGURES, Size, cores_here
from protocols.figures.linucb_modes import Policy, points

Output = pytest.CaptureFixture[str]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def call(patch: pytest.MonkeyPatch, *words: str) -> None:
    patch.setattr(sys, "argv", ["script", "linucb", *words])
    figures.main()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_times_of_every_mode(script: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call(script, "--quick", "--fig", "modes", "--out", "out")
    table = rows(tmp_path / "out/linucb-modes.csv")
    modes = ["classic", "mpc, arms shown", "mpc, arms hidden", "plaintext"]
    assert [(row["policy"], row["mode"]) for row in table] == [(p.value, mode) for p in Policy for mode in modes]
    assert all(float(row["seconds"]) > 0 for row in table)
    assert all(float(row["dealing_seconds"]) > 0 for row in table if row["mode"].startswith("mpc"))
    assert (tmp_path / "out/linucb-modes.png").read_bytes().startswith(b"\x89PNG")


def test_shares_of_work_and_rewards(script: pytest.MonkeyPatch, tmp_path: Path, capsys: Output) -> None:
    call(script, "--quick", "--fig", "work", "--out", "out")
    table = rows(tmp_path / "out/linucb-work.csv")
    for policy in Policy:
        work = [row for row in table if row["policy"] == policy.value and row["panel"] == "work"]
        assert {row["role"] for row in work} == {"P", "Comp", "DO", "DC"}
        assert sum(float(row["share"]) for row in work) == pytest.approx(1.0, abs=1e-5)
    paid = [row for row in table if row["panel"] == "reward"]
    assert {(row["N"], row["user"]) for row in paid} == {(n, u) for n in ("5", "10") for u in ("0", "1")}
    linucb = [row for row in paid if row["policy"] == Policy.LINUCB.value]  # on a graph indices tie
    for row in linucb:  # DC is told whole units
        assert float(row["reward"]) == pytest.approx(float(row["float64"]), abs=float(row["unit"]) / 2 + 1e-4)
    assert (tmp_path / "out/linucb-work.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "out/linucb-work.csv").read_text()
    capsys.readouterr()
    call(script, "--quick", "--fig", "work", "--out", "out")
    assert "6 of 6 units are kept" in capsys.readouterr().err
    assert (tmp_path / "out/linucb-work.csv").read_text() == before


def test_costly_steps_on_one_core_and_on_two(script: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call(script, "--quick", "--fig", "6a", "6c", "115s", "--out", "out")
    table = rows(tmp_path / "out/linucb-6a.csv")
    parts = ["estimate", "indices", "fresh r^n", "decryptions", "the rest"]
    assert [(row["cores"], row["part"]) for row in table] == [(cores, part) for cores in "12" for part in parts]
    assert all(float(row["seconds"]) > 0 for row in table)
    assert [row["part"] for row in rows(tmp_path / "out/linucb-115s.csv")] == 2 * parts
    against = rows(tmp_path / "out/linucb-6c.csv")
    assert {(row["K"], row["d"]) for row in against} == {("10", "1"), ("20", "2")}
    assert {int(row["cores"]) for row in against} == {1, cores_here()[-1]}
    assert (tmp_path / "out/linucb-6c.png").read_bytes().startswith(b"\x89PNG")


def test_every_unit_has_a_name_of_its_own() -> None:
    """Files of units are named by them; each panel has at least three points."""
    for figure in FIGURES:
        names = [unit.name for unit in FIGURE_SET.units(figure, Size(None, runs=3))]
        assert len(names) == len(set(names))
    panels = [(point.policy, point.varied) for point in points(quick=False)]
    assert all(panels.count(panel) >= 3 for panel in panels) and len(set(panels)) == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--fig 6a", "name the folder of its u.data with --data-dir"),
        ("--fig 3 --quick", "6a, 6b, 6c and 7"),
        ("--table 1 --quick", "6a, 6b, 6c and 7"),
        ("--fig 7 --data-dir nowhere", "there is no u.data of MovieLens 100K in nowhere"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(words: str, said: str, script: pytest.MonkeyPatch, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stop:
        call(script, *words.split(), "--out", "out")
    complained = capsys.readouterr().err.strip().splitlines()
    assert stop.value.code == 2 and said in complained[-1] and complained[-1].startswith("error: ")

"""What figures of all systems share: all of them by one word, estimates, processes that end with their maker."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

from protocols.figures import __main__ as figures
from protocols.figures import helba, linucb, making, ppcb, samba, sources, units
from protocols.figures.size import Size

Output = pytest.CaptureFixture[str]


def test_all_is_every_figure_of_every_system(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """Each with the folder of its data; what names one system's figures is refused."""
    seen: list[tuple[str, str, str]] = []
    monkeypatch.setattr(making, "_make", lambda one, name, given: seen.append((one.name, name, str(given.data_dir))))
    monkeypatch.setattr(sys, "argv", ["script", "all", "--data-dir", "DIR"])
    figures.main()
    systems = {"ppcb": "DIR/mnist", "linucb": "DIR/movielens-100k", "samba": "DIR", "helba": "DIR"}
    assert [(one, place) for one, _, place in dict.fromkeys((a, "", c) for a, _, c in seen)] == list(systems.items())
    assert len(seen) == len({(one, name) for one, name, _ in seen}) == 10 + 7 + 4 + 5
    assert "26 of 26, helba" in capsys.readouterr().err
    for words, says in ((["--fig", "1"], "name a system with --fig"), ([], "--data-dir")):
        monkeypatch.setattr(sys, "argv", ["script", "all", *words])
        with pytest.raises(SystemExit) as end:
            figures.main()
        assert end.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("system", [ppcb, linucb, samba, helba])
def test_what_is_kept_outlives_a_change_of_how_it_is_drawn(system: ModuleType) -> None:
    one: making.FigureSet = system.FIGURE_SET
    size = Size(None, steps=120, runs=2, quick=True, data="digits")
    for module in {unit.make.__module__ for figure in one.figures for unit in one.units(figure, size)}:
        of_figures = {name for name in sources.sources(module) if name.startswith("protocols.figures.")}
        assert module in of_figures
        assert not {name for name in of_figures if name.endswith(("_plots", ".style", ".making"))}, module


def test_what_is_left_is_told_by_the_work_of_what_was_made(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = iter([0.0, 0.0, 60.0, 60.0, 120.0, 120.0, 1320.0])
    monkeypatch.setattr(units.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(units, "fingerprint", lambda _: "of this test")
    work = [units.Unit(name, list, (), weight=weight) for name, weight in (("a", 1.0), ("b", 1.0), ("c", 20.0))]
    units.collect(work, tmp_path, jobs=1, command=[])
    said = capsys.readouterr().err.splitlines()
    assert said == ["1 of 3: a, 60 s; about 21 min to go", "2 of 3: b, 60 s; about 20 min to go", "3 of 3: c, 1200 s"]


def test_units_end_with_who_makes_them_however_it_ends(tmp_path: Path) -> None:
    """A unit is a process of its own session; kill -9 of its maker ends it."""
    unit = (
        "import os, sys, time, pathlib; from mpc.lifeline import end_with_launcher; end_with_launcher()\n"
        "place = pathlib.Path(sys.argv[1]); (place / 'new').write_text(str(os.getpid()))\n"
        "(place / 'new').rename(place / 'pid'); time.sleep(1000)"
    )
    maker = (
        "import sys; from pathlib import Path; from protocols.figures.units import Unit, _in_processes\n"
        "_in_processes([(Unit('one', list, ()), [sys.executable, '-c', sys.argv[1], sys.argv[2]])], 2)"
    )
    with subprocess.Popen([sys.executable, "-c", maker, unit, str(tmp_path)]) as process:
        deadline = time.monotonic() + 300.0
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.kill()
    running = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    while running.exists() and running.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "a unit outlives its maker"
        time.sleep(0.02)


@pytest.mark.parametrize("module", [ppcb, linucb, samba, helba], ids=lambda module: module.__name__)
def test_a_unit_has_one_name_in_every_process(module: ModuleType) -> None:
    """Else what a job has made is not found; so nothing that it is made of may show where it lies in memory."""
    system: making.FigureSet = module.FIGURE_SET
    size = Size(Path("DIR"), **{"runs": 2} | {name: full for name, (full, _) in system.usual.items()})
    for figure in system.figures:
        for unit in system.units(figure, size):
            assert " at 0x" not in repr([units.same_anywhere(argument) for argument in unit.arguments]), unit.name

"""How the figures of one system are made: what is asked, unit for unit, as CSV and as a picture.

Knows options and files; each system brings its units and pictures as a `FigureSet`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mpc.errors import ConfigError

from ..run.exits import say
from .size import Size
from .units import Rows, Unit, collect, keeping, make, write_csv

_PASSED_ON = ("data", "data_dir", "steps", "runs", "kept")  # to processes that make one unit


class Figure(NamedTuple):
    """stem: its name in files.  units: what it is made of.  folder: why it needs --data-dir, if it does.

    runs: to average over where nothing is said, in full, if not as the others.  timed: it is of times on the clock, so
    its units are made one after the other.  kept: folder of its units, where other figures have some of them as well.
    minutes: in full, on two slow cores; a rough number, for the estimate of all.  drawn: a table is none.
    """

    stem: str
    units: Callable[[Size], Iterator[Unit]]
    folder: str = ""
    runs: int | None = None
    timed: bool = False
    kept: str = ""
    minutes: float = 1.0
    drawn: bool = True


@dataclass(frozen=True)
class FigureSet:
    """One system's figures by their names on the command line.

    which: said where there is no such figure.  usual: what options are where nothing is said, in full and quick.
    place: of its data in the folder of all data sets.
    """

    name: str
    which: str
    figures: Mapping[str, Figure]
    draw: Callable[[str, Rows, Path], None]
    usual: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    place: str = "."

    def units(self, figure: str, size: Size) -> list[Unit]:
        """The units of a figure."""
        return list(self.figures[figure].units(size))


def make_all(systems: Sequence[FigureSet], given: argparse.Namespace) -> None:
    """Every figure of every system; `--data-dir` is the folder of the folders of all data sets."""
    told = {
        one.name: argparse.Namespace(**{
            **vars(given), "what": one.name, "data_dir": given.data_dir and given.data_dir / one.place,
        })
        for one in systems
    }  # fmt: skip
    work = [(one, name) for one in systems for name in _wanted(one, told[one.name])]
    left = sum(one.figures[name].minutes for one, name in work)
    for number, (one, name) in enumerate(work, 1):
        more = "" if given.quick else f"; all that are left took about {left / 60:.1f} h on two slow cores"
        say(f"{number} of {len(work)}, {one.name}{more}")
        _make(one, name, told[one.name])
        left -= one.figures[name].minutes


def make_figures(system: FigureSet, given: argparse.Namespace) -> None:
    """What `scripts/figures` does for one system; where one unit is named, that alone."""
    for figure in _wanted(system, given):
        _make(system, figure, given)


def _make(system: FigureSet, figure: str, given: argparse.Namespace) -> None:
    out = given.out or Path("runs/figures") / ("quick" if given.quick else ".")
    known, usual = system.figures[figure], _sizes(system, figure, given)
    # A unit is told which runs it is of: what was made for few of them is a part of more.
    sizes = [str(value) for name, value in usual.items() if name != "runs"]
    own = "-".join([system.name, *sizes, *["quick"] * given.quick])
    size = Size(given.data_dir, quick=given.quick, keep=keeping(out) / own / "checkpoints", **usual)
    units, stem = system.units(figure, size), known.stem
    folder = (given.kept or keeping(out)) / own / (known.kept or figure)
    if given.unit:
        make(next(unit for unit in units if unit.name == given.unit), folder)
        return
    say(stem.replace("-", " ") if stem.startswith("table") else f"figure {stem}")
    command = [*_command(system.name, figure, given), "--out", str(out), "--unit"]
    rows = collect(units, folder, jobs=1 if known.timed else given.jobs, command=command, older=given.older)
    place = out / f"{system.name}-{stem}"
    write_csv(rows, Path(f"{place}.csv"))
    kinds = ("png", "svg") if known.drawn else ()
    for kind in kinds:
        system.draw(figure, rows, Path(f"{place}.{kind}"))
    print(*(f"{place}.{kind}" for kind in ("csv", *kinds)), sep="\n", flush=True)


def _sizes(system: FigureSet, figure: str, given: argparse.Namespace) -> dict[str, Any]:
    """Data, steps and runs as they were said, or as they are usual."""
    usual = {name: ends[given.quick] for name, ends in system.usual.items()}
    if (runs := system.figures[figure].runs) is not None and not given.quick:
        usual["runs"] = runs
    said = {name: getattr(given, name) for name in usual}
    return {name: usual[name] if value is None else value for name, value in said.items()}


def _wanted(system: FigureSet, given: argparse.Namespace) -> list[str]:
    """The figures that are asked for, or all; refuses those that are not there, or have no data."""
    wanted = [*given.fig, *(f"table{n}" for n in given.table)] or list(system.figures)
    if not set(wanted) <= set(system.figures):
        raise ConfigError(f"{system.which}: name them with --fig, or none for all")
    if given.data_dir is None and not given.quick:
        for why in (system.figures[figure].folder for figure in wanted):
            if why:
                raise ConfigError(f"{why} with --data-dir")
    return wanted


def _command(name: str, figure: str, given: argparse.Namespace) -> list[str]:
    """The words that make this figure, with the same options, in another process."""
    which = ["--table", figure.removeprefix("table")] if figure.startswith("table") else ["--fig", figure]
    said = [(f"--{option.replace('_', '-')}", getattr(given, option)) for option in _PASSED_ON]
    words = [word for option, value in said if value is not None for word in (option, str(value))]
    flags = [f"--{flag}" for flag in ("quick", "twin") if getattr(given, flag)]
    return [sys.executable, "-m", "protocols.figures", name, *which, *words, *flags]

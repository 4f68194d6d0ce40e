"""How the figures of one system are made: what is asked, unit for unit, as CSV and as a picture.

Knows options and files; each system brings its units and pictures as a `FigureSet`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mpc.errors import ConfigError

from ..run.exits import say
from .size import Size
from .units import Rows, Unit, collect, keeping, make, write_csv

_PASSED_ON = ("data", "data_dir", "steps", "runs")  # to processes that make one unit


class Figure(NamedTuple):
    """stem: its name in files.  units: what it is made of.  folder: why it needs --data-dir, if it does.

    runs: to average over where nothing is said, in full, if not as the others.
    """

    stem: str
    units: Callable[[Size], Iterator[Unit]]
    folder: str = ""
    runs: int | None = None


@dataclass(frozen=True)
class FigureSet:
    """One system's figures by their names on the command line.

    which: said where there is no such figure.  usual: what options are where nothing is said, in full and quick.
    """

    name: str
    which: str
    figures: Mapping[str, Figure]
    draw: Callable[[str, Rows, Path], None]
    usual: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def units(self, figure: str, size: Size) -> list[Unit]:
        """The units of a figure."""
        return list(self.figures[figure].units(size))


def make_figures(system: FigureSet, given: argparse.Namespace) -> None:
    """What `scripts/figures` does; where one unit is named, that alone."""
    wanted = _wanted(system, given)
    out = given.out or Path("runs/figures") / ("quick" if given.quick else ".")
    for figure in wanted:
        usual = _sizes(system, figure, given)
        kept = given.kept or keeping(out) / "-".join([system.name, *map(str, usual.values()), *["quick"] * given.quick])
        size = Size(given.data_dir, quick=given.quick, keep=kept / "checkpoints", **usual)
        units, stem = system.units(figure, size), system.figures[figure].stem
        if given.unit:
            make(next(unit for unit in units if unit.name == given.unit), kept / figure)
            return
        say(stem.replace("-", " ") if stem.startswith("table") else f"figure {stem}")
        command = [*_command(system.name, figure, given), "--kept", str(kept), "--unit"]
        rows = collect(units, kept / figure, jobs=given.jobs, command=command)
        place = out / f"{system.name}-{stem}"
        write_csv(rows, Path(f"{place}.csv"))
        for kind in ("png", "svg"):
            system.draw(figure, rows, Path(f"{place}.{kind}"))
        print(f"{place}.csv\n{place}.png\n{place}.svg", flush=True)


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

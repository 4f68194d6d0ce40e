"""`scripts/figures ppcb|linucb|samba`: data as CSV and a PNG for each figure; goes on where it was stopped."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bandits.data import DataError
from mpc.errors import ConfigError, MaskedError

from . import linucb, ppcb, samba
from .plots import draw
from .units import collect, keeping, make, write_csv

FIGURES = ("1", "2", "3", "4", "5", "6", "7", "8")
_EXAMPLES = """examples:
  scripts/figures ppcb --quick                              every figure and table, small, on digits
  scripts/figures ppcb --fig 1 7 --data-dir DIR --jobs 2    two of them in full: MNIST, 60,000 steps, 10 runs
  scripts/figures ppcb --table 1
  scripts/figures linucb --data-dir DIR                     figures 6 and 7 of LinUCB-DS, on MovieLens
  scripts/figures samba --data-dir DIR --fig c              reward of SAMBA's policies on MovieLens and Jester
"""


def main() -> None:
    """Make figures."""
    parser = argparse.ArgumentParser(
        prog="scripts/figures", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n\n".join(f"{text}" for text in (__doc__, ppcb.__doc__, linucb.__doc__, samba.__doc__)),
    )  # fmt: skip
    parser.add_argument("what", choices=["ppcb", "linucb", "samba"], help="whose figures")
    numbers = "figures: 1 to 8, of linucb 6 and 7, of samba a to d (all)"
    parser.add_argument("--fig", nargs="+", choices=(*FIGURES, *samba.FIGURES), default=[], metavar="N", help=numbers)
    parser.add_argument("--table", nargs="+", choices=["1"], default=[], metavar="N", help="tables: 1")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: does it run, not what comes out")
    parser.add_argument("--data", help="digits, mnist or synthetic (mnist; with --quick digits)")
    parser.add_argument("--data-dir", type=Path, help="the folder with MNIST's, MovieLens's or Jester's files")
    parser.add_argument("--steps", type=int, help="length of a run (60,000, of samba 10,000; with --quick 120)")
    parser.add_argument("--runs", type=int, help="runs to average over (10, of samba 20; with --quick 2)")
    parser.add_argument("--out", type=Path, help="where CSV and PNG go (runs/figures, with --quick below quick)")
    parser.add_argument("--jobs", type=int, default=1, help="processes to work in (1)")
    parser.add_argument("--unit", help=argparse.SUPPRESS)  # make this one only, for a job of another process,
    parser.add_argument("--kept", type=Path, help=argparse.SUPPRESS)  # which keeps it here
    options = parser.parse_args()
    try:
        _check(options)
        if options.what == "linucb":
            linucb.make_figures(options)
        elif options.what == "samba":
            samba.make_figures(options)
        else:
            _make(options)
    except (MaskedError, DataError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}: choose a place that can be used", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped: what was finished is kept, the same command goes on from there", file=sys.stderr)
        raise SystemExit(130) from None


def _check(options: argparse.Namespace) -> None:
    """Refuse numbers that no figure can be made of."""
    for name, least in (("steps", ppcb.FEWEST_STEPS), ("runs", 1), ("jobs", 1)):
        given = getattr(options, name)
        if given is not None and given < least:
            raise ConfigError(f"--{name} is at least {least}, not {given}")
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise ConfigError(f"{options.out} is a file: name a folder with --out")


def _make(options: argparse.Namespace) -> None:
    if not set(options.fig) <= set(FIGURES):
        raise ConfigError("the figures of ppcb are 1 to 8: name them with --fig, or none for all")
    out = options.out or Path("runs/figures") / ("quick" if options.quick else ".")
    data = options.data or ("digits" if options.quick else "mnist")
    steps = options.steps if options.steps is not None else 120 if options.quick else 60_000
    runs = options.runs if options.runs is not None else 2 if options.quick else 10
    kept = options.kept or keeping(out) / f"{options.what}-{data}-{steps}-{runs}{'-quick' * options.quick}"
    wanted = [*options.fig, *(f"table{n}" for n in options.table)] or [*FIGURES, "table1"]
    for figure in wanted:
        if not options.unit:
            print(f"figure {figure}" if figure in FIGURES else "table 1", file=sys.stderr, flush=True)
        size = ppcb.Size(data, options.data_dir, steps, runs, kept / "checkpoints", options.quick)
        units = ppcb.units(figure, size)
        if options.unit:
            make(next(unit for unit in units if unit.name == options.unit), kept / figure)
            return
        arguments = ["--fig" if figure in FIGURES else "--table", figure.removeprefix("table"), *_again(options)]
        command = [sys.executable, "-m", "protocols.figures", "ppcb", *arguments, "--kept", str(kept), "--unit"]
        rows = collect(units, kept / figure, jobs=options.jobs, command=command)
        name = f"ppcb-{figure}" if figure in FIGURES else "ppcb-table-1"
        write_csv(rows, out / f"{name}.csv")
        draw(figure, rows, out / f"{name}.png")
        print(f"{out / name}.csv\n{out / name}.png", flush=True)


def _again(options: argparse.Namespace) -> list[str]:
    """The options that say how much, for a process that makes one unit."""
    given = {"--data": options.data, "--data-dir": options.data_dir, "--steps": options.steps, "--runs": options.runs}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return [*words, *["--quick"] * options.quick]


if __name__ == "__main__":
    main()

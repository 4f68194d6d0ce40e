"""`scripts/figures ppcb`: data as CSV and a PNG for each figure; goes on where it was stopped."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bandits.data import DataError
from mpc.errors import MaskedError

from . import ppcb
from .plots import draw
from .units import collect, make, write_csv

FIGURES = ("1", "2", "3", "4", "5", "6", "7", "8")
_EXAMPLES = """examples:
  scripts/figures ppcb --quick                              every figure and table, small, on digits
  scripts/figures ppcb --fig 1 7 --data-dir DIR --jobs 2    two of them in full: MNIST, 60,000 steps, 10 runs
  scripts/figures ppcb --table 1
"""


def main() -> None:
    """Make figures."""
    parser = argparse.ArgumentParser(
        prog="scripts/figures", description=f"{__doc__}\n\n{ppcb.__doc__}", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("what", choices=["ppcb"], help="whose figures")
    parser.add_argument("--fig", nargs="+", choices=FIGURES, default=[], metavar="N", help="figures 1 to 8 (all)")
    parser.add_argument("--table", nargs="+", choices=["1"], default=[], metavar="N", help="tables: 1")
    parser.add_argument("--quick", action="store_true", help="digits, few steps, 2 runs: does it run")
    parser.add_argument("--data", help="digits, mnist or synthetic (mnist; with --quick digits)")
    parser.add_argument("--data-dir", type=Path, help="the folder with MNIST's files")
    parser.add_argument("--steps", type=int, help="length of a run (60,000; with --quick 120)")
    parser.add_argument("--runs", type=int, help="runs to average over (10; with --quick 2)")
    parser.add_argument("--out", type=Path, help="where CSV and PNG go (runs/figures, with --quick below quick)")
    parser.add_argument("--jobs", type=int, default=1, help="processes to work in (1)")
    parser.add_argument("--unit", help=argparse.SUPPRESS)  # make this one only, for a job of another process
    options = parser.parse_args()
    try:
        _make(options)
    except (MaskedError, DataError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped: what was finished is kept, the same command goes on from there", file=sys.stderr)
        raise SystemExit(130) from None


def _make(options: argparse.Namespace) -> None:
    out = options.out or Path("runs/figures") / ("quick" if options.quick else ".")
    data = options.data or ("digits" if options.quick else "mnist")
    steps, runs = options.steps or (120 if options.quick else 60_000), options.runs or (2 if options.quick else 10)
    kind = f"{data}-{steps}-{runs}"
    wanted = [*options.fig, *(f"table{n}" for n in options.table)] or [*FIGURES, "table1"]
    for figure in wanted:
        if not options.unit:
            print(f"figure {figure}" if figure in FIGURES else "table 1", file=sys.stderr, flush=True)
        kept = Path("runs/figures/kept") / kind
        size = ppcb.Size(data, options.data_dir, steps, runs, kept / "checkpoints", options.quick)
        units = ppcb.units(figure, size)
        if options.unit:
            (kept / figure).mkdir(parents=True, exist_ok=True)
            make(next(unit for unit in units if unit.name == options.unit), kept / figure)
            return
        arguments = ["--fig" if figure in FIGURES else "--table", figure.removeprefix("table"), *_again(options)]
        command = [sys.executable, "-m", "protocols.figures", "ppcb", *arguments, "--unit"]
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

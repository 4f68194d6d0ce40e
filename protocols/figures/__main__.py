"""`scripts/figures ppcb|linucb|samba|helba`: data as CSV and a PNG for each figure; goes on where it was stopped."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bandits.data import DataError
from mpc.errors import ConfigError

from ..run.exits import exit_codes
from . import helba, linucb, ppcb, samba
from .making import make_all, make_figures

_SETS = {one.name: one for one in (ppcb.FIGURE_SET, linucb.FIGURE_SET, samba.FIGURE_SET, helba.FIGURE_SET)}
_FEWEST_STEPS = 12
_ALL = "all"
_NOT_OF_ALL = ("fig", "table", "data", "steps")
_EXAMPLES = """examples:
  scripts/figures all --quick --jobs 2                      every figure of every paper, small: some minutes
  scripts/figures all --data-dir DIR --jobs 2               in full: days; stop it, and say the same again to go on
  scripts/figures ppcb --quick                              every figure and table, small, on digits
  scripts/figures ppcb --fig 1 7 --data-dir DIR --jobs 2    two of them in full: MNIST, 60,000 steps, 10 runs
  scripts/figures ppcb --fig 1 --twin --data-dir DIR        figure 1 in minutes, by the plaintext twin
  scripts/figures ppcb --table 1 step
  scripts/figures linucb --data-dir DIR                     figures 6a, 6b, 6c, 7 of LinUCB-DS, and ours, on MovieLens
  scripts/figures samba --data-dir DIR --fig c              reward of SAMBA's policies on MovieLens and Jester
  scripts/figures helba --fig 1 updates                     regret in the paper's problem; updates up to T = 10,000
"""


def main() -> None:
    """Make figures."""
    parser = argparse.ArgumentParser(
        prog="scripts/figures", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n\n".join(f"{part.__doc__}" for part in (sys.modules[__name__], ppcb, linucb, samba, helba)),
    )  # fmt: skip
    parser.add_argument("what", choices=[*_SETS, _ALL], help="whose figures")
    numbers = (
        "figures: 1 to 8; of linucb 6a, 6b, 6c, 7, 115s, modes, work; of samba a to d; of helba 1, batches, updates, "
        "time (all)"
    )
    known = dict.fromkeys((*ppcb.FIGURES, *linucb.FIGURES, *samba.FIGURES, *helba.FIGURES))
    parser.add_argument("--fig", nargs="+", choices=list(known), default=[], metavar="N", help=numbers)
    parser.add_argument(
        "--table", nargs="+", choices=["1", "step"], default=[], metavar="N", help="tables: 1, of ppcb step"
    )
    parser.add_argument(
        "--twin", action="store_const", const=True, help="ppcb's figure 1 by the plaintext twin: minutes"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: does it run, not what comes out")
    parser.add_argument("--data", help="digits, mnist or synthetic (mnist; with --quick digits)")
    parser.add_argument(
        "--data-dir", type=Path, help="the folder with MNIST's or MovieLens's files; of samba and all, of the data sets"
    )
    parser.add_argument(
        "--steps", type=int, help="length of a run (60,000, samba 100,000, helba 130; with --quick 120 or 12)"
    )
    parser.add_argument("--runs", type=int, help="runs to average over (as the paper; with --quick 2)")
    parser.add_argument("--out", type=Path, help="where CSV and PNG go (runs/figures, with --quick below quick)")
    parser.add_argument(
        "--jobs", type=int, help="processes to work in (as many as there are cores; 1 with --quick, and for times)"
    )  # fmt: skip
    parser.add_argument("--kept", type=Path, help="where finished pieces are kept (kept, below OUT)")
    parser.add_argument("--older", action="store_true", help="take pieces that are kept but were made by other code")
    parser.add_argument("--unit", help=argparse.SUPPRESS)  # make this one only, for a job of another process
    options = parser.parse_args()
    if options.jobs is None:
        options.jobs = 1 if options.quick else len(os.sched_getaffinity(0))
    with exit_codes(DataError, stopped="stopped: what was finished is kept, the same command goes on from there"):
        _check(options)
        if options.what == _ALL:
            make_all(list(_SETS.values()), options)
        else:
            make_figures(_SETS[options.what], options)


def _check(options: argparse.Namespace) -> None:
    """Refuse numbers that no figure can be made of."""
    for name, least in (("steps", _FEWEST_STEPS), ("runs", 1), ("jobs", 1)):
        given = getattr(options, name)
        if given is not None and given < least:
            raise ConfigError(f"--{name} is at least {least}, not {given}")
    if options.what == _ALL and any(getattr(options, name) for name in _NOT_OF_ALL):
        raise ConfigError(f"{_ALL} makes every figure as its paper has it: name a system with {_said(_NOT_OF_ALL)}")
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise ConfigError(f"{options.out} is a file: name a folder with --out")


def _said(names: tuple[str, ...]) -> str:
    return ", ".join(f"--{name}" for name in names)


if __name__ == "__main__":
    main()

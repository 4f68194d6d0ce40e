"""`masked run PROGRAM` and `masked launch PROGRAM`: which programs there are."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from textwrap import fill
from typing import Any

from ..helba.command import Helba
from ..linucb_ds.command import LinUCBDS, SpectralUCBDS
from ..ppcb.command import PPCB
from ..run.options import System
from ..run.options import register as register_system
from ..samba.command import Samba
from . import operation

SYSTEMS: tuple[System, ...] = (PPCB(), LinUCBDS(), SpectralUCBDS(), Samba(), Helba())


def register(commands: Any) -> None:
    """Add `run` and `launch` with their programs."""
    names = ", ".join(operation.names())
    operations = fill(
        f"or an operation of the protocol book, checked against plaintext: {names}", break_on_hyphens=False
    )
    run = commands.add_parser(
        "run", help="run a program, all parties simulated in this process", epilog=operations,
        formatter_class=RawDescriptionHelpFormatter,
    )  # fmt: skip
    launch = commands.add_parser(
        "launch", help="run a program, a process for each party", epilog=operations,
        formatter_class=RawDescriptionHelpFormatter,
    )  # fmt: skip
    run_programs = run.add_subparsers(dest="program", metavar="PROGRAM", required=True)
    launch_programs = launch.add_subparsers(dest="program", metavar="PROGRAM", required=True)
    for system in SYSTEMS:
        register_system(system, run_programs, launch_programs)
    operation.register(run_programs, launch_programs)

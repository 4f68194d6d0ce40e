"""`masked run PROGRAM` and `masked launch PROGRAM`: which programs there are."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
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
    run, launch = (
        commands.add_parser(
            name, help=what, epilog=operation.epilog(), formatter_class=RawDescriptionHelpFormatter
        ).add_subparsers(dest="program", metavar="PROGRAM", required=True)
        for name, what in (
            ("run", "run a program, all parties simulated in this process"),
            ("launch", "run a program, a process for each party"),
        )
    )
    for system in SYSTEMS:
        register_system(system, run, launch)
    operation.register(run, launch)

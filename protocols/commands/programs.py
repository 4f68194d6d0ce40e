"""`masked run PROGRAM` and `masked launch PROGRAM`: which programs there are."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from textwrap import fill
from typing import Any

from ..linucb_ds import command as linucb
from ..ppcb import command as contextual
from ..samba import command as samba
from . import operation


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
    for module in (contextual, linucb, samba, operation):
        module.register(run_programs, launch_programs)

"""`masked run PROGRAM` and `masked launch PROGRAM`: which programs there are."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..run.options import System
from ..run.options import register as register_system
from . import operation

_SYSTEMS = {
    "ppcb": ("ppcb", "PPCB"),
    "linucb-ds": ("linucb_ds", "LinUCBDS"),
    "spectralucb-ds": ("linucb_ds", "SpectralUCBDS"),
    "samba": ("samba", "Samba"),
    "helba": ("helba", "Helba"),
}


def names() -> list[str]:
    """Of all programs."""
    return list(_SYSTEMS)


def systems(words: Sequence[str]) -> list[System]:
    """The one that the first word names, none where it names an operation, else all: each takes a moment to load."""
    named = words[0] if words else ""
    if named in operation.names():
        return []
    found = [_SYSTEMS[named]] if named in _SYSTEMS else _SYSTEMS.values()
    return [getattr(import_module(f"protocols.{folder}.command"), kind)() for folder, kind in found]


def register(commands: Any, words: Sequence[str]) -> None:
    """Add `run` and `launch` with their programs; words: what follows either."""
    run, launch = (
        commands.add_parser(
            name, help=what, epilog=operation.epilog(), formatter_class=RawDescriptionHelpFormatter
        ).add_subparsers(dest="program", metavar="PROGRAM", required=True)
        for name, what in (
            ("run", "run a program, all parties simulated in this process"),
            ("launch", "run a program, a process for each party"),
        )
    )
    for system in systems(words):
        register_system(system, run, launch)
    operation.register(run, launch)

"""`masked dealer`: the process that `masked launch` starts beside its parties; it loads no program."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from offline import Plan

from ..run.dealer_process import serve_from_environment


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `dealer`."""
    dealer = commands.add_parser("dealer", help="serve material to launched parties (started by 'masked launch')")
    dealer.add_argument("plan", type=Path, help="a plan's file")
    dealer.add_argument("--steps", type=int, required=True, help="how many steps of it to deal")
    dealer.add_argument("--coins", type=Path, help=argparse.SUPPRESS)
    dealer.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    dealer.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    dealer.add_argument("--listener", type=int, required=True, help=argparse.SUPPRESS)
    dealer.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> None:
    serve_from_environment(
        Plan.load(options.plan), options.steps, options.listener, coins=options.coins, first=options.first,
        report=options.report,
    )  # fmt: skip

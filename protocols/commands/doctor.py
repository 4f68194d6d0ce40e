"""`masked doctor --config FILE`: what the links of a session can do, measured by all its roles at once."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError

from ..run.config import read
from ..run.diagnosis import FAIL, Finding, diagnosed
from .config import fitting

_LONGEST = 1e7  # seconds
_ABOUT = """Meet the other roles, each of which runs this command at the same time, and measure every link.

Says of each link whether it will do, and what to do where it will not; and how long a decision will take.
"""


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `doctor`."""
    doctor = commands.add_parser("doctor", help="measure the links of a session between machines", description=_ABOUT)
    doctor.add_argument("--config", type=Path, required=True, help="this role's file")
    doctor.add_argument("--wait", type=float, default=60.0, metavar="SECONDS", help="for the other roles (60)")
    doctor.add_argument(
        "--idle", type=float, default=0.0, metavar="SECONDS",
        help="leave the links alone for so long, without keep-alive, and see whether they last; the same at all roles",
    )  # fmt: skip
    doctor.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    doctor.set_defaults(run=_diagnose)


def _diagnose(options: Namespace) -> None:
    if not 0.0 < options.wait < _LONGEST:
        raise ConfigError(f"--wait takes a positive number of seconds, not {options.wait:g}")
    if not 0.0 <= options.idle < _LONGEST:
        raise ConfigError(f"--idle takes a number of seconds, or 0 not to wait, not {options.idle:g}")
    given = fitting(read(options.config), links=True)
    found, prediction = diagnosed(given, wait=options.wait, idle=options.idle)
    if options.json:
        print(json.dumps({"findings": [asdict(each) for each in found], "prediction": prediction}, indent=1))
    else:
        print("\n".join([*_table(found), prediction["text"]]))
    if any(each.verdict == FAIL for each in found):
        raise SystemExit(1)


def _table(found: Sequence[Finding]) -> list[str]:
    width = max(len(each.of) for each in found)
    return [f"{each.verdict}  {each.of.ljust(width)}  {each.what}" for each in found]

"""The `plan` of a command line: what a step of a program draws, found by a rehearsal and written to a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpc.tables import plain
from offline import Plan


def add_plan(
    programs: Any, name: str, plan: Callable[[Namespace], Plan], *, add: Callable[[ArgumentParser], None],
    summary: str = "",
) -> None:  # fmt: skip
    """Add a program.  add: its options that decide what it draws, as a run has them.  summary: a line of help."""
    listed = {"help": summary} if summary else {}
    parser = programs.add_parser(name, description="Give the options of the run that will draw it.", **listed)
    add(parser)
    parser.add_argument("-o", "--out", type=Path, default=Path("plan.json"), help="the plan's file (plan.json)")
    parser.set_defaults(planned=plan, run=_write, seed=0, mode="mpc")


def table(plan: Plan) -> str:
    """Its items, most bytes first."""
    rows = [(size, count, name) for name, count, size in plan.summary()]
    rows.append((plan.step_bytes, len(plan.items), "in all, stored by party 0; the others store a 16-byte key"))
    return "\n".join(plain((("bytes a step", ","), ("times", "d"), ("item", "s")), rows))


def _write(options: Namespace) -> None:
    plan = options.planned(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    plan.save(options.out)
    print(f"{plan.program} for {plan.parties} parties: {len(plan.items)} items a step, written to {options.out}")
    print(table(plan))

"""What every benchmark's page has: a head with date and machine, and how page, document and missed goals are told.

Knows no benchmark; no clock.
"""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from ..run.exits import say


@dataclass(frozen=True)
class Page:
    """A benchmark as one JSON document, as a page for a reader, and the goals that it did not reach."""

    document: str
    page: str
    missed: list[str]


def head(title: str, what: str, about: str) -> list[str]:
    """The first lines of a page.  about: follows "with `scripts/bench ...`, in one run."."""
    measured = f"Measured {date.today().isoformat()} on {machine()}"
    return [f"# {title}", "", measured, f"with `scripts/bench {what}`, in one run. {about}", ""]


def ratio(other: float | None, own: float) -> float | None:
    """How many times faster than another whose time may not be known."""
    return other / own if other else None


def tell(page: Page, options: argparse.Namespace) -> None:
    """Print and write a benchmark as the options say, and which goals it missed."""
    if options.json == "-":
        print(page.document)
    elif options.json:
        Path(options.json).write_text(page.document + "\n")
    else:
        place = Path("benchmarks") / options.what
        place.parent.mkdir(exist_ok=True)
        place.with_suffix(".json").write_text(page.document + "\n")
        place.with_suffix(".md").write_text(page.page)
        print(page.page)
        say(f"written: {place}.json, {place}.md")
    for line in page.missed if not options.quick else []:
        say(f"goal missed: {line}")


def machine() -> str:
    """Cores, processor and versions."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, numpy {np.__version__}"

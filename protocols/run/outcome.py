"""What a command leaves behind: its exit when it was stopped, result.json, and what it prints."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .keeping import Stopped


@contextmanager
def said_when_stopped(budget: int, out: Path | None) -> Iterator[None]:
    """A run that was stopped says how to go on, and exits with 130."""
    try:
        yield
    except Stopped as stopped:
        print(
            f"stopped at pull {stopped.done:,} of {budget:,}, before DC was told anything"
            + (f": go on with --resume and --out {out}" if out is not None else ""),
            file=sys.stderr,
        )
        raise SystemExit(130) from None


def save_result(facts: dict[str, Any], options: argparse.Namespace, out: Path | None) -> list[Path]:
    """Write `out`/result.json, the facts and how they came about; the files written."""
    if out is None:
        return []
    out.mkdir(parents=True, exist_ok=True)
    whole = {**facts, "options": _plain(options), "python": platform.python_version()}
    (out / "result.json").write_text(json.dumps(whole, indent=1) + "\n")
    return [out / "result.json"]


def show(facts: dict[str, Any], text: str, files: list[Path], options: argparse.Namespace) -> None:
    """Print one document, or the text and where files lie."""
    written = "".join(f"\n{'reward curve' if path.suffix != '.json' else 'written'}: {path}" for path in files)
    print(json.dumps(facts, indent=1) if options.json else f"{text}\n{written}")


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    """The options as JSON takes them."""
    kept = {name: value for name, value in vars(options).items() if name not in ("run", "command", "json")}
    return {name: str(value) if isinstance(value, Path) else value for name, value in kept.items()}

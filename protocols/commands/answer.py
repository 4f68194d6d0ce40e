"""What a command that computes one answer says: one JSON document, or text; a picture; and whether a claim held."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of all that give an answer."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def answer(
    options: argparse.Namespace, document: dict[str, Any], text: str, *,
    picture: Callable[[Path], None] | None = None, respected: bool = True,
) -> None:  # fmt: skip
    """Draw where --plot says and print; exit code 1 where what is stated was tried and did not hold."""
    if picture is not None and options.plot is not None:
        picture(options.plot)
        text += f"\nwritten: {options.plot}"
    print(json.dumps(document, indent=1, allow_nan=False) if options.json else text)
    if not respected:
        raise SystemExit(1)

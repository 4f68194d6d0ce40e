"""What a command that computes one answer says: one JSON document, or text; a picture; and whether a claim held.

Knows no command.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError


@dataclass(frozen=True)
class Answer:
    """document: as other tools read it.  text: what it means.  picture: draws it into a file, where it can be drawn.

    respected: what is stated held, where it was put to the test.
    """

    document: dict[str, Any]
    text: str
    picture: Callable[[Path], None] | None = None
    respected: bool = True


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option of all that give an answer."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def say(answer: Answer, *, as_json: bool, plot: Path | None = None) -> None:
    """Print and draw it; exit code 1 where a claim did not hold."""
    if plot is not None and answer.picture is not None:
        answer.picture(plot)
    print(json.dumps(answer.document, indent=1, allow_nan=False) if as_json else answer.text)
    if plot is not None and not as_json:
        print(f"written: {plot}")
    if not answer.respected:
        raise SystemExit(1)


def check_parties(parties: int) -> None:
    """ConfigError unless there is somebody to share with."""
    if parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")

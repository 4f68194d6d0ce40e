"""The log of a campaign that is run in pieces: a line of JSON for each piece.  Knows lines, not what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def kept(log: Path | None) -> list[dict[str, Any]]:
    """What an earlier command kept; a line that was cut short is taken out of the file."""
    if log is None or not log.exists():
        return []
    raw = log.read_text()
    whole = raw[: raw.rfind("\n") + 1]
    if whole != raw:
        log.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


def keep(log: Path | None, said: dict[str, Any]) -> None:
    """One more line, where there is a log."""
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps(said) + "\n")

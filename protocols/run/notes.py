"""What a client learned, decision by decision, and which decisions were made more than once.  Knows files; no meaning.

A run that goes on from a checkpoint makes the decisions after it again.  The client has learned of them before, and
whatever it has learned counts: a decision that was made m times has disclosed m values.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mpc.errors import ConfigError

AGAIN = "again.json"


def notes_of(path: Path, shape: tuple[int, ...] = ()) -> np.ndarray:
    """(decisions, *shape) integers that are written there; what is not whole is left out."""
    raw = np.fromfile(path, np.int64) if path.exists() else np.zeros(0, np.int64)
    each = int(np.prod(shape, dtype=np.int64))
    whole = raw.size // each
    return raw[: whole * each].reshape(whole, *shape)


def note_again(keep: Path, first: int, end: int) -> None:
    """The client knows decisions first to end - 1, which are about to be made again."""
    fresh = (keep / AGAIN).with_suffix(".new")
    fresh.write_text(json.dumps([*_spans(keep), [first, end]]))
    fresh.replace(keep / AGAIN)


def beyond(keep: Path, done: int, noted: int) -> tuple[int, int]:
    """Decisions disclosed beside `done` of a result, counted as often as they were; and how often one was, at most.

    noted: how many the client noted since the run last went on, counted from its first.
    """
    spans = [*_spans(keep), [0, noted]]
    times = np.zeros(max(end for _, end in spans), np.int64)
    for first, end in spans:
        times[first:end] += 1
    return int(times.sum()) - done, int(times.max(initial=1))


def _spans(keep: Path) -> list[list[int]]:
    path = keep / AGAIN
    if not path.exists():
        return []
    try:
        return [[int(first), int(end)] for first, end in json.loads(path.read_text())]
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is damaged: put it back, or run without --resume") from error

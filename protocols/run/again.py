"""Which decisions of a launched run were made more than once.  Knows a small file beside the puller's notes; no arm.

A run that goes on from a checkpoint makes the decisions after it again.  The puller has learned their arms before, and
whatever it has learned counts: a context whose decision was made m times had m arms released about it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mpc.errors import ConfigError

AGAIN = "again.json"


def note_again(keep: Path, first: int, end: int) -> None:
    """The puller knows the arms of decisions first to end - 1, which are about to be made again."""
    fresh = (keep / AGAIN).with_suffix(".new")
    fresh.write_text(json.dumps([*_spans(keep), [first, end]]))
    fresh.replace(keep / AGAIN)


def beyond(keep: Path, done: int, noted: int) -> tuple[int, int]:
    """Decisions released beside `done` of a result, counted as often as they were; and how often one was, at most.

    noted: how many the puller noted since the run last went on, counted from its first.
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

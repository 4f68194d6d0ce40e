"""What programs that pull for a customer say about going on later.  Knows a folder and a count."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class Stopped(Exception):
    """A run that was asked to stop: `done` pulls are kept, and DC was told nothing."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done


@dataclass(frozen=True)
class Keep:
    """folder: where checkpoints lie.  every: pulls between two.  resume: go on from the last."""

    folder: Path
    every: int = 100
    resume: bool = False

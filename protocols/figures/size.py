"""How much a figure is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Size:
    """folder: of data sets, or None for what stands in for them where it is about whether it runs.

    steps: length of a run.  data: which data set, where there is a choice.  keep: for checkpoints of long runs.
    twin: whether the plaintext twin plays where the secure run would, after both agreed on a sample.
    """

    folder: Path | None
    steps: int = 0
    runs: int = 0
    quick: bool = False
    data: str = ""
    twin: bool = False
    keep: Path = Path()

    @property
    def bits(self) -> int:
        """Of Paillier's keys."""
        return 256 if self.quick else 2048

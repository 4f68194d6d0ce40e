"""What a participant ends with.  Knows names and counts; no ciphertext."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...published.outcome import Outcome as Plain


@dataclass
class Outcome(Plain):
    """ends: by step, the server's.  arms: by step, the users'.

    refreshes: how many.  masked: numbers under masks.  rounds: how often the server waited for a user.  key_bytes: of
    the server's keys, of all sittings.
    """

    ends: list[bool] = field(default_factory=list, repr=False)
    arms: list[int] = field(default_factory=list, repr=False)
    refreshes: int = 0
    masked: int = 0
    rounds: int = 0
    key_bytes: int = 0

    def state(self) -> dict[str, np.ndarray]:
        """What a later sitting goes on from."""
        counts = [self.refreshes, self.masked, self.rounds, self.key_bytes]
        return {
            "ends": np.array(self.ends, np.int64),
            "arms": np.array(self.arms, np.int64),
            "counts": np.array(counts),
        }

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """What `state` gave."""
        self.ends, self.arms = kept["ends"].astype(bool).tolist(), kept["arms"].tolist()
        self.refreshes, self.masked, self.rounds, self.key_bytes = kept["counts"].tolist()

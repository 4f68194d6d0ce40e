"""A dealer for a simulation that can be repeated, and counts what it deals.  For experiments in one process."""

from __future__ import annotations

import hashlib
import time

import numpy as np

from mpc.correlations import Correlation, layout
from mpc.prg import KEY_BYTES, Prg
from offline import InProcessDealer


class MeteredDealer(InProcessDealer):
    """All its keys come from a seed; it counts its bytes and seconds, and notes which coins a block draws.

    A simulation hides nothing from its own process, so a seed gives nothing away there; parties that protect something
    draw from a dealer with fresh keys.
    """

    def __init__(self, parties: int, seed: int) -> None:
        stream = Prg(hashlib.blake2b(str(seed).encode(), digest_size=KEY_BYTES, person=b"simulation").digest())
        *keys, own_key, self.coin_key = [stream.bytes(KEY_BYTES).tobytes() for _ in range(parties + 2)]
        super().__init__(parties, keys=keys, own_key=own_key, coin_key=self.coin_key)
        self.coin_items: list[Correlation] = []
        self.dealt_bytes = 0
        self.seconds = 0.0

    def enter(self, block: int) -> None:
        """Stand at the start of a block."""
        super().enter(block)
        self.coin_items = []

    def make(self, item: Correlation) -> np.ndarray:
        """Make an item."""
        started = time.perf_counter()
        rows = super().make(item)
        self.seconds += time.perf_counter() - started
        self.dealt_bytes += layout(item).dealt_bytes
        if item.coins:
            self.coin_items.append(item)
        return rows

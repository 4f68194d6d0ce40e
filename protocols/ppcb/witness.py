"""A dealer that also keeps the exploration coins it dealt.  For experiments on one machine: it checks the twin.

The coins decide which arms an epsilon-greedy run explores.  Whoever has them can tell exploring steps from greedy
ones, so this dealer is never one that parties use.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bandits.linear import Choice
from mpc.correlations import ChoiceNoise, Correlation, layout
from mpc.ops import Keys
from offline import InProcessDealer


class WitnessDealer(InProcessDealer):
    """An in-process dealer whose coins the plaintext twin replays; it also counts its bytes and seconds."""

    def __init__(self, parties: int, *, keys: Sequence[bytes] | None = None, own_key: bytes | None = None) -> None:
        super().__init__(parties, keys=keys, own_key=own_key)
        self.choices: deque[Choice] = deque()
        self.dealt_bytes = 0
        self.seconds = 0.0

    def make(self, item: Correlation) -> np.ndarray:
        """Make an item, and keep the coins of a choice."""
        started = time.perf_counter()
        rows = super().make(item)
        self.seconds += time.perf_counter() - started
        self.dealt_bytes += layout(item).dealt_bytes
        if isinstance(item, ChoiceNoise):
            (noise,) = layout(item).views(rows)
            self.choices.append(_coins(noise.sum(axis=0, dtype=np.uint64), item))
        return rows

    def save(self, path: Path) -> None:
        """Write the coins of all steps and what dealing cost."""
        explore, order, ties = (
            np.stack([getattr(choice, name) for choice in self.choices]) for name in ("explore", "order", "ties")
        )
        cost = np.array([self.dealt_bytes, self.seconds])
        with path.open("wb") as file:
            np.savez(file, explore=explore, order=order, ties=ties, cost=cost)


def saved_choices(path: Path) -> tuple[list[Choice], int, float]:
    """The coins, bytes and seconds of a witness."""
    with np.load(path) as saved:
        steps = zip(saved["explore"], saved["order"], saved["ties"], strict=True)
        return [Choice(*step) for step in steps], int(saved["cost"][0]), float(saved["cost"][1])


def _coins(noise: np.ndarray, item: ChoiceNoise) -> Choice:
    tie = Keys(item.shape[-1], 2).tie
    order = noise >> np.uint64(item.high)
    ties = noise & np.uint64((1 << tie) - 1)
    return Choice(np.asarray(order.any(axis=-1)), order.astype(np.int64), ties.astype(np.int64))

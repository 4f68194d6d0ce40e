"""The coins of a run on shares, all in one hand, for a reference that plays with the same ones.

Who wins a tie and where a draw points is dealt, and nobody knows it; whoever has a dealer's coin key can deal it once
more in the clear.  Exploration and noise are the owners' own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bandits.samba.coins import CommonCoins, Seeds, owner_noise
from mpc.correlations import ChoiceNoise, Correlation
from mpc.prg import Prg
from offline.dealing import dealt_words

from .settings import COIN_BITS


class DealtCoins:
    """items: what a step draws, in order.  Step t > K is block t - K - 1 of the dealer's coins."""

    def __init__(self, coin_key: bytes, items: Sequence[Correlation], arms: int, seeds: Seeds) -> None:
        self._key, self._arms = coin_key, arms
        self._items = [item for item in items if item.coins]
        self._common = CommonCoins(seeds.common)
        self._noise = [owner_noise(seeds.noise, arm) for arm in range(arms)]
        self._t = -1
        self._orders: list[np.ndarray] = []
        self._point = 0

    def explore(self, t: int, eps: float) -> bool:
        """True with probability eps."""
        return self._common.explore(t, eps)

    def order(self, t: int, iteration: int) -> np.ndarray:
        """Arms by their dealt rank, the largest first; a draw looks at them by number."""
        self._enter(t)
        return self._orders[iteration - 1] if iteration <= len(self._orders) else np.arange(self._arms)

    def point(self, t: int) -> tuple[int, int]:
        """(u, c) of the step's draw."""
        self._enter(t)
        return self._point, COIN_BITS

    def noise(self, arm: int) -> np.random.Generator:
        """The stream of the arm's owner."""
        return self._noise[arm]

    def _enter(self, t: int) -> None:
        if t == self._t:
            return
        prg, self._t = Prg(self._key, t - self._arms - 1), t
        self._orders, self._point = [], 0
        for item in self._items:
            (words,) = dealt_words(item, (), prg)
            if isinstance(item, ChoiceNoise):
                self._orders.append(np.argsort(words)[::-1])
            else:
                self._point = int(words)

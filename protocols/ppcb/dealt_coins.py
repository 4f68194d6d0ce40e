"""The coins of a run, dealt once more in the clear with the key in `Ended.coins`; `run` plays the twin with them.

For experiments on one machine.  The coins decide which arms an epsilon-greedy run explores.  Whoever has a dealer's
coin key can tell exploring steps from greedy ones, so nobody but the dealer of a real run has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bandits.linear import Choice
from mpc.correlations import ChoiceNoise, Correlation, Exploration, Gaussian, Permutation
from mpc.ops import Keys
from mpc.prg import Prg
from offline.dealing import dealt_words

from .settings import Settings


def choices(
    coin_key: bytes, items: Sequence[Correlation], blocks: range, settings: Settings, *, steps: int = 1
) -> Iterator[Choice]:
    """What the coins of each block say; `items` are those of one of a block's `steps` decisions, in order."""
    for block in blocks:
        prg = Prg(coin_key, block)
        for _ in range(steps):
            yield _choice([(item, dealt_words(item, (), prg)) for item in items if item.coins], settings)


def _choice(dealt: Sequence[tuple[Correlation, tuple[np.ndarray, ...]]], settings: Settings) -> Choice:
    """One decision from the words dealt for it, whatever kinds the variant draws."""
    unit = 0.0
    explore: np.ndarray = np.zeros((1, 1), bool)
    order: np.ndarray = np.zeros((1, 1, 1))
    ties, noise = order, order
    for item, words in dealt:
        if isinstance(item, Gaussian):
            noise = words[0].view(np.int64) * 2.0**-item.scale / (item.deviation or 1.0)
        elif isinstance(item, ChoiceNoise):
            lifted = words[0] >> np.uint64(item.high)
            tie, unit = Keys(item.shape[-1], 2).tie, settings.draw_unit(item.shape[-1])
            explore, order = np.asarray(lifted.any(axis=-1)), lifted
            ties = (words[0] & np.uint64((1 << tie) - 1)).astype(np.int64)
        elif isinstance(item, Permutation):
            ties = words[0].astype(np.int64)[:, None]
        elif isinstance(item, Exploration):
            explore, order = words[0].astype(bool)[:, None], words[1][:, None].astype(np.int64)
    if any(isinstance(item, Exploration) for item, _ in dealt):  # of equal drawn scores, the permutation decides
        order = order * (ties.shape[-1] + 1) + ties
    return Choice(explore, order, ties, noise, unit)

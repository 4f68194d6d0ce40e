"""The dealer's coins of a run on shares, dealt once more in the clear, for a reference that plays with the same ones.

They break ties, and where arms are hidden they are the first arm and the noise as well.  Whoever has a dealer's coin
key knows them, so nobody but the dealer of a real run has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bandits.coins import Coins
from mpc.correlations import ChoiceNoise, Correlation, Gaussian, UniformNumber
from mpc.prg import Prg
from offline.dealing import dealt_words

from .settings import Settings


def own_coins(settings: Settings, seed: int) -> Coins:
    """What the computing parties draw from a seed that all of them have: first arm and noise."""
    return Coins.draw(
        seed, budget=settings.budget, arms=settings.count, size=settings.exploration.noise, noise=settings.noise
    )


def replayed(settings: Settings, seed: int, coin_key: bytes, items: Sequence[Correlation]) -> Coins:
    """The coins of a whole run; items: what a pull draws, in order.

    Where arms are shown, the first pull draws nothing, so the pull at step t is block t - 1.
    """
    own = own_coins(settings, seed)
    if not settings.hide:
        rows = [_dealt(items, Prg(coin_key, block))[0] for block in range(settings.budget - 1)]
        return replace(own, ties=np.stack([own.ties[0], *rows]))
    dealt = [_dealt(items, Prg(coin_key, block)) for block in range(settings.budget)]
    ties = np.stack([row for row, _ in dealt])
    return Coins(int(ties[0].argmax()), np.array([_noise(settings, item, word) for _, (item, word) in dealt]), ties)


def _dealt(items: Sequence[Correlation], prg: Prg) -> tuple[np.ndarray, tuple[Correlation | None, int]]:
    ties: np.ndarray = np.zeros(0, np.int64)
    noise: tuple[Correlation | None, int] = (None, 0)
    for item in items:
        if not item.coins:
            continue
        (words,) = dealt_words(item, (), prg)
        if isinstance(item, ChoiceNoise):
            ties = words.view(np.int64)
        else:
            noise = item, int(words.view(np.int64))
    return ties, noise


def _noise(settings: Settings, item: Correlation | None, word: int) -> float:
    size = settings.exploration.noise
    if isinstance(item, UniformNumber):
        return size if word else -size
    assert isinstance(item, Gaussian)
    return math.ldexp(word, -item.scale)

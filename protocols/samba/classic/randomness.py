"""Who holds which coins of a classic run, and the same coins in the hand of a plaintext player."""

from __future__ import annotations

import numpy as np

from bandits.samba.coins import CommonCoins, OrderCoins, SeededCoins, Seeds, derived

from ..score import LocalPolicy
from .masks import MASK_BITS
from .selecting import uniform


class OwnerCoins:
    """What all owners draw alike, by (step, iteration): exploration, masks, and each one's slot in Comp's list.

    A slot is an owner's name for one iteration: it stands on a message in place of its owner's number.
    """

    def __init__(self, common: bytes, masks: bytes, arms: int) -> None:
        self._common, self._masks = CommonCoins(common), CommonCoins(derived(masks, "masks"))
        self._slots = OrderCoins(derived(masks, "slots"), arms)

    def explores(self, t: int, chance: float) -> bool:
        """With this probability."""
        return chance > 0.0 and self._common.explore(t, chance)

    def mask(self, t: int, iteration: int) -> int:
        """Uniform in [1, 2^64]."""
        return self._masks.mask(t, iteration, MASK_BITS)

    def slots(self, t: int, iteration: int) -> np.ndarray:
        """(K,), owner i's at place i."""
        return self._slots.order(t, iteration)


def noise_of(seed: bytes) -> np.random.Generator:
    """An owner's stream, from the seed that is its own."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed, "little")))


class ReferenceCoins(SeededCoins):
    """A plaintext player's, who then pulls what the protocol pulls.

    In a step that explores Comp points at a place of the Controller's order; a player in the clear pulls the first arm,
    so its order is turned until that place comes first.
    """

    def __init__(self, seeds: Seeds, arms: int, policy: LocalPolicy) -> None:
        super().__init__(seeds, arms)
        self._arms, self._policy = arms, policy

    def order(self, t: int, iteration: int) -> np.ndarray:
        """A permutation of the arms."""
        order = super().order(t, iteration)
        chance = self._policy.explores(t)
        if chance > 0.0 and self.explore(t, chance):
            return np.roll(order, -uniform(self._arms, *self.point(t)))
        return order

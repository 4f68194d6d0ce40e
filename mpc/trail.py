"""A running digest of what all parties must have done alike.  Knows public facts only: shapes, kinds, owners, factors.

Every message carries it, so that parties whose programs differ in what they share, draw or multiply by, or that draw
from different blocks of their material, find out in the next round instead of going on with shares that do not belong
together.
"""

from __future__ import annotations

import hashlib

import numpy as np

from .correlations import Correlation


class Trail:
    """What this party has done since the session began."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=8)
        self._block = 0

    def note(self, *facts: object) -> None:
        """Public facts whose repr is the same everywhere."""
        self._digest.update(repr(facts).encode())

    def drew(self, item: Correlation, block: int = 0) -> None:
        """A correlation with its public parameters, and the block of material that it is of."""
        self._digest.update(item.digest)
        if block != self._block:
            self._block = block
            self.note("block", block)

    def multiplied(self, factor: np.ndarray) -> None:
        """A public factor: its shape and words."""
        self._digest.update(repr(factor.shape).encode())
        self._digest.update(np.ascontiguousarray(factor).data)

    def with_position(self, signature: bytes, position: str) -> bytes:
        """8 bytes for a round of this signature at this position."""
        digest = self._digest.copy()
        digest.update(signature)
        digest.update(position.encode())
        return digest.digest()

"""AES-256-GCM for messages of one byte length, many at once.  The one door to its package; knows labels, no protocol.

A label is the nonce and the associated data at once:

    direction (1 byte), iteration (1), slot (2), step (8)

so a message opens at its own step, iteration, slot and direction, and nowhere else.  A sealer goes through steps and
iterations upwards only, and whoever shares a key and a direction has other slots, so no nonce repeats.  A key serves
one sitting: whoever goes on with a run takes a fresh one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mpc.errors import ConfigError
from mpc.prg import Unshared

KEY_BYTES = 32
TAG_BYTES = 16
MOST_SLOTS = 1 << 16
_LABEL = np.dtype([("direction", "u1"), ("iteration", "u1"), ("slot", "<u2"), ("step", "<u8")])
_RAW = np.dtype(f"V{_LABEL.itemsize}")


class Direction(IntEnum):
    """Who a message is for."""

    TO_COMP = 1
    TO_OWNER = 2


class Forged(Exception):
    """Messages at these places were not sealed with this key under these labels."""

    def __init__(self, places: list[int]) -> None:
        super().__init__(f"{len(places)} messages do not open")
        self.places = places


def fresh_key() -> bytes:
    """256 bits from the operating system."""
    return os.urandom(KEY_BYTES)


class _Labels:
    """Labels of one direction, many at once."""

    def __init__(self, direction: Direction, rows: int) -> None:
        self._rows = np.zeros(rows, _LABEL)
        self._rows["direction"] = direction
        self._iteration, self._slot, self._step = (self._rows[name] for name in ("iteration", "slot", "step"))
        self._raw = self._rows.view(_RAW)

    def of(self, t: int, iteration: int, slots: np.ndarray) -> list[bytes]:
        self._iteration[:], self._slot[:], self._step[:] = iteration, slots, t
        labels: list[bytes] = self._raw.tolist()
        return labels


class Seal(Unshared):
    """Seals what goes in one direction, opens what comes from the other."""

    def __init__(self, key: bytes, sends: Direction, rows: int) -> None:
        """rows: how many messages are sealed, or opened, together."""
        if len(key) != KEY_BYTES:
            raise ConfigError(f"a key of AES-256 has {KEY_BYTES} bytes, this one {len(key)}")
        super().__init__()
        self._cipher = AESGCM(key)
        awaits = Direction.TO_OWNER if sends is Direction.TO_COMP else Direction.TO_COMP
        self._sent, self._awaited = _Labels(sends, rows), _Labels(awaits, rows)
        self._awaits = awaits
        self._last = 0, 0

    def seal(self, t: int, iteration: int, slots: np.ndarray, texts: Sequence[bytes]) -> list[bytes]:
        """Each text with its tag; steps and iterations only ever go up."""
        self.require_own()
        if (t, iteration) <= self._last:
            raise ConfigError(f"step {t}, iteration {iteration} was sealed before: a nonce serves once")
        self._last = t, iteration
        labels = self._sent.of(t, iteration, slots)
        return list(map(self._cipher.encrypt, labels, texts, labels))

    def open(self, t: int, iteration: int, slots: np.ndarray, sealed: Sequence[bytes]) -> list[bytes]:
        """The texts; Forged where one does not open."""
        labels = self._awaited.of(t, iteration, slots)
        try:
            return list(map(self._cipher.decrypt, labels, sealed, labels))
        except InvalidTag:
            places = [place for place, pair in enumerate(zip(labels, sealed)) if not self._opens(*pair)]
            raise Forged(places) from None

    def made_for(self, sealed: bytes, steps: Sequence[int], iterations: int, slots: int) -> int | None:
        """Of which of these steps a message is, if of any: where one does not open, whether it is a replay."""
        labels, everyone = _Labels(self._awaits, slots), np.arange(slots)
        for t in steps:
            for iteration in range(1, iterations + 1):
                if any(self._opens(label, sealed) for label in labels.of(t, iteration, everyone)):
                    return t
        return None

    def _opens(self, label: bytes, sealed: bytes) -> bool:
        try:
            self._cipher.decrypt(label, sealed, label)
        except InvalidTag:
            return False
        return True

    def __repr__(self) -> str:
        return "Seal(key hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a seal holds a key and is never pickled")

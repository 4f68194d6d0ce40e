"""The one source of masks: AES-128 in counter mode.  Knows keys, stream positions and its process; no protocol."""

from __future__ import annotations

import math
import os
from os import getpid

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from .errors import ConfigError

KEY_BYTES = 16
_BLOCK = 16
_ZEROS = memoryview(bytes(1 << 20))


def fresh_key() -> bytes:
    """A key from the operating system."""
    return os.urandom(KEY_BYTES)


class Unshared:
    """What two processes must not both go on with: a fork copies it, and each half would draw the same."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = getpid()  # asked each time: a server that forks in C calls no hook of Python's

    @property
    def forked(self) -> bool:
        """Whether it came into this process by a fork."""
        return self._process != getpid()

    def require_own(self) -> None:
        """Refuse a process that was forked from the one that made this."""
        if self._process != getpid():
            raise ConfigError(
                "this process was forked from the one that holds these masks and coins, and both would draw the same: "
                "let each worker make or load its own after the fork, or one process own them whom the workers ask"
            )


class Prg(Unshared):
    """An endless stream of bytes under one key; `stream` picks one of 2^64 independent streams of the same key.

    The stream number is the upper half of the counter block, so a stream can be entered anywhere without
    running through those before it, and no two streams meet before 2^64 blocks.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes, stream: int = 0) -> None:
        if len(key) != KEY_BYTES:
            raise ConfigError(f"a PRG key has {KEY_BYTES} bytes, this one {len(key)}")
        super().__init__()
        counter = stream.to_bytes(8, "big") + bytes(8)
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()

    def fill(self, out: np.ndarray) -> None:
        """Overwrite `out` (contiguous bytes, with one block of spare room behind `len(out) - 16`)."""
        self.require_own()
        view = memoryview(out.data)
        done, wanted = 0, len(view) - _BLOCK
        while done < wanted:
            step = min(wanted - done, len(_ZEROS))
            self._encryptor.update_into(_ZEROS[:step], view[done:])
            done += step

    def bytes(self, count: int) -> np.ndarray:
        """`count` uniform bytes."""
        out = np.empty(count + _BLOCK, np.uint8)
        self.fill(out)
        return out[:count]

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform elements of Z_2^64."""
        count = 8 * math.prod(shape)
        return self.bytes(count).view(np.uint64).reshape(shape)

    def below(self, bound: int, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform integers in [0, bound) by rejection, bound <= 2^63: no modulo bias."""
        if not 0 < bound <= 1 << 63:
            raise ConfigError(f"a bound lies in [1, 2^63], this one is {bound}")
        limit = np.uint64((1 << 64) // bound * bound - 1)
        words = self.words(shape)
        while (bad := words > limit).any():
            words = np.where(bad, self.words(shape), words)
        return words % np.uint64(bound)

    def permutations(self, shape: tuple[int, ...]) -> np.ndarray:
        """A uniform permutation of 0..shape[-1]-1 along the last axis: the order of 64-bit keys, redrawn on a tie."""
        while True:
            keys = self.words(shape)
            ordered = np.sort(keys, axis=-1)
            if not (ordered[..., 1:] == ordered[..., :-1]).any():
                return np.argsort(keys, axis=-1).astype(np.uint64)

    def __repr__(self) -> str:
        return "Prg(key hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a PRG holds a key and is never pickled")

"""The coins of a game: who explores, in which order arms are looked at, where a draw points, owners' noise.

Each purpose has a seed of its own, so that a participant who holds one kind of coins cannot compute another:

    order    the Controller's secret permutations        common   the owners' exploration and masks
    point    where a weighted draw points, Comp's        noise    what an owner adds, a stream for each owner
    rewards  of arms that are simulated

Orders and masks hide scores.  Coins are therefore expanded by SHAKE-256, which does not give away its seed; a run that
protects something takes fresh seeds, and one seed for all purposes is for experiments.  A coin is keyed by step and
iteration, both counted from 1, not by the order of calls; only owners' noise is a sequence.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple, Protocol

import numpy as np

from .errors import SambaError

SEED_BYTES = 32
POINT_BITS = 64
_UNIT = 2.0**-53
_BLOCK_KEYS = 1 << 13  # of orders that are drawn together


class Coins(Protocol):
    """What a policy draws on."""

    def explore(self, t: int, eps: float) -> bool:
        """True with probability eps."""

    def order(self, t: int, iteration: int) -> np.ndarray:
        """A permutation of the arms: the first in it wins a tie."""

    def point(self, t: int) -> tuple[int, int]:
        """(u, c) with u uniform in [0, 2^c)."""

    def noise(self, arm: int) -> np.random.Generator:
        """The stream of the arm's owner; each draw moves it on."""


class Seeds(NamedTuple):
    """256 bits for each purpose."""

    order: bytes
    point: bytes
    common: bytes
    noise: bytes
    rewards: bytes

    @classmethod
    def of(cls, seed: int) -> Seeds:
        """All from one number, at least 0 and below 2^128: for experiments."""
        if not 0 <= seed < 1 << 128:
            raise SambaError(f"a seed lies between 0 and 2^128 - 1, {seed} does not")
        return cls(*(derived(seed.to_bytes(16, "big"), purpose) for purpose in cls._fields))

    @classmethod
    def fresh(cls) -> Seeds:
        """Seeds that nobody else has."""
        return cls(*(secrets.token_bytes(SEED_BYTES) for _ in cls._fields))

    def __repr__(self) -> str:
        return "Seeds(hidden)"


def derived(seed: bytes, purpose: str) -> bytes:
    """A seed for one purpose; it tells nothing about `seed`."""
    return _stream(seed, f"seed of {purpose}", SEED_BYTES)


class OrderCoins:
    """The secret permutations, (K,) each; the first of an order is the first that is looked at."""

    def __init__(self, seed: bytes, arms: int) -> None:
        self._seed, self._arms = _checked(seed), arms
        self._block = max(1, _BLOCK_KEYS // arms)
        self._kept: dict[int, tuple[int, np.ndarray]] = {}

    def order(self, t: int, iteration: int) -> np.ndarray:
        """The permutation of a step's iteration."""
        block, row = divmod(t, self._block)
        kept = self._kept.get(iteration)
        if kept is None or kept[0] != block:
            raw = _stream(self._seed, f"order {iteration} {block}", 8 * self._block * self._arms)
            keys = np.frombuffer(raw, np.uint64).reshape(self._block, self._arms)
            kept = self._kept[iteration] = block, keys.argsort(axis=1, kind="stable")
        return np.asarray(kept[1][row])


class PointCoins:
    """Where weighted draws point."""

    def __init__(self, seed: bytes) -> None:
        self._seed = _checked(seed)

    def point(self, t: int) -> tuple[int, int]:
        """(u, 64) with u uniform in [0, 2^64)."""
        return int.from_bytes(_stream(self._seed, f"point {t}", POINT_BITS // 8), "little"), POINT_BITS


class CommonCoins:
    """What all owners draw alike: which steps explore, and the masks of their scores."""

    def __init__(self, seed: bytes) -> None:
        self._seed = _checked(seed)

    def explore(self, t: int, eps: float) -> bool:
        """True with probability eps."""
        return unit(self._seed, f"explore {t}") < eps

    def mask(self, t: int, iteration: int, bits: int) -> int:
        """Uniform in [1, 2^bits], bits a multiple of 8."""
        return 1 + int.from_bytes(_stream(self._seed, f"mask {t} {iteration} {bits}", bits // 8), "little")


def owner_noise(seed: bytes, arm: int) -> np.random.Generator:
    """The beginning of an owner's own stream."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(derived(_checked(seed), f"noise {arm}"), "little")))


class SeededCoins:
    """All kinds in one hand, for a plaintext game."""

    def __init__(self, seeds: Seeds, arms: int) -> None:
        self._order, self._point = OrderCoins(seeds.order, arms), PointCoins(seeds.point)
        self._common = CommonCoins(seeds.common)
        self._noise = [owner_noise(seeds.noise, arm) for arm in range(arms)]

    def explore(self, t: int, eps: float) -> bool:
        """True with probability eps."""
        return self._common.explore(t, eps)

    def order(self, t: int, iteration: int) -> np.ndarray:
        """A permutation of the arms."""
        return self._order.order(t, iteration)

    def point(self, t: int) -> tuple[int, int]:
        """(u, c) with u uniform in [0, 2^c)."""
        return self._point.point(t)

    def noise(self, arm: int) -> np.random.Generator:
        """The stream of the arm's owner."""
        return self._noise[arm]


def unit(seed: bytes, label: str) -> float:
    """Uniform in [0, 1), a multiple of 2^-53."""
    return (int.from_bytes(_stream(seed, label, 8), "little") >> 11) * _UNIT


def _checked(seed: bytes) -> bytes:
    if len(seed) != SEED_BYTES:
        raise SambaError(f"a seed has {SEED_BYTES} bytes, this one {len(seed)}: take one of Seeds")
    return seed


def _stream(seed: bytes, label: str, count: int) -> bytes:
    return hashlib.shake_256(b"samba, " + label.encode() + b": " + seed).digest(count)

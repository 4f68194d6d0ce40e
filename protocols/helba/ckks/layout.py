"""Which slot holds what.  Knows dimensions and arms; no ciphertext.

    block        [x_i x_j, i <= j | x_i]            `stride` slots, halves of `half`; the server's [A | w] in all alike
    arms         blocks 0 .. 2 K' - 2               arm j mod K in block j, so that a shift by blocks goes around
    tests        K blocks behind them               [x_i x_j | 0] of arm j: with the batch's sums, what tau would be
    cube         (i, j, k)                          products of matrices: left has M_ik there, right M_jk
    pairs        (i, j)                             products of a matrix and a vector

K' is the power of two from K on; products x_i x_j with i < j count twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpc.errors import ConfigError

MOST_DIM = 4


class Plan(IntEnum):
    """How a user places the numbers of a ciphertext that it refreshes.  STAY: where they are.  ROUNDED: there as well,
    to about 5e-7."""

    STAY = 0
    ROUNDED = 5
    GRAM = 1  # V X of a cube's corners, as a right factor
    NEXT = 2  # X of a cube's corners, as right and as left factor
    ADOPT = 3  # A of a cube's corners, in all blocks and in pairs
    ESTIMATE = 4  # w of pairs' corners, in all blocks


class Placing(NamedTuple):
    """A fresh ciphertext: slot `to` gets what `source` had, all others 0."""

    to: np.ndarray
    source: np.ndarray


@dataclass(frozen=True)
class Layout:
    """slots: how many there are."""

    dim: int
    arms: int
    slots: int

    def __post_init__(self) -> None:
        if self.dim > MOST_DIM:
            raise ConfigError(
                f"ciphertexts are laid out for at most {MOST_DIM} dimensions, not {self.dim}: use --mode mpc"
            )
        if self.end > self.slots - self.window * self.stride:
            raise ConfigError(f"{self.arms} arms do not fit {self.slots} slots: use --mode mpc, or a larger degree")

    @property
    def half(self) -> int:
        """Slots of a block's products."""
        return _power(self.dim * (self.dim + 1) // 2)

    @property
    def stride(self) -> int:
        """Slots of a block."""
        return 2 * self.half

    @property
    def around(self) -> int:
        """K'."""
        return _power(self.arms)

    @property
    def window(self) -> int:
        """Blocks of arms."""
        return 2 * self.around - 1

    @property
    def side(self) -> int:
        """Of a cube."""
        return _power(self.dim)

    @cached_property
    def arm_at(self) -> np.ndarray:
        """Where the numbers of each block of arms come to lie."""
        return np.arange(self.window) * self.stride

    @cached_property
    def test_at(self) -> np.ndarray:
        """The same of each test."""
        return (self.window + np.arange(self.arms)) * self.stride

    @cached_property
    def kept(self) -> np.ndarray:
        """Where anything of a user's can lie when a ciphertext of arms and tests is refreshed: shifts go around."""
        first = -(self.around - 1)
        return np.arange(first, self.window + self.arms) * self.stride % self.slots

    @property
    def cube(self) -> int:
        """Its first slot."""
        return (self.window + self.arms + 1) * self.stride

    @property
    def pairs(self) -> int:
        """Their first slot."""
        return self.cube + (self.side + 1) * self.side**2

    @property
    def end(self) -> int:
        """Behind the last slot."""
        return self.pairs + self.side * (self.side + 1)

    @cached_property
    def steps(self) -> list[int]:
        """Shifts that a server makes."""
        sums = [1 << bit for bit in range(self.half.bit_length() - 1)]
        around = [self.stride << bit for bit in range(self.around.bit_length() - 1)]
        return sorted({*sums, self.half, *around, *self.cube_steps})

    @property
    def cube_steps(self) -> list[int]:
        """Shifts that add up k, or j of pairs."""
        return [1 << bit for bit in range(self.side.bit_length() - 1)]

    def of_arms(self, numbers: np.ndarray | float) -> np.ndarray:
        """At `arm_at`."""
        return self._at(self.arm_at, numbers)

    def of_tests(self, numbers: np.ndarray | float) -> np.ndarray:
        """At `test_at`."""
        return self._at(self.test_at, numbers)

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self.dim)

    def state(self, inverse: np.ndarray, estimate: np.ndarray) -> np.ndarray:
        """[A | w] in all blocks."""
        block = np.zeros(self.stride)
        block[: len(self._entries[0])] = inverse[self._entries]
        block[self.half : self.half + self.dim] = estimate
        whole = np.zeros(self.slots)
        whole[: self.cube - self.stride] = np.tile(block, self.window + self.arms)
        return whole

    def squares(self, x: np.ndarray) -> np.ndarray:
        """Products of a vector, those that count twice doubled."""
        i, j = self._entries
        return np.asarray(x[i] * x[j] * np.where(i == j, 1.0, 2.0))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Of (K, d) features, for all arms and tests."""
        whole = np.zeros(self.slots)
        count = len(self._entries[0])
        for block in range(self.window + self.arms):
            test = block >= self.window
            row = x[(block - self.window if test else block % self.around) % self.arms]
            at = block * self.stride
            whole[at : at + count] = self.squares(row)
            if not test:
                whole[at + self.half : at + self.half + self.dim] = row
        return whole

    def learned(self, x: np.ndarray, reward: float) -> np.ndarray:
        """Of the pulled arm: squares in the tests' blocks, x x' as a left factor in the cube, r x in the pairs."""
        whole = np.zeros(self.slots)
        squares = self.squares(x)
        for at in self.test_at:
            whole[at : at + len(squares)] = squares
        i, j, k = self._cube_axes
        whole[self.cube_slot(i, j, k)] = x[i] * x[k]
        i, j = self._pair_axes
        whole[self.pair_slot(i, j)] = reward * x[j]
        return whole

    def left(self, matrix: np.ndarray) -> np.ndarray:
        """A symmetric matrix as a left factor."""
        i, j, k = self._cube_axes
        return self._at(self.cube_slot(i, j, k), matrix[i, k])

    def right(self, matrix: np.ndarray) -> np.ndarray:
        """And as a right one."""
        i, j, k = self._cube_axes
        return self._at(self.cube_slot(i, j, k), matrix[j, k])

    def corners(self) -> np.ndarray:
        """1 where the sums over k come to lie."""
        i, j = self._pair_axes
        return self._at(self.cube_slot(i, j, 0 * i), 1.0)

    def edges(self) -> np.ndarray:
        """1 where the sums over j of pairs come to lie."""
        return self._at(self.pair_slot(np.arange(self.dim), 0), 1.0)

    def placings(self, plan: Plan) -> list[Placing]:
        """What a user makes of a ciphertext."""
        i, j, k = self._cube_axes
        cube, corner = self.cube_slot(i, j, k), 0 * k
        as_right = Placing(cube, self.cube_slot(k, j, corner))
        if plan is Plan.GRAM:
            return [as_right]
        if plan is Plan.NEXT:
            return [as_right, Placing(cube, self.cube_slot(i, k, corner))]
        blocks = np.arange(self.window + self.arms)[:, None] * self.stride
        if plan is Plan.ADOPT:
            a, b = self._entries
            i, j = self._pair_axes
            pairs = Placing(self.pair_slot(i, j), self.cube_slot(i, j, 0 * i))
            return [_spread(blocks + np.arange(len(a)), self.cube_slot(a, b, 0 * a)), pairs]
        assert plan is Plan.ESTIMATE
        return [_spread(blocks + self.half + np.arange(self.dim), self.pair_slot(np.arange(self.dim), 0))]

    def cube_slot(self, i: np.ndarray, j: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Of (i, j, k)."""
        return np.asarray(self.cube + (i * self.side + j) * self.side + k)

    def pair_slot(self, i: np.ndarray, j: np.ndarray | int) -> np.ndarray:
        """Of (i, j)."""
        return np.asarray(self.pairs + i * self.side + j)

    @cached_property
    def _cube_axes(self) -> tuple[np.ndarray, ...]:
        return tuple(axis.ravel() for axis in np.indices((self.dim,) * 3))

    @cached_property
    def _pair_axes(self) -> tuple[np.ndarray, ...]:
        return tuple(axis.ravel() for axis in np.indices((self.dim,) * 2))

    def _at(self, where: np.ndarray, numbers: np.ndarray | float) -> np.ndarray:
        whole = np.zeros(self.slots)
        whole[where] = numbers
        return whole


def _spread(to: np.ndarray, source: np.ndarray) -> Placing:
    return Placing(to.ravel(), np.broadcast_to(source, to.shape).ravel())


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length() if count > 1 else 1

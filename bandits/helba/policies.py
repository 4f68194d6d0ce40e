"""The policies in float64, one step at a time.

    V = lambda I + sum x x',  b = sum r x         over the pulled arms' features, up to the last step
    A = V^-1,  w = A b                            frozen where a batch begins; the indices use these alone
    z_a = x_a' A x_a,  index_a = <x_a, w> + bonus(z_a)
    tau = sum of z of the pulled arms             over the batch

A policy is a bonus and a rule that ends a batch.  The step that ends it is learned from, and the next batch begins at
the step behind it (as printed, HELBA loses that step from tau: `approximate`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from .constants import Batches, Constants


class Policy(ABC):
    """start: t_j, the step at which the batch began.  updates: how many batches have ended."""

    def __init__(self, constants: Constants) -> None:
        dim = constants.dim
        self.constants, self.t, self.start, self.updates, self.tau = constants, 1, 1, 0, 0.0
        self.gram, self.sums = constants.ridge * np.eye(dim), np.zeros(dim)
        self.inverse: np.ndarray = np.eye(dim) / constants.ridge
        self.estimate: np.ndarray = np.zeros(dim)

    @abstractmethod
    def bonus(self, z: np.ndarray) -> np.ndarray:
        """What optimism adds at step t."""

    @abstractmethod
    def ends(self) -> bool:
        """Whether the batch ends behind step t, which has been learned from."""

    def squares(self, x: np.ndarray) -> np.ndarray:
        """z of (K, d) features."""
        return np.asarray(np.einsum("ki,ij,kj->k", x, self.inverse, x))

    def indices(self, x: np.ndarray) -> np.ndarray:
        """What the arms are ranked by."""
        return np.asarray(x @ self.estimate + self.bonus(self.squares(x)))

    def learn(self, x: np.ndarray, reward: float) -> bool:
        """Take in the pulled arm's features and reward; whether that ended a batch."""
        self.tau += float(x @ self.inverse @ x)
        self.gram += np.outer(x, x)
        self.sums += reward * x
        ended = self.ends()
        if ended:
            self.freeze(self.t + 1)
        self.t += 1
        return ended

    def freeze(self, start: int) -> None:
        """Begin a batch."""
        self.inverse = np.linalg.inv(self.gram)
        self.estimate = self.inverse @ self.sums
        self.start, self.tau = start, 0.0
        self.updates += 1


class OFUL(Policy):
    """Learns at every step."""

    def bonus(self, z: np.ndarray) -> np.ndarray:
        """beta(t) sqrt(z)."""
        return np.asarray(self.constants.beta(self.t) * np.sqrt(z))

    def ends(self) -> bool:
        """Always."""
        return True


class RSOFUL(OFUL):
    """Learns when det V has grown by the factor 1 + C."""

    def ends(self) -> bool:
        """det V >= (1 + C) det V of the batch's begin."""
        grown = np.linalg.slogdet(self.gram)[1] + np.linalg.slogdet(self.inverse)[1]
        return bool(grown >= math.log1p(self.constants.trace))


class RSOFULTrace(OFUL):
    """Learns when tau has reached C."""

    def ends(self) -> bool:
        """tau >= C."""
        return self.tau >= self.constants.trace


class HELBA(Policy):
    """What a run on shares computes, with an exact inverse, root, argmax and test.

    batches: where nobody may know when a batch ends, the slack is that of the earliest step at which it can have begun.
    """

    def __init__(self, constants: Constants, batches: Batches = Batches.PUBLIC) -> None:
        super().__init__(constants)
        self.batches = batches

    @property
    def slack(self) -> float:
        """What z may miss, at least."""
        hidden = self.batches is Batches.HIDDEN
        return self.constants.slack(self.constants.earliest(self.t) if hidden else self.start)

    def bonus(self, z: np.ndarray) -> np.ndarray:
        """beta(t) (sqrt(z + c) + 1 / t)."""
        return np.asarray(self.constants.beta(self.t) * (np.sqrt(z + self.slack) + 1.0 / self.t))

    def ends(self) -> bool:
        """tau >= C, or t + 1 >= (1 + eta) t_j; without batches always."""
        if self.batches is Batches.NONE:
            return True
        return self.tau >= self.constants.trace or self.constants.grown(self.t, self.start)

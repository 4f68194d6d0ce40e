"""Where rewards come from.  Knows contexts and chances; no policy.

An environment is a table: contexts, one per row, and for each the chance of a reward under every arm.  An episode
is a sequence of rows with all outcomes drawn beforehand: two policies that pull the same arms are paid the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

DATA_SETS = ("digits", "mnist", "synthetic")


class Task(Enum):
    """What is to be found out of a context: its class, or, with chance, the cluster that it is near to."""

    CLASSES = "classes"
    CLUSTERS = "clusters"


class Episodic(Protocol):
    """Whatever gives episodes: a table of contexts, or a problem of a system's own."""

    @property
    def name(self) -> str:
        """What a table of results calls it."""

    @property
    def arms(self) -> int:
        """How many."""

    @property
    def dim(self) -> int:
        """Features of a context."""

    @property
    def ends(self) -> tuple[float, float]:
        """Between which all rewards lie."""

    def episode(self, steps: int, seed: int) -> Episode:
        """The same for the same seed."""


@dataclass(frozen=True)
class Environment:
    """contexts: (n, dim) with norm at most 1; chances: (n, arms) in [0, 1].

    drawn: whether a reward is 1 with that chance, else 0; if not, `chances` are the rewards themselves, any real ones.
    held_out: contexts of the same kind that are not to be learned from, where the data set brings such.
    """

    name: str
    contexts: np.ndarray
    chances: np.ndarray
    drawn: bool = True
    held_out: Environment | None = None

    @property
    def arms(self) -> int:
        return self.chances.shape[1]

    @property
    def dim(self) -> int:
        return self.contexts.shape[1]

    @property
    def ends(self) -> tuple[float, float]:
        """Between which all rewards lie: 0 and 1, or wider."""
        return float(min(0.0, self.chances.min())), float(max(1.0, self.chances.max()))

    def episode(self, steps: int, seed: int) -> Episode:
        """Rows in random order, each once before any comes again, and the outcome of every arm at every step."""
        rng = np.random.default_rng(seed)
        rounds = -(-steps // len(self.contexts))
        rows = np.concatenate([rng.permutation(len(self.contexts)) for _ in range(rounds)])[:steps]
        if not self.drawn:
            return Episode(self.contexts[rows], self.chances[rows], self.chances[rows])
        paid = rng.random((steps, self.arms)) < self.chances[rows]
        return Episode(self.contexts[rows], paid.astype(np.float64), self.chances[rows])


@dataclass(frozen=True)
class Episode:
    """contexts: (steps, dim); outcomes: (steps, arms), what each arm would pay.  chances: the same on average."""

    contexts: np.ndarray
    outcomes: np.ndarray
    chances: np.ndarray | None = None

    @property
    def means(self) -> np.ndarray:
        """What each arm pays on average; where nobody knows, what it would pay."""
        return self.outcomes if self.chances is None else self.chances

    def __len__(self) -> int:
        return len(self.contexts)


def right_or_wrong(name: str, contexts: np.ndarray, labels: np.ndarray) -> Environment:
    """An arm for each class, in ascending order; the arm that is a context's class pays 1, all others 0."""
    classes, places = np.unique(labels, return_inverse=True)
    return Environment(name, contexts, np.eye(len(classes))[places])


def gaussian_kernel(name: str, contexts: np.ndarray, centres: np.ndarray, sigma: float = 0.5) -> Environment:
    """An arm for each centre, P(reward | arm a, x) = e^(-|c_a - x|^2 / 2 sigma^2) / their sum over the arms."""
    squared = ((contexts[:, None] - centres[None]) ** 2).sum(axis=-1)
    weights = np.exp(-(squared - squared.min(axis=1, keepdims=True)) / (2.0 * sigma**2))
    return Environment(name, contexts, weights / weights.sum(axis=1, keepdims=True))


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Rows scaled to norm 1; a zero row stays zero."""
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(norms > 0, norms, 1.0)


def synthetic_linear(arms: int, dim: int, *, rows: int = 5000, seed: int = 0) -> Environment:
    """Chances that are linear in the context: (1 + <theta_a, x>) / 2 with unit theta and x."""
    rng = np.random.default_rng(seed)
    contexts, thetas = unit_rows(rng.normal(size=(rows, dim))), unit_rows(rng.normal(size=(arms, dim)))
    return Environment("synthetic", contexts, 0.5 * (1.0 + contexts @ thetas.T))

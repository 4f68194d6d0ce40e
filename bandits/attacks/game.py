"""The membership game: who is played to a learner, who is kept out, what a result says.  No attack.

Rows of an environment are split: some are played, the others are held out.  A target and its double are held-out rows,
so neither occurs elsewhere in the stream.  In the world *in* the learner meets the target at one step, in the world
*out* it meets the double; the other contexts, and what every arm would pay, are the same, and the coins are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..environments import Environment
from ..linear import LinearBandit
from .advantage import Advantage

Learner = Callable[[int], LinearBandit]
"""Makes a policy of so many replicas."""

Watch = Callable[[int], None]
"""Is told how many steps are done."""

FEWEST_ROWS = 24
_STATE_BYTES = 64e6  # of the replicas that play at once: farther from the cache each costs twice as much
_STREAM_BYTES = 256e6


@dataclass(frozen=True)
class Plan:
    """checkpoints: how many, equally spaced, or `at` which steps; the last of them is the end.

    runs: independent bandits, or targets, or streams, as the attack says.
    """

    eps: float
    steps: int
    checkpoints: int
    runs: int
    seed: int
    at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1:
            raise ValueError(f"exploration is a probability in [0, 1], not {self.eps:g}")
        if not 1 <= self.checkpoints <= self.steps:
            raise ValueError(
                f"{self.checkpoints} checkpoints in {self.steps} steps: choose at least 1, and a step for each"
            )
        if self.runs < 1:
            raise ValueError(f"at least 1 run, not {self.runs}")

    @property
    def ends(self) -> list[int]:
        """The checkpoints, as numbers of steps."""
        return list(self.at) or [self.steps * (k + 1) // self.checkpoints for k in range(self.checkpoints)]

    def rng(self, attack: int) -> np.random.Generator:
        """Coins of one attack."""
        return np.random.default_rng([self.seed, attack])

    def portions(self, environment: Environment, replicas: int, step_bytes: int) -> Iterator[int]:
        """Numbers of runs that play at once, when a run takes so many replicas, and so many bytes for each step."""
        state_bytes = 8 * environment.arms * environment.dim**2 * replicas
        most = max(1, int(min(_STATE_BYTES / state_bytes, _STREAM_BYTES / (step_bytes * self.steps))))
        parts = -(-self.runs // most)
        yield from (self.runs * (k + 1) // parts - self.runs * k // parts for k in range(parts))


@dataclass(frozen=True)
class Row:
    """One adversary at one checkpoint.

    step: how many steps were played.  arm_ratio, total_ratio: the largest absolute log-ratio that one arm, and that all
    arms together, showed to an adversary who follows the whole sequence.
    """

    attack: str
    knows: str
    step: int
    advantage: Advantage
    arm_ratio: float | None = None
    total_ratio: float | None = None


def split(environment: Environment, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to play and rows to hold out: those that the steps do not need, and at least a sixth."""
    rows = len(environment.contexts)
    if rows < FEWEST_ROWS:
        raise ValueError(f"an attack needs an environment of at least {FEWEST_ROWS} contexts, not {rows}")
    held_out = max(rows // 6, rows - steps)
    mixed = rng.permutation(rows)
    return mixed[held_out:], mixed[:held_out]


def in_turn(rows: np.ndarray, steps: int, streams: int, rng: np.random.Generator) -> np.ndarray:
    """(streams, steps): rows in random order, each once before any comes again."""
    rounds = -(-steps // len(rows))
    orders = [rng.permuted(np.tile(rows.astype(np.int32), (streams, 1)), axis=1) for _ in range(rounds)]
    return np.concatenate(orders, axis=1)[:, :steps]


@dataclass(frozen=True)
class Game:
    """Streams with a target each.

    stream: (streams, steps) rows.  at: the step of each target, before the first checkpoint.  pair: (streams, 2) rows
    of target and double.  public: rows that are neither played nor targets.
    """

    stream: np.ndarray
    at: np.ndarray
    pair: np.ndarray
    public: np.ndarray

    @classmethod
    def draw(cls, environment: Environment, plan: Plan, streams: int, rng: np.random.Generator) -> Game:
        """Streams over the same split of the rows, each in an order of its own."""
        played, held_out = split(environment, plan.steps, rng)
        targets, public = held_out[::2], held_out[1::2]
        first, apart = rng.integers(len(targets), size=streams), rng.integers(1, len(targets), size=streams)
        pair = targets[np.stack([first, (first + apart) % len(targets)], axis=1)]
        at = rng.integers(plan.ends[0], size=streams)
        return cls(in_turn(played, plan.steps, streams, rng), at, pair, public)

    def rows(self, step: int) -> np.ndarray:
        """(streams, 2): what is played at this step in the worlds in and out."""
        return np.where((self.at == step)[:, None], self.pair, self.stream[:, step, None])

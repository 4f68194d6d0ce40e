"""Arms that pay 1 with a fixed chance and else 0, or what was recorded, and the files that hold means.

A reward is keyed by (seed, arm, step), not by the order of pulls: two games that pull the same arm in the same step are
paid the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from .coins import unit
from .errors import SambaError


def reward(seed: bytes, mean: float, arm: int, t: int) -> int:
    """What an arm pays at step t: 1 with chance `mean`, else 0."""
    return int(unit(seed, f"reward {arm} {t}") < mean)


class Arms(Protocol):
    """What a game is played with."""

    @property
    def means(self) -> np.ndarray:
        """(K,), of what each pays."""

    def __len__(self) -> int: ...

    def reward(self, seed: bytes, arm: int, t: int) -> int:
        """What an arm pays at step t, counted from 1."""


@dataclass(frozen=True)
class BernoulliArms:
    """means: (K,), each in [0, 1]."""

    means: np.ndarray

    def __post_init__(self) -> None:
        if self.means.ndim != 1 or not self.means.size:
            raise SambaError(f"means of at least one arm are wanted, not an array of shape {self.means.shape}")
        wrong = np.nonzero(~((self.means >= 0.0) & (self.means <= 1.0)))[0]
        if wrong.size:
            first = int(wrong[0])
            raise SambaError(f"arm {first} has mean {self.means[first]:g}: a mean lies in [0, 1]")

    def __len__(self) -> int:
        return len(self.means)

    def reward(self, seed: bytes, arm: int, t: int) -> int:
        """What an arm pays at step t."""
        return reward(seed, float(self.means[arm]), arm, t)


@dataclass(frozen=True)
class RecordedArms:
    """outcomes: (N, K), what each arm would pay at each step."""

    outcomes: np.ndarray

    def __post_init__(self) -> None:
        if self.outcomes.ndim != 2 or not self.outcomes.size:
            raise SambaError(f"what each arm pays at each step is wanted, not an array of shape {self.outcomes.shape}")
        if (unfit := ~np.isin(self.outcomes, (0, 1))).any():
            step, arm = (int(each[0]) for each in np.nonzero(unfit))
            raise SambaError(f"arm {arm} pays no 0 or 1 at step {step + 1}: SAMBA is for such rewards")

    @property
    def means(self) -> np.ndarray:
        """Of all steps."""
        return np.asarray(self.outcomes.mean(axis=0))

    def __len__(self) -> int:
        return self.outcomes.shape[1]

    def reward(self, seed: bytes, arm: int, t: int) -> int:
        """What an arm pays at step t, whatever the seed."""
        return int(self.outcomes[t - 1, arm])


def load_arms(path: Path) -> BernoulliArms:
    """From a text file: the number of arms K, then K means, with spaces or line ends between."""
    if not path.is_file():
        raise SambaError(f"there is no file {path}: name a text file with the number of arms, then their means")
    try:
        first, *rest = path.read_text(encoding="utf-8").split() or [""]
        means = np.array([float(number) for number in rest])
        count = int(first)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise SambaError(f"{path} is no arms file ({said}): write the number of arms, then a mean for each") from error
    if count != len(means):
        raise SambaError(f"{path} announces {count} arms and holds {len(means)} means: correct its first line")
    try:
        return BernoulliArms(means)
    except SambaError as error:
        raise SambaError(f"{path}: {error}") from None


def save_arms(path: Path, arms: BernoulliArms) -> None:
    """As `load_arms` reads them, every mean to its last bit."""
    path.write_text("\n".join([str(len(arms)), *(repr(mean) for mean in arms.means.tolist())]) + "\n")

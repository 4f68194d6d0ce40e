"""What a chooser's arms show of its eta: a lower confidence bound, from counts.  Knows counts; no formula of eta.

Pure differential privacy bounds the ratio of the chances of every event, and the largest ratio is that of a single arm.
So: count the arms pulled under two contexts, choose the arm and the direction on the first half of the runs, and
on the second half divide a lower bound of the one chance by an upper bound of the other.  Choosing on other runs than
those that are tested keeps the confidence as stated.  A chooser that is eta-private exceeds eta with probability at
most 1 - confidence; one that leaks does so once the runs are many enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .accounting import clopper_pearson

Chooser = Callable[[np.ndarray], np.ndarray]
"""(runs, arms) scores to (runs, arms) one-hot arms."""

Counts = np.ndarray
"""(2, arms): how often each arm was pulled under the one and the other context."""


@dataclass(frozen=True)
class Finding:
    """eta is at least `lower`, with this confidence.

    arm: the one that is e^lower times as likely under one context as under the other.  runs: on each context.
    """

    lower: float
    arm: int
    runs: int
    confidence: float


def audit(
    choose: Chooser,
    arms: int,
    *,
    runs: int,
    confidence: float = 0.999,
    batch: int = 10_000,
    progress: Callable[[int], None] | None = None,
) -> Finding:
    """Run a chooser `runs` times on each of two contexts with different best arms.

    batch: how many runs the chooser is given at once.
    """
    if runs < 2:
        raise ValueError(f"an audit chooses on one half of its runs and tests on the other: at least 2, not {runs}")
    pair, done = opposite_scores(arms), 0

    def said(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done)

    halves = [
        np.stack([count(choose, scores, half, batch=batch, progress=said) for scores in pair])
        for half in (runs // 2, runs - runs // 2)
    ]
    return lower_bound(*halves, confidence=confidence)


def opposite_scores(arms: int) -> np.ndarray:
    """(2, arms) scores of two contexts: the first arm is best in one, the last in the other."""
    scores = np.zeros((2, arms))
    scores[0, 0] = scores[1, -1] = 1.0
    return scores


def count(
    choose: Chooser, scores: np.ndarray, runs: int, *, batch: int, progress: Callable[[int], None] | None = None
) -> np.ndarray:
    """How often each arm is pulled in `runs` runs on the same scores."""
    counts = np.zeros(scores.shape, np.int64)
    for start in range(0, runs, batch):
        size = min(batch, runs - start)
        onehot = choose(np.tile(scores, (size, 1)))
        if onehot.shape != (size, *scores.shape) or not (np.sort(onehot, axis=-1) == np.eye(len(scores))[-1]).all():
            raise ValueError(f"a chooser gives one arm of {len(scores)} in each of {size} rows, as a 1 among zeros")
        counts += onehot.sum(axis=0).astype(np.int64)
        if progress is not None:
            progress(size)
    return counts


def lower_bound(held_out: Counts, tested: Counts, *, confidence: float) -> Finding:
    """The bound from two halves of the runs: the first chooses arm and direction, the second gives the number."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is a probability in (0, 1), not {confidence:g}")
    alpha = (1.0 - confidence) / 2.0  # two chances are bounded, each may be wrong
    direction, arm = np.unravel_index(_log_ratios(held_out, alpha).argmax(), held_out.shape)
    lower = float(_log_ratios(tested, alpha)[direction, arm])
    return Finding(max(0.0, lower), int(arm), int(held_out[0].sum() + tested[0].sum()), confidence)


def _log_ratios(counts: Counts, alpha: float) -> np.ndarray:
    """(direction, arm): the log of a chance's lower bound over the other's upper bound; -inf for an arm never seen."""
    lower, upper = clopper_pearson(counts, counts.sum(axis=-1, keepdims=True), alpha)
    with np.errstate(divide="ignore"):
        return np.log(lower) - np.log(upper[::-1])

"""A policy learned from the first part of a log, and judged on the rest.  Knows policies and estimates; no file.

The policy does not learn from the rows that it is judged on: each estimate is then a mean over rows whose interval
means what it says.  Its own regressions are the model of the doubly robust estimate.

    pi(a | x) = eps / A + (1 - eps) o_a         o one-hot of the arm that it ranks first
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .estimators import Estimate, doubly_robust, effective_rows, ips, replay_average, snips, steady
from .linear import LinearBandit
from .logs import LogError, RecordedLog

ESTIMATORS = ("replay", "ips", "snips", "dr")
_FEW_ROWS = 100  # effective ones, below which an interval by the influence of rows is a guess
_FEW_PAID = 5  # rows that count and pay, or do not: below, the estimate hangs on single rows
_FEW_HEAVY = 10  # rows that have half of all squared weights: how many such there are is chance
_AVERAGE_WEIGHT = 4.0  # standard errors that the weights' mean may be from 1
_ROUNDED = 0.01  # propensities of a file have few digits
_RARE = 0.02
_WINDOW = 500


@dataclass(frozen=True)
class Problem:
    """log: all rows.  first: how many of them are learned from.  eps: how often the policy explores.

    learning: whether the logging policy was learning, so that rows are weighted steadily.
    """

    log: RecordedLog
    arms: int
    first: int
    eps: float
    learning: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.first < len(self.log) - 1:
            raise LogError(
                f"a log of {len(self.log)} rows cannot be learned from up to row {self.first} and judged on two or more"
            )

    @property
    def learned(self) -> RecordedLog:
        return self.log.rows(0, self.first)

    @property
    def judged(self) -> RecordedLog:
        return self.log.rows(self.first, len(self.log))


class Finding(NamedTuple):
    """A policy by one estimator.  rows: effective ones.  doubts: why the estimate may not hold; none where it does."""

    policy: str
    estimator: str
    estimate: Estimate
    rows: float
    doubts: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """chances: (rows, arms) of all rows.  arms: (rows,), drawn from them."""

    name: str
    chances: np.ndarray
    arms: np.ndarray


def twin(problem: Problem, policy: LinearBandit) -> LinearBandit:
    """The policy, of one replica, after the rows that are learned from."""
    log = problem.learned
    policy.update(log.contexts[None], log.arms[None], log.rewards[None])
    return policy


def candidates(problem: Problem, scores: np.ndarray, *, name: str, arms: Sequence[str], seed: int) -> list[Candidate]:
    """The arm that paid most in the first part, uniform arms, and the policy with (rows, arms) scores."""
    rng, log, rows = np.random.default_rng(seed), problem.learned, len(problem.log)
    pulls = np.bincount(log.arms, minlength=problem.arms)
    paid = np.bincount(log.arms, log.rewards, problem.arms) / np.maximum(pulls, 1)
    best = int(np.where(pulls > 0, paid, -np.inf).argmax())
    fixed = np.zeros((rows, problem.arms))
    fixed[:, best] = 1.0
    uniform = np.full((rows, problem.arms), 1.0 / problem.arms)
    named = ((f"always {arms[best]}", fixed), ("uniform arms", uniform), (name, chances(scores, problem.eps)))
    return [Candidate(of, pi, _drawn(pi, rng)) for of, pi in named]


def chances(scores: np.ndarray, eps: float) -> np.ndarray:
    """Epsilon-greedy's, of each arm; arms that tie for the best share it."""
    best = scores == scores.max(axis=-1, keepdims=True)
    return eps / scores.shape[-1] + (1.0 - eps) * best / best.sum(axis=-1, keepdims=True)


def judge(problem: Problem, candidate: Candidate, predicted: np.ndarray) -> list[Finding]:
    """By all estimators that the log allows.  predicted: (rows, arms), the model's reward of each arm."""
    log, late = problem.judged, slice(problem.first, None)
    hit = candidate.arms[late] == log.arms
    doubts = [] if log.uniform(problem.arms) else ["arms were not logged uniformly"]
    found = [_finding(candidate.name, "replay", replay_average(log.rewards, hit), hit.astype(float), doubts, log)]
    if log.propensities is None:
        return found
    weights, h = weighted(problem, candidate.chances)
    given = log.rewards, weights
    model, expected = np.take_along_axis(predicted[late], log.arms[:, None], axis=1)[:, 0], predicted[late]
    expected = (candidate.chances[late] * expected).sum(axis=1)
    doubts = _off(weights)
    for name, estimate in (
        ("ips", ips(*given, h)), ("snips", snips(*given, h)), ("dr", doubly_robust(*given, expected, model, h)),
    ):  # fmt: skip
        found.append(_finding(candidate.name, name, estimate, weights if h is None else h * weights, doubts, log))
    return found


def weighted(problem: Problem, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """w of each row that is judged; and h, where the logger was learning.  pi: (rows, arms) of all rows."""
    assert problem.log.propensities is not None
    all_rows = np.take_along_axis(pi, problem.log.arms[:, None], axis=1)[:, 0] / problem.log.propensities
    weights = all_rows[problem.first :]
    return weights, steady(weights, all_rows[: problem.first], window=_WINDOW) if problem.learning else None


def logged(problem: Problem) -> Finding:
    """The policy that made the log, by its own average."""
    log = problem.judged
    doubts = ("it was learning: its average over these rows",) if problem.learning else ()
    return Finding("the log's own", "average", replay_average(log.rewards), float(len(log)), doubts)


def doubts_of_log(problem: Problem) -> list[str]:
    """What any weighting of the rows that are judged suffers from."""
    given = problem.judged.propensities
    if given is None or given.min() >= _RARE:
        return []
    rare = int((given < _RARE).sum())
    return [
        f"propensities below {_RARE:g} in {rare:,} of the rows that are judged: "
        f"each stands for more than {1 / _RARE:.0f} others"
    ]


def _finding(
    policy: str, name: str, estimate: Estimate, weights: np.ndarray, doubts: Sequence[str], log: RecordedLog
) -> Finding:
    rows, found = float(effective_rows(weights)), list(doubts)
    if not np.isfinite(estimate.value):
        found.insert(0, "no row counts")
    elif rows < _FEW_ROWS:
        found.append(f"only {rows:.0f} effective rows")
    elif (heavy := _heavy(weights)) < _FEW_HEAVY:
        found.append(f"half of its weight lies on {heavy} of {len(weights):,} rows")
    paid = log.rewards[weights > 0]
    if paid.size and np.isin(paid, (0.0, 1.0)).all() and min(paid.sum(), (1 - paid).sum()) < _FEW_PAID:
        few, what = min((paid.sum(), "paid"), ((1 - paid).sum(), "did not pay"))
        found.append(f"{few:.0f} of {paid.size} rows {what}")
    return Finding(policy, name, estimate, rows, tuple(found))


def _heavy(weights: np.ndarray) -> int:
    """How few rows have half of the squared weights."""
    squares = np.sort(weights**2)[::-1].cumsum()
    return int(np.searchsorted(squares, squares[-1] / 2.0)) + 1


def _off(weights: np.ndarray) -> list[str]:
    """Weights average 1 whatever the policy, if the propensities are right."""
    mean, error = float(weights.mean()), float(weights.std(ddof=1)) / len(weights) ** 0.5
    if abs(mean - 1.0) <= max(_AVERAGE_WEIGHT * error, _ROUNDED):
        return []
    return [f"weights average {mean:.2f}, not 1: are these the logged arms' propensities?"]


def _drawn(pi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray((pi.cumsum(axis=1) <= rng.random((len(pi), 1))).sum(axis=1).clip(max=pi.shape[1] - 1))

"""From a log as a team has it to what a private bandit would have earned.  Knows columns, owners and the library.

Each owner brings its own columns within the bound (`bandits.scaling`), the bandit learns on shares from the first rows,
and is judged on shares by the others; beside it, in the clear, stand its twin and what needs no context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bandits.columns import NamedLog
from bandits.estimators import Estimate, binary
from bandits.intervals import wilson
from bandits.linear import Choice, LinearBandit
from bandits.logs import LogError
from bandits.off_policy import Finding, Problem, candidates, doubts_of_log, judge, logged, twin
from bandits.scaling import crowded, scale
from mpc.ledger import Entry

from ..run import twin_of
from .arguments import ArgumentError
from .bandit import PrivateContextualBandit
from .offline_evaluation import estimate_offline
from .on_shares import TOLD

_AT_ONCE = 256  # rows between two words of progress
_NEAR = 4.0
_FINEST = 2.0**-12  # a variance of a row, of which 16 fraction bits are told
_COARSE = 0.02  # of an estimate and of its interval, which half a step of what is told may be
TWIN, PRIVATE = "the same in the clear", "the private bandit"


@dataclass(frozen=True)
class LogEvaluation:
    """findings: policies by estimators, in the log's own units.  doubts: of the whole log.  notes: what was done.

    difference: the largest between the private bandit and its twin, of values and errors, in the log's own units; None
    without shares.  left_out: estimators that it says nothing of, since they are not a number.
    """

    named: NamedLog
    problem: Problem
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...]
    ledger: tuple[Entry, ...] = ()
    difference: float | None = None
    left_out: tuple[str, ...] = ()


def evaluate_log(
    named: NamedLog,
    *,
    owners: Sequence[int] | None = None,
    policy: str = "epsilon-greedy",
    eps: float = 0.1,
    alpha: float = 1.0,
    ridge: float = 1.0,
    learn: float = 0.5,
    learning: bool = False,
    logged_eps: float | None = None,
    shares: bool = True,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> LogEvaluation:
    """Learn from the first part of a log, and judge the policy on the rest.

    named: made by `bandits.columns.log_of`.  owners: how many of the context's columns each owner has; of at least 2.
    learn: which part is learned from.  learning: whether the logger was learning itself.  logged_eps: where the log's
    propensities follow from how often an epsilon-greedy logger explored.  shares: without, only the twin is judged.
    """
    owners = _owners(owners, len(named.columns))
    if not 0.0 < learn < 1.0:
        raise ArgumentError(f"the part of a log that is learned from lies between 0 and 1, not {learn:g}")
    first = round(learn * len(named.log))
    unit = float(np.abs(named.log.rewards).max()) or 1.0
    if shares and named.log.propensities is None:
        raise LogError(
            "on shares rows are weighted by propensities, and this log has none: name their column, or say how often "
            "its logger explored, or judge in the clear alone"
        )
    contexts, widths = scale(named.log.contexts, named.features_of(owners), fitted=slice(0, max(1, first)))
    log = replace(named.log, contexts=contexts, rewards=named.log.rewards / unit)
    problem = Problem(log, len(named.arms), first, eps, learning)
    reward_range = (-1.0 if log.rewards.min() < 0 else 0.0, 1.0)
    bandit = PrivateContextualBandit(
        len(named.arms), contexts.shape[1], eps, parties=len(owners), policy=policy, alpha=alpha, ridge=ridge,
        owners=widths, reward_range=reward_range, steps=first, seed=seed,
    )  # fmt: skip
    plain = twin(problem, twin_of(bandit.settings))
    scores, predicted = _scores(plain, contexts, seed)
    found = [logged(problem)]
    for candidate in candidates(problem, scores, name=TWIN, arms=named.arms, seed=seed):
        found += judge(problem, candidate, predicted)
    private: dict[str, Estimate] = {}
    if shares:
        private = _on_shares(bandit, problem, logged_eps, progress)
        known = {each.estimator: each.doubts for each in found if each.policy == TWIN}
        rows = len(problem.judged)
        for name, each in private.items():
            wide = _no_shorter(each, rows) if binary(log.rewards) and name != "dr" else each
            doubts = (*known[name], *_doubts(wide, problem, unit))
            found.append(Finding(PRIVATE, name, wide, np.nan, doubts))
    alike = {} if policy == "thompson" else _differences(private, problem, scores, predicted)
    told = [unit * each for each in alike.values() if not np.isnan(each)]
    return LogEvaluation(
        replace(named, notes=named.notes + tuple(_crowded(named, first))), problem,
        tuple(_in_units(each, unit) for each in found), tuple(doubts_of_log(problem)), tuple(bandit.ledger),
        max(told) if told else None, tuple(name for name, each in alike.items() if np.isnan(each)),
    )  # fmt: skip


def _owners(given: Sequence[int] | None, columns: int) -> tuple[int, ...]:
    if given is None:
        return tuple(len(part) for part in np.array_split(np.arange(columns), 2))
    if len(given) < 2:
        raise ArgumentError("secret sharing needs at least 2 owners: say how many columns each has, 0 for none")
    return tuple(given)


def _scores(policy: LinearBandit, contexts: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the arms are ranked by, and their predicted rewards, (rows, arms) each."""
    arms = policy.weights.shape[1]
    choice = Choice.draw(np.random.default_rng(seed), 1, arms, 0.0, batch=len(contexts))
    return policy.scores(contexts[None], choice)[0], policy.predictions(contexts[None])[0]


def _on_shares(
    bandit: PrivateContextualBandit, problem: Problem, logged_eps: float | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Estimate]:  # fmt: skip
    log = problem.learned
    for start in range(0, len(log), _AT_ONCE):
        part = log.rows(start, start + _AT_ONCE)
        bandit.partial_fit(part.arms, part.rewards, part.contexts)
        if progress is not None:
            progress(start + len(part), len(problem.log))
    found = estimate_offline(bandit, problem.judged, logged_eps=logged_eps)
    if progress is not None:
        progress(len(problem.log), len(problem.log))
    return found


def _no_shorter(estimate: Estimate, rows: int) -> Estimate:
    """Of rewards 0 or 1, weighted rows tell no more than as many of equal weight: Wilson's interval is in it."""
    low, high = wilson(min(max(estimate.value, 0.0), 1.0), rows)
    return estimate._replace(low=min(estimate.low, float(low)), high=max(estimate.high, float(high)))


def _doubts(estimate: Estimate, problem: Problem, unit: float) -> tuple[str, ...]:
    """Of an interval that is made of a value and its error, for more was not told.  unit: what a reward of 1 was."""
    value, error, low, high = estimate
    found = ["on shares all rows weigh the same"] if problem.learning else []
    if np.isnan(value):
        return (*found, "weights do not average 1/4 to 4: on shares there is no ratio")
    bits, half = binary(problem.log.rewards), 2.0**-TOLD / 2.0
    if half > _COARSE * max(abs(value), high - low) and not (bits and value == 0.0):
        found.append(f"told in steps of {2.0 * half * unit:.3g}: too coarse for this estimate")
    if len(problem.judged) * error**2 < _FINEST:
        found.append("its variance is too small for the digits that are told: the interval is too short")
    elif bits and not _NEAR * error < value < 1.0 - _NEAR * error:
        found.append(f"within {_NEAR:g} errors of 0 or {unit:,.10g}: its interval may be too short")
    return tuple(found)


def _differences(
    private: dict[str, Estimate], problem: Problem, scores: np.ndarray, predicted: np.ndarray
) -> dict[str, float]:  # fmt: skip
    """Between what was found on shares and in the clear with the same weights: the larger of value and error."""
    own = candidates(problem, scores, name=TWIN, arms=[""] * problem.arms, seed=0)[-1]
    plain = {each.estimator: each.estimate for each in judge(replace(problem, learning=False), own, predicted)}
    return {name: float(np.abs(np.subtract(each[:2], plain[name][:2])).max()) for name, each in private.items()}


def _crowded(named: NamedLog, first: int) -> list[str]:
    """A word for the owner of a column that a few rows would scale away."""
    found, starts = [], np.cumsum([0, *named.widths])
    for name, start, width in zip(named.columns, starts, named.widths, strict=False):
        if width == 1 and (few := crowded(named.log.contexts[:first, start])):
            found.append(
                f"column {name!r}, to its owner: nearly all of its variation lies in {few} of the first {first:,} "
                "rows, and scaling by it leaves next to nothing of the others: look at those rows"
            )
    return found


def _in_units(finding: Finding, unit: float) -> Finding:
    estimate = Estimate(*(unit * float(each) for each in finding.estimate))
    return finding._replace(estimate=estimate)

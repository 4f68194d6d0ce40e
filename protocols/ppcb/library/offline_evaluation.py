"""What a private bandit would have earned, from a log of what somebody else pulled.  Knows the library; no protocol.

On shares: the bandit as it is, judged on rows whose contexts, arms and rewards have different owners; everybody learns
the estimates and their variances (`on_shares`).

Replay: the bandit chooses for each row; where the log has that arm, it counts and is learned from.  Whoever runs it
holds the log.  The parties learn which rows counted, since they learn from those alone: the ledger says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandits.estimators import Estimate, ips, replay_average, snips
from bandits.intervals import normal
from bandits.logs import RecordedLog, weights_of
from bandits.play import Record
from mpc.client import ClientProgram
from mpc.errors import ConfigError
from mpc.ledger import EVERYONE

from . import arguments
from .bandit import PrivateContextualBandit
from .on_shares import ESTIMATORS, Declared, logging_puller
from .rounds import payer_client
from .service import Logged, judged_together


@dataclass(frozen=True)
class Evaluation:
    """What a replay found.

    estimate, standard_error: of the average reward; the average over the rows that count where the log's arms were
    uniform, else weighted by 1 / propensity and normalised, as `estimator` says.  chosen: (rows,) arms of all rows.
    matches: how many rows count; records: these rows, as `bandits.logs.replay` yields them, without gaps.
    """

    estimator: str
    estimate: float
    standard_error: float
    matches: int
    chosen: np.ndarray = field(repr=False)
    records: tuple[Record, ...] = field(repr=False)
    replay: Estimate
    ips: Estimate | None
    snips: Estimate | None


def estimate_offline(
    bandit: PrivateContextualBandit,
    log: RecordedLog,
    *,
    floor: float | None = None,
    logged_eps: float | None = None,
) -> dict[str, Estimate]:
    """Judge a bandit on a log, on shares, by IPS, SNIPS and DR; it does not learn from it, nor does it pull an arm.

    The policy is judged with its exploration, and by its scores to the last bit.  Everybody learns three estimates and
    their variances, as the ledger says.  SNIPS is not a number where weights do not average about 1.

    floor: the least propensity, which is public; the power of two below the log's own if not said.
    logged_eps: of a log that an epsilon-greedy policy made, in whose place nobody knows how likely an arm was, but for
    whether it was the best one.  The log's propensities are then eps / A, or 1 - eps more.
    """
    _check(bandit, log)
    given, least = _declared(log, len(bandit.arms), floor, logged_eps)
    rows, _ = bandit._rows(log.contexts)
    logged = Logged(
        arguments.places_of(log.arms, bandit.arms), given,
        arguments.rewards_of(log.rewards, len(log), within=bandit.settings.reward_range),
    )  # fmt: skip
    return _judged(bandit, rows, logged, Declared(len(log), least, logged_eps))


def estimate_over(
    bandit: PrivateContextualBandit, contexts: Any, *, floor: float, logged_eps: float | None = None
) -> dict[str, Estimate]:
    """The same at one party's end of a network, made by `PrivateContextualBandit.over` or loaded there.

    contexts: this party's own features of the logged rows, in an order that all have.  floor, logged_eps: what all say
    of the log, its logger too; no propensity is below floor, which is logged_eps / A where that is given.  The puller's
    process runs `logger_client`, the payer's `log_payer_client`.
    """
    if bandit._service.hosting.whole:
        raise ConfigError("all parties are in this process: judge the log with estimate_offline")
    rows, _ = bandit._rows(contexts)
    return _judged(bandit, rows, None, Declared(len(rows), floor, logged_eps))


def logger_client(
    log: RecordedLog, arms: int, *, floor: float, logged_eps: float | None = None
) -> ClientProgram:  # fmt: skip
    """Who logged, beside parties that call `estimate_over`: shares arms and propensities.  arms: how many there are.

    floor, logged_eps: the same as the parties say, or all end with Desync; no propensity may be below floor.
    """
    Declared(len(log), floor, logged_eps).check(arms)
    given, least = _declared(log, arms, floor, logged_eps)
    places = arguments.places_of(log.arms, tuple(range(arms)))
    batches = [(places[part], given[part]) for part in judged_together(len(log), arms)]
    return logging_puller(batches, arms, Declared(len(log), least, logged_eps))


def log_payer_client(
    rewards: Any, arms: int, *, reward_range: tuple[float, float] = (0.0, 1.0)
) -> ClientProgram:  # fmt: skip
    """Who was paid, beside parties that call `estimate_over`: shares the rewards of all rows, in the parties' order."""
    paid = arguments.rewards_of(rewards, within=reward_range)
    return payer_client([paid[part] for part in judged_together(len(paid), arms)], reward_range=reward_range)


def _declared(
    log: RecordedLog, arms: int, floor: float | None, logged_eps: float | None
) -> tuple[np.ndarray, float]:  # fmt: skip
    """What is shared of each row's propensity, and the least that is declared."""
    if log.propensities is None:
        raise arguments.ArgumentError("this log has no propensities: log them, or replay it with evaluate_offline")
    given = log.propensities
    least = 2.0 ** np.floor(np.log2(given.min())) if floor is None else floor
    if logged_eps is not None:
        least = logged_eps / arms
        best = np.isclose(given, least + 1.0 - logged_eps, rtol=1e-6)
        if not (best | np.isclose(given, least, rtol=1e-6)).all():
            raise arguments.ArgumentError(
                f"who explores in {logged_eps:g} of all decisions among {arms} arms pulls one with probability "
                f"{least:.3g} or {least + 1.0 - logged_eps:.3g}, and this log has others: correct logged_eps, or "
                "leave it out"
            )
        given = best
    elif not 0.0 < least <= log.propensities.min():
        raise arguments.ArgumentError(f"a propensity is {given.min():.3g}, and {least:.3g} was declared as the least")
    return given, float(least)


def _judged(
    bandit: PrivateContextualBandit, rows: np.ndarray, logged: Logged | None, declared: Declared
) -> dict[str, Estimate]:
    with bandit.turn:
        found = bandit._service.estimate(rows, logged, declared)
    errors = np.sqrt(found.variances / (declared.rows - np.array([1, 0, 1])))  # means of rows, but for the ratio
    ends = normal(found.values, errors)
    return {name: Estimate(*map(float, each)) for name, *each in zip(ESTIMATORS, found.values, errors, *ends)}


def evaluate_offline(
    bandit: PrivateContextualBandit,
    log: RecordedLog,
    *,
    batch: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Replay a log with a bandit, which goes on learning.

    batch: rows that are decided on together, by what was learned before them; faster.  progress: told rows and matches.
    """
    _check(bandit, log)
    if arguments.whole_number(batch, "batch") < 1:
        raise arguments.ArgumentError(f"rows are replayed in batches of at least 1, not {batch}")
    chosen = np.empty(len(log), np.int64)
    matches = 0
    for start in range(0, len(log), batch):
        rows = log.rows(start, start + batch)
        told = bandit.predict(rows.contexts)
        arms, decisions = np.asarray(told.arm), np.asarray(told.decision_id)
        hit = arms == rows.arms
        with bandit.turn:
            bandit._service.disclose(
                EVERYONE, "whether the logged arm was chosen", len(rows), "only those rows are learned from"
            )
        if not hit.all():
            bandit.forget(decisions[~hit])
        if hit.any():
            bandit.learn(decision_id=decisions[hit], reward=rows.rewards[hit])
        chosen[start : start + len(rows)] = arms
        matches += int(hit.sum())
        if progress is not None:
            progress(start + len(rows), matches)
    return _evaluation(log, chosen, len(bandit.arms))


def _check(bandit: PrivateContextualBandit, log: RecordedLog) -> None:
    if not isinstance(bandit, PrivateContextualBandit) or not isinstance(log, RecordedLog):
        raise arguments.ArgumentError(
            f"a bandit and a RecordedLog are wanted, not {type(bandit).__name__} and {type(log).__name__}: "
            "`bandits.logs` reads and makes logs"
        )
    if not bandit._service.hosting.whole:
        raise ConfigError("a log is evaluated where all parties and the puller are: not on a party's end")
    arguments.places_of(np.unique(log.arms), bandit.arms)
    arguments.rewards_of(log.rewards, within=bandit.settings.reward_range)


def _evaluation(log: RecordedLog, chosen: np.ndarray, arms: int) -> Evaluation:
    counts = np.nonzero(chosen == log.arms)[0]
    gap = np.full(1, np.nan)
    records = tuple(
        Record(row, chosen[row : row + 1], log.rewards[row : row + 1], gap) for row in counts.tolist()
    )  # fmt: skip
    average = replay_average(log.rewards[counts])
    scored = normalised = None
    if log.propensities is not None:
        weights = weights_of(log, chosen)
        scored, normalised = ips(log.rewards, weights), snips(log.rewards, weights)
    name, best = ("replay", average) if normalised is None or log.uniform(arms) else ("snips", normalised)
    return Evaluation(name, best.value, best.error, len(counts), chosen, records, average, scored, normalised)

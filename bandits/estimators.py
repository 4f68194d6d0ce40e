"""What a policy would have earned, from rows that another policy logged: estimates and their 95 % intervals.

With p the chance of the logged arm, pi that of the policy for it, and w = pi / p:

    replay   mean of r over the rows where the policy chose the logged arm          needs arms logged uniformly
    IPS      mean of w r                                                            unbiased
    SNIPS    sum w r / sum w                                    Swaminathan and Joachims, NIPS 2015
    DR       mean of q + w (r - m)                              Dudik, Langford and Li, ICML 2011

m is a model's reward of the logged arm, and q its average over the policy's arms; the model has not seen these rows.
Intervals are Wilson's for a replay of rewards 0 or 1, else by the influence of each row: normal ones, and for IPS,
whose large rows lie on one side, Hall's for skewed rows.  An influence is 0 where no row has paid yet, and an interval
would be empty: where rewards are 0 or 1, z^2 rows are added, half of them paid, each of the weight sum w^2 / sum w that
an effective row has (Agresti and Coull, The American Statistician 1998).

If the log was made by a policy that was learning, rows differ in how much they tell, and their sum need not be nearly
normal.  `steady` weights them (h) by what was known before each.

Arrays have the rows on their last axis; axes before it are repetitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .intervals import Z, normal, skewed, wilson


class Estimate(NamedTuple):
    """A policy's average reward, its standard error and an interval; not a number where too few rows count."""

    value: Any
    error: Any
    low: Any
    high: Any


def replay_average(rewards: np.ndarray, counts: np.ndarray | None = None) -> Estimate:
    """Of the rows that count: all, or those where `counts` is true."""
    counts = np.ones(rewards.shape, bool) if counts is None else counts
    n = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(counts, rewards, 0.0).sum(axis=-1) / n
        spread = (np.where(counts, rewards - mean[..., None], 0.0) ** 2).sum(axis=-1) / np.where(n > 1, n - 1, np.nan)
        error = np.sqrt(spread / n)
        return _estimate(mean, error, wilson(mean, n) if binary(rewards) else normal(mean, error))


def ips(rewards: np.ndarray, weights: np.ndarray, h: np.ndarray | None = None) -> Estimate:
    """Over all rows: the mean of w r; a row that does not count has weight 0."""
    h = np.ones_like(weights) if h is None else h
    total = h.sum(axis=-1)
    value = (h * weights * rewards).sum(axis=-1) / total

    def influence(middle: np.ndarray) -> np.ndarray:
        return h * (weights * rewards - middle[..., None])

    return _by_influence(rewards, h * weights, total, value, influence, of_rows=True, lopsided=True)


def snips(rewards: np.ndarray, weights: np.ndarray, h: np.ndarray | None = None) -> Estimate:
    """sum w r / sum w; its error by the delta method."""
    weights = weights if h is None else h * weights
    total = weights.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (weights * rewards).sum(axis=-1) / total

    def influence(middle: np.ndarray) -> np.ndarray:
        return weights * (rewards - middle[..., None])

    return _by_influence(rewards, weights, total, value, influence)


def doubly_robust(
    rewards: np.ndarray, weights: np.ndarray, expected: np.ndarray, model: np.ndarray, h: np.ndarray | None = None
) -> Estimate:
    """expected: q of each row.  model: m of each row."""
    h = np.ones_like(weights) if h is None else h
    total, each = h.sum(axis=-1), expected + weights * (rewards - model)
    value = (h * each).sum(axis=-1) / total

    def influence(middle: np.ndarray) -> np.ndarray:
        return h * (each - middle[..., None])

    return _by_influence(rewards, h * weights, total, value, influence, of_rows=True, centred=True)


def effective_rows(weights: np.ndarray) -> Any:
    """(sum w)^2 / sum w^2 (Kish 1965): so many rows of equal weight tell as much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1))


def steady(weights: np.ndarray, before: np.ndarray, *, window: int) -> np.ndarray:
    """h of each row, for a log made by a policy that was learning: 1 / sqrt(phi), by the rows before it alone.

    phi is the mean of w^2 over the last `window` rows, what Zhan, Hadad, Hirshberg and Athey (KDD 2021) call StableVar,
    with the rows themselves in place of the logging policy's chances for all arms.  It is at least 1 in expectation.
    before: weights of the rows that came before these, at least `window`.
    """
    squares = np.concatenate([before[..., -window:], weights], axis=-1) ** 2
    sums = np.concatenate([np.zeros((*squares.shape[:-1], 1)), squares.cumsum(axis=-1)], axis=-1)
    count = min(window, before.shape[-1])
    phi = (sums[..., count:-1] - sums[..., : -1 - count]) / max(1, count)
    return 1.0 / np.sqrt(np.maximum(phi, 1.0))


def binary(rewards: np.ndarray) -> bool:
    """Whether all are 0 or 1."""
    return bool(((rewards == 0.0) | (rewards == 1.0)).all())


def _by_influence(
    rewards: np.ndarray, weights: np.ndarray, total: np.ndarray, value: np.ndarray, influence: Any, *,
    of_rows: bool = False, centred: bool = False, lopsided: bool = False,
) -> Estimate:  # fmt: skip
    """weights: of each reward.  total: what sums are divided by.  of_rows: a mean was taken, no ratio.

    lopsided: large rows lie on one side, as products of weights and rewards do; deviations from a ratio or from a model
    lie on both, and their skewness is mostly chance.

    centred: rows that are added have no place of their own in the middle, since a model predicts them.
    """
    count = weights.shape[-1]
    last = count / max(1, count - 1) if of_rows else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        own = influence(value)
        squares = (own**2).sum(axis=-1)
        known = count > 1 if of_rows else np.count_nonzero(weights, axis=-1) > 1
        error = np.where(known, np.sqrt(squares * last) / total, np.nan)
        if not binary(rewards):
            return _estimate(value, error, _ends(value, error, own, squares, lopsided))
        row = np.nan_to_num((weights**2).sum(axis=-1) / weights.sum(axis=-1))
        added, middle, half = total, value, np.full_like(value, 0.5)
        if not centred:
            added = total + Z**2 * row
            half = middle = (value * total + Z**2 / 2.0 * row) / added
            own = influence(middle)
        squares = (own**2).sum(axis=-1) + Z**2 / 2.0 * row**2 * ((1.0 - half) ** 2 + half**2)
        low, high = _ends(middle, np.sqrt(squares * last) / added, own, squares, lopsided)
        return _estimate(value, error, (np.minimum(value, low), np.maximum(value, high)), within=not of_rows)


def _ends(middle: Any, error: Any, own: np.ndarray, squares: Any, lopsided: bool) -> tuple[np.ndarray, np.ndarray]:
    return skewed(middle, error, (own**3).sum(axis=-1) / squares**1.5) if lopsided else normal(middle, error)


def _estimate(value: Any, error: Any, ends: tuple[Any, Any], *, within: bool = False) -> Estimate:
    """Numbers where there are no repetitions.  within: between 0 and 1."""
    low, high = (np.where(np.isnan(value), np.nan, end) for end in ends)
    if within:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    whole = (value, error, low, high)
    return Estimate(*(each if np.ndim(each) else float(each) for each in whole))

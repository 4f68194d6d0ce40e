"""How well scores tell members from others.  Knows scores; no attack.

    advantage = P(score > 0 | member) - P(score > 0 | other)        a coin decides on a score of 0: it counts 1/2

The interval is Newcombe's for a difference of two shares (1998, method 10: Wilson's score intervals combined).  Trials
of one cluster, such as those on one target, resemble each other: the numbers of trials are divided by the design
effect, the variance between clusters over that of as many independent trials (Rao and Scott 1992); never multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..intervals import wilson

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Advantage:
    """lower, upper: at 95 %.  tpr: true positive rate where 1 % of the others are taken for members."""

    value: float
    lower: float
    upper: float
    tpr: float
    members: int
    others: int


def measure(members: np.ndarray, others: np.ndarray) -> Advantage:
    """From (clusters, trials) scores of members and of others; a larger score says member."""
    members, others = (np.where(np.abs(scores) < _ROUNDING, 0.0, scores) for scores in (members, others))
    said = [(np.sign(scores) + 1.0) / 2.0 for scores in (members, others)]
    p, q = (float(votes.mean()) for votes in said)
    binomial = p * (1.0 - p) / members.size + q * (1.0 - q) / others.size
    effect, clusters = 1.0, len(members)
    if clusters > 1 and binomial > 0:
        differences = said[0].mean(axis=1) - said[1].mean(axis=1)
        effect = max(1.0, float(differences.var(ddof=1)) / clusters / binomial)
    elif clusters > 1:  # no trial differs, so nothing is known of the effect: a cluster counts once
        effect = members.size / clusters
    p_low, p_high = map(float, wilson(p, members.size / effect))
    q_low, q_high = map(float, wilson(q, others.size / effect))
    lower = p - q - float(np.hypot(p - p_low, q_high - q))
    upper = p - q + float(np.hypot(p_high - p, q - q_low))
    return Advantage(p - q, lower, upper, tpr_at(members, others, 0.01), members.size, others.size)


def tpr_at(members: np.ndarray, others: np.ndarray, fpr: float) -> float:
    """The height of the ROC curve at `fpr`; between two thresholds a coin chooses one of them."""
    thresholds = np.unique(np.concatenate([members.ravel(), others.ravel()]))[::-1]
    false, true = (
        np.append(0, scores.size - np.searchsorted(np.sort(scores.ravel()), thresholds)) / scores.size
        for scores in (others, members)
    )
    last = int(np.searchsorted(false, fpr, side="right")) - 1
    if last + 1 == len(false):
        return 1.0
    part = (fpr - false[last]) / (false[last + 1] - false[last])
    return float(true[last] + part * (true[last + 1] - true[last]))

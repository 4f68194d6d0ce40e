"""How likely the pulled arm was: bounds that everybody knows, and the exact number, which has to be revealed.

Epsilon-greedy pulls an arm with probability eps / A, and the k arms that tie for the best with (1 - eps) / k more.
Which arm is the best is the secret that exploration hides: whoever knows the exact number knows whether the pulled arm
was the best, and then eps hides nothing of that step any more.  The bounds hold for every policy that explores with
probability eps, and tell nobody anything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpc import ops
from mpc.curves import indicator
from mpc.errors import ConfigError
from mpc.rounds import Rounds
from mpc.session import Session
from mpc.share import Share

from ..settings import Policy, Settings


class Propensity(NamedTuple):
    """The probability lies in [low, high]; it is known where the two are equal."""

    low: float | np.ndarray
    high: float | np.ndarray


def bounds(eps: float, arms: int) -> Propensity:
    """Of the pulled one of `arms` eligible arms, whatever it is."""
    return Propensity(eps / arms, 1.0 - eps + eps / arms) if arms > 1 else Propensity(1.0, 1.0)


def exact(ties: np.ndarray, eps: float, arms: int) -> np.ndarray:
    """From what `ties_of_pulled` reveals."""
    return eps / arms + np.where(ties > 0, (1.0 - eps) / np.maximum(ties, 1), 0.0)


def last_bit(settings: Settings) -> Settings:
    """Settings by which scores that are not equal are never drawn among: then ties can be counted."""
    return replace(settings, tie_bits=0)


def check_revealable(settings: Settings) -> None:
    """ConfigError where no number of ties says how likely an arm was."""
    if settings.policy is not Policy.EPSILON_GREEDY:
        raise ConfigError(
            f"{settings.policy.value} ranks arms by noise and roundings: only bounds of a propensity are known; leave "
            "out reveal_propensity, or use policy 'epsilon-greedy'"
        )
    if not last_bit(settings).raw_scores_fit:
        raise ConfigError(
            "these ranges make a decision round its scores by coins, so that only bounds of a propensity are known: "
            "leave out reveal_propensity, or declare fewer steps, a smaller bound or a larger ridge"
        )


def ties_of_pulled(session: Session, scores: Share, pulled: Share, score_bits: int) -> Rounds[Share]:
    """[k] where k eligible arms, the pulled one among them, have the largest score; [0] where the pulled has not.

        c = sum_i pulled_i score_i
        l = sum_i [c < score_i],  b = sum_i [score_i < c],  k = [l = 0] (A - l - b)

    Needs: |score| < 2^(score_bits - 1) as a word; one-hot rows.
    Cost:  6 rounds; 2 A comparisons of score_bits + 1 bits and a look-up for each context.
    Opens: as einsum, is_negative, lookup, product.
    """
    arms = scores.shape[-1]
    scores = scores.integers()
    chosen = yield from ops.einsum(session, "rba,rba->rb", pulled, scores)
    over = chosen[..., None] - scores
    compared = ops.stack([over, -over], axis=-1)
    signs = (yield from ops.is_negative(session, compared, width=score_bits + 1)).sum(axis=-2)
    larger, smaller = signs[..., 0], signs[..., 1]
    greedy = yield from ops.lookup(session, larger, indicator(0, bits=max(1, (arms - 1).bit_length())))
    return (yield from ops.product(session, greedy, arms - larger - smaller))

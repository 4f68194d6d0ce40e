"""Which settings hold for a bandit that learns from so many contexts, and which would, where none do.

Knows ranges and what was asked for; no share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mpc.errors import RangeError

from ..settings import Policy, Settings
from .arguments import ArgumentError, check_arms, real_number, reward_range_of, whole_number, widths_of

_LEARN_BATCH = 32
_LARGEST_INVERSE = 128.0  # of 1 + B norm^2 / ridge, so that the inverse of a batch keeps its digits


def settings_of(
    n_arms: int, dim: int, eps: float, policy: str, alpha: float, ridge: float, bound: float, steps: int, parties: int,
    owners: Any, reward_range: Any,
) -> Settings:  # fmt: skip
    """What all parties agree on, with state bits and refreshes for so many contexts."""
    n_arms, dim, steps, parties = (
        whole_number(value, name)
        for name, value in (("n_arms", n_arms), ("dim", dim), ("steps", steps), ("parties", parties))
    )
    eps, alpha, ridge, bound = (
        real_number(value, name) for name, value in (("eps", eps), ("alpha", alpha), ("ridge", ridge), ("bound", bound))
    )
    if n_arms < 2:
        raise ArgumentError(f"a bandit chooses between at least 2 arms, not {n_arms}")
    check_arms(n_arms)
    if parties < 2:
        raise ArgumentError(f"secret sharing needs at least 2 parties, not {parties}")
    widths, rewards = widths_of(owners, parties, dim), reward_range_of(reward_range)
    if steps < 1:
        raise ArgumentError(f"`steps` says how many contexts are learned from, at least 1, not {steps}")
    names = [each.value for each in Policy]
    if policy not in names:
        raise ArgumentError(f"there is no policy {policy!r}: choose one of {', '.join(names)}")
    if not (0.0 < ridge < math.inf and 0.0 < bound < math.inf and 0.0 <= alpha < math.inf):
        raise ArgumentError(f"ridge {ridge:g} and bound {bound:g} are positive numbers, alpha {alpha:g} is one or 0")
    wanted = {"alpha": alpha, "ridge": ridge, "bound": bound}
    plain = Settings(
        n_arms, dim, eps, policy=Policy(policy), owners=parties, widths=widths, bound=1.0 / parties, steps=1,
        reward_range=rewards,
    )  # fmt: skip
    try:
        given = replace(plain, alpha=alpha, ridge=ridge, bound=bound)
    except RangeError as error:
        raise RangeError(
            f"{parties} parties, bound {bound:g}, ridge {ridge:g} and alpha {alpha:g} leave a word no room: make the "
            f"bandit with {_cure(plain, wanted, steps)}"
        ) from error
    return lasting(given, steps)


def lasting(given: Settings, steps: int, *, refreshes: bool = True) -> Settings:
    """These settings for learning from so many contexts, with as many state bits as that takes, or refreshes.

    RangeError with what is possible.  `given` must be possible for one.
    """
    given = replace(given, steps=1, refresh=None)
    made = _tried(given, steps, refreshes)
    if made is not None:
        return made
    most = most_steps(given, refreshes=refreshes)
    wanted = {"alpha": given.alpha, "ridge": given.ridge, "bound": given.bound}
    raise RangeError(
        f"with {given.owners} parties, bound {given.bound:g} and ridge {given.ridge:g}, rounding and ranges allow "
        f"{most:,} contexts to be learned from, not {steps:,}: use `steps` up to {most}, or make a bandit with "
        f"{_cure(given, wanted, steps)}"
    )


def most_steps(given: Settings, *, refreshes: bool = True) -> int:
    """From how many contexts may be learned with these settings, whatever state bits that takes."""
    enough, many = 1, 1 << 62
    while many - enough > 1:
        middle = (enough + many) // 2
        enough, many = (middle, many) if _tried(given, middle, refreshes) is not None else (enough, middle)
    return enough


def _tried(given: Settings, steps: int, refreshes: bool) -> Settings | None:
    for bits in (26, 24, 22):  # bits that take no round more make the regressions finer for nothing
        with suppress(RangeError):
            finer = replace(given, state_bits=max(bits, given.state_bits), steps=steps, refresh=None)
            if finer.raw_scores_fit and finer.lines.out_scale == finer.factor_scale and steps <= finer.lasts:
                return finer
    with suppress(RangeError):
        made = replace(given, steps=steps, refresh=None).for_run(given.owners, steps)
        return made if refreshes or not made.refresh else None
    return None


def _cure(plain: Settings, wanted: Mapping[str, float], steps: int) -> str:
    """Which other bound, ridge or alpha make these settings possible, each by itself: found by trying."""
    ways = (
        ("bound", 0.5, 40, "features scaled to bound {:g}"),
        ("bound", 2.0, 40, "features scaled to bound {:g}"),
        ("ridge", 2.0, 120, "ridge {:g}"),
        ("ridge", 0.5, 120, "ridge {:g}"),
        ("alpha", 0.5, 120, "alpha {:g}"),
    )
    offers = []
    for name, factor, times, text in ways:
        for k in range(1, times):
            with suppress(RangeError, OverflowError):
                other = {**wanted, name: wanted[name] * factor**k}
                settings = replace(plain, alpha=other["alpha"], ridge=other["ridge"], bound=other["bound"])
                if _tried(settings, steps, True) is not None:
                    offers.append(text.format(other[name]))
                    break
    return ", or ".join(offers) or "bound, ridge and alpha near 1"


@lru_cache(maxsize=64)
def learn_batch(given: Settings) -> int:
    """How many contexts are learned from together with these settings."""
    batch = min(_LEARN_BATCH, given.refresh or _LEARN_BATCH)
    while batch > 1 and (1.0 + batch * given.norm**2 / given.ridge > _LARGEST_INVERSE or not _fits(given, batch)):
        batch //= 2
    return batch


def _fits(given: Settings, batch: int) -> bool:
    try:
        replace(given, batch=batch)
    except RangeError:
        return False
    return True

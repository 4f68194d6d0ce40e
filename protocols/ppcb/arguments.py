"""What the library's calls may be given: contexts within the bound, known arms, rewards in [0, 1].  Knows no share."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mpc.errors import ConfigError, RangeError

from .settings import Policy, Settings

LEARN_BATCH = 32  # rows that are learned from together, where ranges allow


def settings_of(
    n_arms: int, dim: int, eps: float, policy: str, alpha: float, ridge: float, bound: float, steps: int, parties: int
) -> Settings:
    """What all parties agree on."""
    try:
        n_arms, dim, steps = operator.index(n_arms), operator.index(dim), operator.index(steps)
    except TypeError as error:
        raise ConfigError(f"n_arms, dim and steps are whole numbers, not {n_arms!r}, {dim!r} and {steps!r}") from error
    if n_arms < 2:
        raise ConfigError(f"a bandit chooses between at least 2 arms, not {n_arms}")
    names = [each.value for each in Policy]
    if policy not in names:
        raise ConfigError(f"there is no policy {policy!r}: choose one of {', '.join(names)}")
    given = Settings(
        n_arms, dim, eps, policy=Policy(policy), alpha=alpha, ridge=ridge, bound=bound, owners=parties, steps=steps
    )
    for bits in (26, 24, 22):  # more bits of the state last longer; not all settings leave room for them
        with suppress(RangeError):
            replace(given, state_bits=bits, batch=LEARN_BATCH)
            return replace(given, state_bits=bits)
    return given


def contexts_of(given: Any, blocks: Mapping[int, slice], *, bound: float) -> tuple[np.ndarray, bool]:
    """(contexts, width), and whether one context was given alone.

    blocks: which of the columns are whose.  bound: the largest norm of each block.
    """
    width = max(block.stop for block in blocks.values())
    rows = _numbers(given, "contexts")
    if rows.ndim not in (1, 2) or rows.shape[-1] != width:
        whose = "" if len(blocks) > 1 else f" of party {next(iter(blocks))}'s own features"
        raise RangeError(
            f"a context has shape ({width},){whose}, several have (contexts, {width}); these have {rows.shape}"
        )
    alone, rows = rows.ndim == 1, np.atleast_2d(rows)
    if not len(rows):
        raise RangeError("there is no context in this call: give at least one")
    if not np.isfinite(rows).all():
        raise RangeError("contexts hold NaN or infinite values: clean them first")
    for party, block in blocks.items():
        norm = float(np.linalg.norm(rows[:, block], axis=-1).max())
        if norm > bound * (1.0 + 2.0**-20):
            raise RangeError(
                f"the features of party {party} have a norm of {norm:.6g}, bound is {bound:g}: scale them, or make the "
                "bandit with a larger bound"
            )
    return rows, alone


def rewards_of(given: Any, count: int | None = None) -> np.ndarray:
    """(count,) rewards."""
    rewards = np.atleast_1d(_numbers(given, "rewards"))
    _check_count(rewards, count, "rewards")
    if not np.isfinite(rewards).all():
        raise RangeError("rewards hold NaN or infinite values: leave those decisions out, or forget them")
    if rewards.min(initial=0.0) < 0.0 or rewards.max(initial=0.0) > 1.0:
        raise RangeError("rewards lie in [0, 1]: shift and scale them")
    return rewards


def whole_numbers(given: Any, count: int | None, what: str) -> np.ndarray:
    """(count,) integers."""
    numbers = np.atleast_1d(np.asarray(given))
    if numbers.dtype.kind not in "iu":
        raise ConfigError(f"{what} are whole numbers, not {numbers.dtype}")
    _check_count(numbers, count, what)
    return numbers.astype(np.int64)


def flags_of(given: Any, count: int) -> np.ndarray:
    """(count,) truths, of one for all or one for each."""
    flags = np.asarray(given, bool)
    if flags.shape not in ((), (count,)):
        raise ConfigError(f"`overridden` of shape {flags.shape}: give one truth, or one for each of {count} decisions")
    return np.broadcast_to(flags, (count,))


def places_of(given: Any, arms: Sequence[int], count: int | None = None) -> np.ndarray:
    """Which of the present arms the given ones are, (count,)."""
    wanted = whole_numbers(given, count, "arms")
    place = {arm: at for at, arm in enumerate(arms)}
    if unknown := sorted({arm for arm in wanted.tolist() if arm not in place}):
        raise ConfigError(f"there is no arm {unknown[0]}: the arms are {_listed(arms)}")
    return np.array([place[arm] for arm in wanted.tolist()], np.int64)


def eligible_places(given: Any, arms: Sequence[int]) -> np.ndarray | None:
    """The rows of the arms that may be chosen, in ascending order; None for all."""
    if given is None:
        return None
    places = np.unique(places_of(given, arms)) if np.size(given) else np.zeros(0, np.int64)
    if not places.size:
        raise ConfigError("no arm is eligible: name at least one, or leave `eligible` out")
    return None if places.size == len(arms) else places


def _numbers(given: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RangeError(f"{what} are numbers in an array of one shape, not {type(given).__name__}") from error


def _check_count(array: np.ndarray, count: int | None, what: str) -> None:
    if array.ndim != 1 or array.size != (array.size if count is None else count):
        wanted = "one for each row" if count is None else f"{count}, one for each row"
        raise ConfigError(f"{what} of shape {array.shape} were given: {wanted} {'is' if count == 1 else 'are'} wanted")


def _listed(arms: Sequence[int]) -> str:
    first, last = min(arms), max(arms)
    whole = sorted(arms) == list(range(first, last + 1))
    return f"{first} to {last}" if whole else ", ".join(map(str, arms))

"""What the library's calls may be given: contexts within the bound, known arms, rewards in range.  Knows no share."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError, RangeError

_MOST_ARMS = 1000  # whose comparisons, all pairs, fit in memory


class ArgumentError(ConfigError, ValueError):
    """A call was given what it cannot use; nothing has happened.

    What it was given may be a secret, so a text has it as `own`: peers hear the rest.
    """


def most_unpaid_of(given: int) -> int:
    """How many decisions are kept for a reward."""
    if (most := whole_number(given, "most_unpaid")) < 1:
        raise ArgumentError(f"at least 1 decision is kept for a reward (most_unpaid), not {most}")
    return most


def check_arms(count: int) -> None:
    """ArgumentError for more than the library compares."""
    if count > _MOST_ARMS:
        raise ArgumentError(f"{count} arms are more than {_MOST_ARMS}, whose comparisons fit in memory: use fewer arms")


def contexts_of(given: Any, blocks: Mapping[int, slice], *, bound: float, bits: int) -> tuple[np.ndarray, bool]:
    """(contexts, width), and whether one context was given alone.

    blocks: which of the columns are whose.  bound: the largest norm of each block, and what rounding to so many `bits`
    changes of 1 more: what is taken here, its owner can share.
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
        with np.errstate(over="ignore"):  # of what is far beyond any bound
            norm = float(np.linalg.norm(rows[:, block], axis=-1).max())
        if norm > bound * (1.0 + 2.0**-bits):
            raise RangeError(
                f"the features of party {party} have a norm of {{}}, bound is {bound:g}: scale them, or make the "
                "bandit with a larger bound",
                own=f"{norm:.6g}",
            )
    return rows, alone


def rewards_of(given: Any, count: int | None = None, *, within: tuple[float, float] = (0.0, 1.0)) -> np.ndarray:
    """(count,) rewards, none beyond the ends of `within`."""
    rewards = np.atleast_1d(_numbers(given, "rewards"))
    _check_count(rewards, count, "rewards")
    if not np.isfinite(rewards).all():
        raise RangeError("rewards hold NaN or infinite values: leave those decisions out, or forget them")
    if not ((rewards >= within[0]) & (rewards <= within[1])).all():
        raise RangeError(
            f"rewards lie in [{within[0]:g}, {within[1]:g}]: shift and scale them, or make the bandit with another "
            "reward_range"
        )
    return rewards


def whole_number(given: Any, what: str) -> int:
    """An integer of Python's own."""
    try:
        return operator.index(given)
    except TypeError:
        raise ArgumentError(f"{what} is a whole number, not {{}}", own=repr(given)) from None


def whole_numbers(given: Any, count: int | None, what: str) -> np.ndarray:
    """(count,) integers."""
    if isinstance(given, tuple) and hasattr(given, "decision_id"):
        raise ArgumentError(f"{what} are whole numbers, not a whole prediction: give its `decision_id`")
    try:
        numbers = np.atleast_1d(np.asarray(given))
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} are whole numbers in one flat list: these are nested unevenly") from None
    if numbers.dtype.kind not in "iu" and not numbers.size:
        raise ArgumentError(f"there are no {what} in this call: give at least one")
    if numbers.dtype.kind not in "iu":
        kind = type(given).__name__ if numbers.dtype.kind == "O" else numbers.dtype.name
        raise ArgumentError(f"{what} are whole numbers below 2^63, one or a flat list of them, not {kind}")
    _check_count(numbers, count, what)
    return numbers.astype(np.int64)


def flag_of(given: Any, what: str) -> bool:
    """True or False, and nothing that merely counts as one."""
    if not isinstance(given, (bool, np.bool_)):
        raise ArgumentError(f"{what} is True or False, not {{}}", own=repr(given))
    return bool(given)


def flags_of(given: Any, count: int) -> np.ndarray:
    """(count,) truths, of one for all or one for each."""
    try:
        flags = np.asarray(given)
    except (TypeError, ValueError):
        flags = np.empty(0)
    if flags.dtype.kind != "b" or flags.shape not in ((), (count,)):
        raise ArgumentError(f"`overridden` is True or False, or one of them for each of {count} decisions")
    return np.broadcast_to(flags, (count,))


def places_of(given: Any, arms: Sequence[int]) -> np.ndarray:
    """Which of the present arms the given ones are, one by one."""
    wanted = whole_numbers(given, None, "arms")
    place = {arm: at for at, arm in enumerate(arms)}
    if unknown := sorted({arm for arm in wanted.tolist() if arm not in place}):
        raise ArgumentError(f"there is no arm {{}}: the arms are {_listed(arms)}", own=str(unknown[0]))
    return np.array([place[arm] for arm in wanted.tolist()], np.int64)


def eligible_places(given: Any, arms: Sequence[int]) -> np.ndarray | None:
    """The rows of the arms that may be chosen, in ascending order; None for all."""
    if given is None:
        return None
    if isinstance(given, (Set, Iterator)):
        given = list(given)
    if isinstance(given, (Sequence, np.ndarray)) and len(given) == 0:
        raise ArgumentError("no arm is eligible: name at least one, or leave `eligible` out")
    places = np.unique(places_of(given, arms))
    return None if places.size == len(arms) else places


def folder_of(given: Any) -> Path:
    """A folder's path."""
    if not isinstance(given, (str, os.PathLike)):
        raise ArgumentError("a folder is named by text or a path, not {}", own=repr(given))
    return Path(given)


def reward_range_of(given: Any) -> tuple[float, float]:
    """The ends of it."""
    try:
        low, high = (real_number(end, "an end of reward_range") for end in given)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError("reward_range is a pair of numbers, not {}", own=repr(given)) from None
    return low, high


def parties_of(given: Any, owners: Any) -> Any:
    """How many parties: as many as are asked for, or as there are owners; 3 where nobody says."""
    if owners is None or not hasattr(owners, "__len__"):
        return 3 if given is None else given
    if given is not None and given != len(owners):
        raise ArgumentError(
            f"parties is {{}} and owners has a number for {len(owners)}: leave parties out", own=repr(given)
        )
    return len(owners)


def same_rows(**series: Any) -> None:
    """ArgumentError where two that came with labels for their rows have the same ones in another order."""
    labelled = [(name, index) for name, one in series.items() if (index := _labels(one)) is not None]
    for (name, index), (other, own) in pairwise(labelled):
        if list(index) != list(own) and set(index) == set(own):
            raise ArgumentError(f"{name} and {other} have the same rows in another order: sort them alike first")


def _labels(given: Any) -> Any:
    """The labels of a frame's or a column's rows."""
    index = getattr(given, "index", None)
    return index if hasattr(given, "to_numpy") and hasattr(index, "__len__") else None


def widths_of(given: Any, parties: int, dim: int) -> tuple[int, ...]:
    """How many features each party owns; () where that is not said, and then each owns at least one."""
    if given is not None:
        return tuple(whole_numbers(given, parties, "owners").tolist())
    if parties > dim:
        raise ArgumentError(
            f"{parties} parties of {dim} features: each owns at least one, so use at most {dim} parties"
            if dim > 1
            else f"contexts of {dim} features have no {parties} owners: a bandit has at least 2 features"
        )
    return ()


def real_number(given: Any, what: str) -> float:
    if not isinstance(given, Real) or isinstance(given, bool):
        raise ArgumentError(f"{what} is a number, not {{}}", own=repr(given))
    return float(given)


def _numbers(given: Any, what: str) -> np.ndarray:
    kind = type(given).__name__
    try:
        array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last from tensors that belong to a gradient
        if hasattr(given, "to_dense") and hasattr(given, "detach"):
            kind = f"a {kind} of {given.dtype}, {given.layout}: give x.to_dense().float()"
    raise RangeError(f"{what} are real numbers in an array of one shape, not {kind}")


def _check_count(array: np.ndarray, count: int | None, what: str) -> None:
    if array.ndim != 1 or array.size != (array.size if count is None else count):
        wanted = "one for each row" if count is None else f"{count}, one for each row"
        raise ArgumentError(
            f"{what} of shape {array.shape} were given: {wanted} {'is' if count == 1 else 'are'} wanted"
        )


def _listed(arms: Sequence[int]) -> str:
    first, last = min(arms), max(arms)
    whole = sorted(arms) == list(range(first, last + 1))
    return f"{first} to {last}" if whole else ", ".join(map(str, arms))

"""From a table's columns to a log: which are contexts, which arm was pulled, what it paid.  Knows names; no estimate.

Arms may have any names; text in a context becomes a one-hot, a feature for each different word.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .csv_table import Table, TableError
from .logs import LogError, RecordedLog

_MOST_WORDS = 50  # of one column of text
_MOST_ARMS = 1000


@dataclass(frozen=True)
class NamedLog:
    """log: arms by number.  arms: their names.  columns: of the contexts; widths: how many features each became.

    notes: what was done to the table, in words.
    """

    log: RecordedLog
    arms: tuple[str, ...]
    columns: tuple[str, ...]
    widths: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def features_of(self, owners: Sequence[int]) -> tuple[int, ...]:
        """How many features each owner of so many columns has."""
        if sum(owners) != len(self.columns) or min(owners) < 0:
            raise LogError(
                f"owners of {', '.join(map(str, owners))} columns do not add up to the {len(self.columns)} of a "
                "context: say how many columns each owner has"
            )
        ends = np.cumsum([0, *owners])
        return tuple(int(sum(self.widths[start:end])) for start, end in itertools.pairwise(ends))


def log_of(
    table: Table, *, context: Sequence[str], action: str, reward: str, propensity: str | None = None,
    greedy: tuple[str, float] | None = None,
) -> NamedLog:  # fmt: skip
    """A log from these columns.

    greedy: in place of propensities, a column that says whether the arm was the best one by the logger, and how often
    the logger explored: then a propensity is eps / A, and 1 - eps more for the best arm.
    """
    if not context:
        raise LogError("a context has at least one column: name them")
    if twice := [name for name in context if list(context).count(name) > 1 or name in (action, reward, propensity)]:
        raise LogError(f"column {twice[0]!r} is named twice: once is wanted, for one purpose")
    notes = list(table.notes)
    codes, names = _arms(table, action)
    blocks = [_features(table, name, notes) for name in context]
    chances = None if propensity is None else table.numbers(propensity)
    if greedy is not None:
        if propensity is not None:
            raise LogError("either a column of propensities, or one that says which arms were the best, not both")
        chances = _by_greedy(table.numbers(greedy[0]), greedy[1], len(names))
    if unused := [name for name in table.names if name not in (*context, action, reward, propensity)]:
        notes.append(f"not looked at: {', '.join(unused[:5])}{f' and {len(unused) - 5} more' * (len(unused) > 5)}")
    log = RecordedLog(np.concatenate(blocks, axis=1), codes, table.numbers(reward), chances)
    return NamedLog(log, names, tuple(context), tuple(block.shape[1] for block in blocks), tuple(notes))


def _arms(table: Table, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    values = table.column(name)
    try:
        found = table.numbers(name)
        named = (found == np.floor(found)).all()
    except TableError:
        named = False
    if named:
        kinds, codes = np.unique(found, return_inverse=True)
        names = tuple(str(int(kind)) for kind in kinds)
    else:
        words = np.array(["" if value is None else str(value).strip() for value in values])
        if not words.astype(bool).all():
            raise LogError(
                f"{name} of row {int(np.argmin(words.astype(bool)))} is missing: fill it in, or drop the row"
            )
        kinds, codes = np.unique(words, return_inverse=True)
        names = tuple(kinds.tolist())
    if len(names) < 2:
        raise LogError(f"column {name!r} has {names[0]!r} in every row: a log of at least 2 arms is wanted")
    if len(names) > _MOST_ARMS:
        raise LogError(f"column {name!r} has {len(names):,} different arms, {_MOST_ARMS:,} at most: is it the action?")
    return codes.astype(np.int64), names


def _features(table: Table, name: str, notes: list[str]) -> np.ndarray:
    """(rows, 1) numbers, or (rows, words) one-hots."""
    try:
        return table.numbers(name)[:, None]
    except TableError:
        if any(map(_numeric, table.column(name))):  # a number that is spoilt, and no word
            raise
    words, codes = np.unique([str(value).strip() for value in table.column(name)], return_inverse=True)
    if len(words) > _MOST_WORDS:
        raise LogError(
            f"column {name!r} has {len(words):,} different texts, {_MOST_WORDS} at most: leave it out, or group them"
        )
    notes.append(f"column {name!r} is text: a feature for each of its {len(words)} words")
    return np.eye(len(words))[codes]


def _numeric(value: Any) -> bool:
    """Whether it is meant as a number, with whatever commas and points."""
    try:
        float(str(value).replace(",", "").replace(".", ""))
    except ValueError:
        return False
    return True


def _by_greedy(bits: np.ndarray, eps: float, arms: int) -> np.ndarray:
    if not np.isin(bits, (0.0, 1.0)).all():
        raise LogError("the column that says whether an arm was the best holds 0 and 1, or true and false")
    if not 0.0 < eps <= 1.0:
        raise LogError(f"a logger that explored did so with a probability above 0 and at most 1, not {eps:g}")
    return eps / arms + (1.0 - eps) * bits

"""From a table's columns to a log: which are contexts, which arm was pulled, what it paid.  Knows names; no estimate.

Arms may have any names; text in a context becomes a one-hot, a feature for each different word.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from .csv_table import Table, TableError, is_missing
from .logs import LARGEST, LEAST, LogError, RecordedLog

_MOST_WORDS = 50  # of one column of text
MOST_ARMS = 1000
_MOST_LOGGED = 1_000_000  # of a logger, not all of which need be in its log


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
    greedy: tuple[str, float] | None = None, arms: int | None = None,
) -> NamedLog:  # fmt: skip
    """A log from these columns.

    greedy: in place of propensities, a column that says whether the arm was the best one by the logger, and how often
    the logger explored: then a propensity is eps / A, and 1 - eps more for the best arm.  arms: A, how many the logger
    had; those in the table if not said.
    """
    if not context:
        raise LogError("a context has at least one column: name them")
    if twice := [name for name in context if list(context).count(name) > 1 or name in (action, reward, propensity)]:
        raise LogError(f"column {twice[0]!r} is named twice: once is wanted, for one purpose")
    notes = list(table.notes)
    codes, names = _arms(table, action, notes)
    blocks = [_features(table, name, notes) for name in context]
    chances = None if propensity is None else _propensities(table, propensity)
    if greedy is not None:
        if propensity is not None:
            raise LogError("either a column of propensities, or one that says which arms were the best, not both")
        chances = _by_greedy(table, greedy[0], greedy[1], _logged(len(names), arms, notes))
    elif arms is not None:
        raise LogError("how many arms the logger had is asked for where propensities follow from how often it explored")
    used = (*context, action, reward, propensity, greedy[0] if greedy else None)
    if unused := [name for name in table.names if name not in used]:
        notes.append(f"not looked at: {', '.join(unused[:5])}{f' and {len(unused) - 5} more' * (len(unused) > 5)}")
    log = RecordedLog(np.concatenate(blocks, axis=1), codes, _numbers(table, reward), chances)
    return NamedLog(log, names, tuple(context), tuple(block.shape[1] for block in blocks), tuple(notes))


def arms_in(table: Table, name: str) -> int:
    """How many there are in this column, whose missing values are none."""
    values = [value for value in table.column(name) if not is_missing(value)]
    return len(set(_named(Table({name: values}), name)))


def _logged(seen: int, arms: int | None, notes: list[str]) -> int:
    """How many arms the logger had; notes are added to."""
    if arms is not None and not seen <= arms <= _MOST_LOGGED:
        raise LogError(f"a logger of {arms:,} arms: it had the {seen:,} of the log at least, {_MOST_LOGGED:,} at most")
    arms = arms or seen
    notes.append(f"propensities are of a logger with {arms:,} arms: if it had more than the log, say so with --arms")
    return arms


def _numbers(table: Table, name: str) -> np.ndarray:
    """A column of numbers that can be squared and added up."""
    found = table.numbers(name)
    fits = np.abs(found) <= LARGEST  # NaN does not
    if not fits.all():
        row = int(np.argmin(fits))
        if np.isnan(found[row]):
            raise LogError(f"{name} of {table.place(row)} is missing: fill it in, or drop the row")
        raise LogError(f"{name} of {table.place(row)} is {found[row]:g}, {LARGEST:g} at most: correct it, or rescale")
    return found


def _arms(table: Table, name: str, notes: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Arms by number, in the order of their names, or of their numbers where all have one."""
    words = _named(table, name)
    names = sorted(set(words))
    exact = {word: number for word in names if (number := _exactly(word)) is not None}
    if len(exact) == len(names):
        names.sort(key=exact.__getitem__)
        if not all(number.is_finite() for number in exact.values()):
            row = next(row for row, word in enumerate(words) if not exact[word].is_finite())
            raise LogError(f"{name} of {table.place(row)} is {words[row]!r}, and others are numbers: correct it")
    if twins := _alike(exact):
        notes.append(f"column {name!r} has {twins[0]!r} and {twins[1]!r}: two arms, since they are written apart")
    places = {word: at for at, word in enumerate(names)}
    codes = np.array([places[word] for word in words])
    if len(names) < 2:
        raise LogError(f"column {name!r} has {names[0]!r} in every row: a log of at least 2 arms is wanted")
    if len(names) > MOST_ARMS:
        raise LogError(f"column {name!r} has {len(names):,} different arms, {MOST_ARMS:,} at most: is it the action?")
    return codes.astype(np.int64), tuple(names)


def _named(table: Table, name: str) -> list[str]:
    """What each row calls its arm: text as it stands there, a whole number without a point."""
    values = table.column(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufO":
        values = values.tolist()
    for row, value in enumerate(values):
        if is_missing(value):
            raise LogError(f"{name} of {table.place(row)} is missing: fill it in, or drop the row")
    whole = (isinstance(value, float) and value.is_integer() for value in values)
    return [str(int(value)) if rounded else str(value).strip() for value, rounded in zip(values, whole, strict=True)]


def _exactly(word: str) -> Decimal | None:
    """The number that is written there, if it is one."""
    try:
        number = Decimal(word)
    except InvalidOperation:
        return None
    return None if number.is_nan() else number


def _alike(exact: Mapping[str, Decimal]) -> tuple[str, str] | None:
    """Two words for the same number, if there are any."""
    seen: dict[Decimal, str] = {}
    return next(((seen[number], word) for word, number in exact.items() if seen.setdefault(number, word) != word), None)


def _features(table: Table, name: str, notes: list[str]) -> np.ndarray:
    """(rows, 1) numbers, or (rows, words) one-hots."""
    try:
        return _numbers(table, name)[:, None]
    except TableError:
        values = table.column(name)
        if any(map(_numeric, values)):  # a number that is spoilt, and no word
            raise
    for row, value in enumerate(values):
        if is_missing(value):
            raise LogError(f"{name} of {table.place(row)} is missing: fill it in, or drop the row")
    words, codes = np.unique([str(value).strip() for value in values], return_inverse=True)
    if len(words) > _MOST_WORDS:
        raise LogError(
            f"column {name!r} has {len(words):,} different texts, {_MOST_WORDS} at most: leave it out, or group them"
        )
    notes.append(f"column {name!r} is text: a feature for each of its {len(words)} words")
    return np.eye(len(words))[codes]


def _numeric(value: Any) -> bool:
    """Whether it is meant as a number, with whatever commas and points."""
    if is_missing(value):
        return False
    try:
        float(str(value).replace(",", "").replace(".", ""))
    except ValueError:
        return False
    return True


def _propensities(table: Table, name: str) -> np.ndarray:
    found = _numbers(table, name)
    fits = (found >= LEAST) & (found <= 1.0)
    if not fits.all():
        row = int(np.argmin(fits))
        raise LogError(
            f"{name} of {table.place(row)} is {found[row]:g}: propensities are the chances with which the logged arms "
            f"were pulled, above 0 and at most 1, none below {LEAST:.2g}"
        )
    return found


def _by_greedy(table: Table, name: str, eps: float, arms: int) -> np.ndarray:
    bits = _numbers(table, name)
    if not np.isin(bits, (0.0, 1.0)).all():
        row = int(np.argmin(np.isin(bits, (0.0, 1.0))))
        raise LogError(
            f"{name} of {table.place(row)} is {bits[row]:g}: the column that says whether an arm was the best holds "
            "0 and 1, or true and false"
        )
    if not arms * LEAST <= eps <= 1.0:
        raise LogError(f"a logger that explored did so with a probability above 0 and at most 1, not {eps:g}")
    return eps / arms + (1.0 - eps) * bits

"""Recorded logs: which arm somebody pulled on which context, and what it paid.  Knows files and replay; numpy only.

A policy is evaluated on a log by replay (Li, Chu, Langford and Wang, WSDM 2011): where it chooses the arm that was
logged, the row counts and it learns from the reward; other rows are skipped.  If the log's arms were drawn uniformly,
the rows that count are a fair run of the policy, even of one that learns.  If they were drawn with other chances, rows
are weighted by 1 / propensity, which is exact for a policy that does not learn from them.
"""

from __future__ import annotations

import csv
import itertools
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .csv_table import TableError, read_table
from .linear import Choice, LinearBandit
from .play import Record, gaps

_ARRAYS = ("contexts", "arms", "rewards", "propensities")
LARGEST = 1e100  # of a number, so that squares of many can be added up
LEAST = 2.0**-60  # propensity, so that a weight has an inverse
_OPEN_BANDIT = {"policy": ("random", "bts"), "campaign": ("all", "men", "women")}


class LogError(TableError):
    """A log is missing or is not what it should be."""


@dataclass(frozen=True)
class RecordedLog:
    """contexts: (rows, dim).  arms: (rows,).  rewards: (rows,).  propensities: (rows,), how likely each arm was."""

    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray | None = None

    def __post_init__(self) -> None:
        rows = len(self.contexts)
        if self.contexts.ndim != 2 or not rows:
            raise LogError(f"contexts are (rows, features) with at least one row, not {self.contexts.shape}")
        columns = {"arms": self.arms, "rewards": self.rewards, "propensities": self.propensities}
        for name, column in columns.items():
            if column is not None and column.shape != (rows,):
                raise LogError(f"{name} have shape {column.shape}: one for each of {rows} contexts is wanted")
        if self.arms.dtype.kind not in "iu" or self.arms.min() < 0:
            raise LogError("arms are whole numbers from 0")
        for name, values in {"contexts": self.contexts, **columns}.items():
            fits = np.ones(rows, bool) if values is None else (np.abs(values) <= LARGEST).reshape(rows, -1).all(axis=1)
            if not fits.all():
                raise LogError(
                    f"{name} of row {int(np.argmin(fits))} hold NaN, or values beyond {LARGEST:g} (rows count from 0): "
                    "clean them or drop the row"
                )
        if self.propensities is not None:
            fits = (self.propensities >= LEAST) & (self.propensities <= 1)
            if not fits.all():
                row = int(np.argmin(fits))
                raise LogError(
                    f"row {row} (counted from 0) has {self.propensities[row]:g}: propensities are the chances with "
                    f"which the logged arms were pulled, above 0 and at most 1, none below {LEAST:.2g}"
                )

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def dim(self) -> int:
        """Features of a context."""
        return self.contexts.shape[1]

    def uniform(self, arms: int) -> bool:
        """Whether all arms were equally likely, of so many or more, as far as the log says.

        Propensities that are all alike are 1 / A then; a logger that took an arm by its context alone has ones.
        """
        if self.propensities is None:
            return True
        p = self.propensities
        return bool(np.allclose(p, p[0], rtol=1e-6)) and round(1.0 / float(p[0])) >= arms

    def rows(self, start: int, stop: int) -> RecordedLog:
        """A part of it."""
        part = slice(start, stop)
        given = None if self.propensities is None else self.propensities[part]
        return RecordedLog(self.contexts[part], self.arms[part], self.rewards[part], given)


def weights_of(log: RecordedLog, chosen: np.ndarray) -> np.ndarray:
    """[chosen arm = logged arm] / propensity, row by row."""
    if log.propensities is None:
        raise LogError("this log has no propensities: use the replay average, or log them")
    return (chosen == log.arms) / log.propensities


def replay(policy: LinearBandit, log: RecordedLog, choices: Iterator[Choice], *, batch: int = 1) -> Iterator[Record]:
    """The rows where one replica of a plaintext policy chooses the logged arm, which it then learns from.

    Records are those of `bandits.play`; their step is the row.  choices: one for each batch of rows, the last of which
    may be smaller.
    """
    for first in range(0, len(log), batch):
        rows = np.arange(first, min(first + batch, len(log)))
        choice = next(choices, None)
        if choice is None:
            raise LogError(f"the choices end at row {first} of {len(log)}: give one for each batch of {batch}")
        x, choice = log.contexts[None, rows], _first(choice, len(rows))
        scores = policy.scores(x, choice)
        arms = choice.pick(scores)
        hit = arms[0] == log.arms[rows]
        if hit.any():
            policy.update(x[:, hit], arms[:, hit], log.rewards[None, rows[hit]])
        for at in np.nonzero(hit)[0]:
            yield Record(int(rows[at]), arms[:, at], log.rewards[rows[at : at + 1]], gaps(choice.ranks(scores))[:, at])


def read_log(path: str | Path) -> RecordedLog:
    """A log from CSV with columns x0, x1, ..., arm, reward and perhaps propensity; or from NPZ.

    An NPZ holds contexts, arms, rewards and perhaps propensities.
    """
    path = Path(path)
    if not path.is_file():
        raise LogError(f"there is no file {path}: give a log as .csv or .npz")
    try:
        if path.suffix == ".npz":
            return _from_npz(path)
        if path.suffix == ".csv":
            return _from_csv(path)
        raise LogError("its name ends in neither .csv nor .npz")
    except TableError as error:
        raise LogError(f"{path}: {error}") from error


def write_log(log: RecordedLog, path: str | Path) -> None:
    """As `read_log` reads it."""
    path = Path(path)
    columns = {name: getattr(log, name) for name in _ARRAYS if getattr(log, name) is not None}
    if path.suffix == ".npz":
        np.savez_compressed(path, **columns)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            names = [f"x{i}" for i in range(log.dim)] + ["arm", "reward", "propensity"][: len(columns) - 1]
            writer.writerow(names)
            lists = [column.tolist() for column in columns.values()]
            writer.writerows([*x, *rest] for x, *rest in zip(*lists, strict=True))
    else:
        raise LogError(f"{path}: its name ends in neither .csv nor .npz")


def open_bandit(
    folder: str | Path, *, policy: str = "random", campaign: str = "all", position: int | None = None
) -> RecordedLog:
    """The Open Bandit data (Saito, Aihara, Matsutani and Narita 2020): clicks on fashion items.

    folder: holds {random,bts}/{all,men,women}.csv.gz or the same unpacked.  policy: which one logged, uniform or
    Bernoulli Thompson sampling.  position: 1 to 3, where the item was shown; all if left out.  An arm is an item; a
    context is the one-hot of each of the four user features, in the order of their sorted codes, scaled to norm 1.
    """
    for name, value in (("policy", policy), ("campaign", campaign)):
        if value not in _OPEN_BANDIT[name]:
            raise LogError(f"there is no {name} {value!r}: choose one of {', '.join(_OPEN_BANDIT[name])}")
    home = Path(folder) / policy
    found = [path for path in (home / f"{campaign}.csv.gz", home / f"{campaign}.csv") if path.is_file()]
    if not found:
        raise LogError(f"there is no {campaign}.csv.gz in {home}: give the folder that holds random and bts")
    try:
        return _from_open_bandit(found[0], position)
    except TableError as error:
        raise LogError(str(error)) from error


def _from_open_bandit(path: Path, position: int | None) -> RecordedLog:
    table = read_table(path)
    names, columns = table.names, table.columns
    features = sorted(name for name in names if name.startswith("user_feature_"))
    wanted = ("item_id", "position", "click", "propensity_score")
    if missing := [name for name in wanted if name not in names] or ([] if features else ["user_feature_0"]):
        raise LogError(f"{path} has no column {missing[0]!r}: is it a file of the Open Bandit data?")
    contexts = [np.unique(columns[name], return_inverse=True) for name in features]
    one_hots = [np.eye(len(codes))[place] for codes, place in contexts]
    arms, shown, clicks, chances = (table.numbers(name) for name in wanted)
    keep = np.ones(len(arms), bool) if position is None else shown == position
    if not keep.any():
        raise LogError(f"no row of {path} has position {position}: positions are 1 to 3")
    values = np.concatenate(one_hots, axis=1)[keep] / np.sqrt(len(features))
    return RecordedLog(values, arms[keep].astype(np.int64), clicks[keep], chances[keep])


def _first(choice: Choice, count: int) -> Choice:
    return replace(
        choice, explore=choice.explore[:, :count], order=choice.order[:, :count], ties=choice.ties[:, :count],
        noise=choice.noise[:, :count],
    )  # fmt: skip


def _from_npz(path: Path) -> RecordedLog:
    try:
        with np.load(path, allow_pickle=False) as given:
            arrays = {name: given[name] for name in _ARRAYS if name in given.files}
    except (ValueError, OSError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise LogError("it is damaged or no archive of arrays: write it with numpy.savez") from error
    if missing := [name for name in _ARRAYS[:3] if name not in arrays]:
        raise LogError(f"it has no array {missing[0]!r}: contexts, arms and rewards are wanted")
    if wrong := [name for name, array in arrays.items() if array.dtype.kind not in "iufb"]:
        raise LogError(f"{wrong[0]} are no numbers")
    return RecordedLog(
        arrays["contexts"].astype(np.float64), _whole(arrays["arms"]), arrays["rewards"].astype(np.float64),
        arrays["propensities"].astype(np.float64) if "propensities" in arrays else None,
    )  # fmt: skip


def _from_csv(path: Path) -> RecordedLog:
    table = read_table(path)
    names = table.names
    features = list(itertools.takewhile(names.__contains__, (f"x{i}" for i in itertools.count())))
    if missing := [name for name in (["x0"] if not features else []) + ["arm", "reward"] if name not in names]:
        raise LogError(f"it has no column {missing[0]!r}: x0, x1, ..., arm, reward and perhaps propensity are wanted")
    if extra := [name for name in names if name not in (*features, "arm", "reward", "propensity")]:
        raise LogError(f"column {extra[0]!r} is none of x0, x1, ... without a gap, arm, reward and propensity")
    values = {name: table.numbers(name) for name in names}
    contexts = np.stack([values[name] for name in features], axis=1)
    return RecordedLog(contexts, _whole(values["arm"]), values["reward"], values.get("propensity"))


def _whole(values: np.ndarray) -> np.ndarray:
    """Arms as integers; RecordedLog refuses what is no whole number."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    whole = np.isfinite(values) & (values == np.floor(values))
    if not whole.all():
        raise LogError(f"the arm of row {int(np.argmin(whole))} is no whole number (rows count from 0)")
    return values.astype(np.int64)

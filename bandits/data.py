"""Data sets as environments.  The door to scikit-learn, loaded where it is used: it takes a second.  Knows files
and checksums.

Data lies where the user says (`data`), is a CSV of the user's, or is scikit-learn's embedded digits.

A CSV has a line of names.  A column `label` holds the class of each row, or columns reward0, reward1, ... what each arm
pays for it, real numbers; all others are features, in any units: each is brought to mean 0 and deviation 1.  What
pays is no feature: an arm's column that is not in the count is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .csv_table import Table, TableError, read_table
from .environments import (
    DATA_SETS,
    Environment,
    Task,
    gaussian_kernel,
    right_or_wrong,
    synthetic_linear,
    unit_rows,
)

_MNIST = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_IMAGES_HEADER, _LABELS_HEADER = 16, 8
CSV = (".csv", ".csv.gz")  # what is a file of the user's ends so


class DataError(Exception):
    """A data set is missing or is not what it should be."""


class _Rows(NamedTuple):
    """values: (n, features).  labels: (n,), the classes.  rewards: (n, arms), what each arm pays."""

    values: np.ndarray
    labels: np.ndarray | None = None
    rewards: np.ndarray | None = None


def load(
    name: str, *, arms: int, dim: int = 20, data: Path | None = None, task: Task | None = None, held_out: bool = False,
    seed: int = 0,
) -> Environment:  # fmt: skip
    """The environment called `name`, or of a CSV: rows by PCA to `dim` dimensions, with norm 1.

    task: an arm for each class, or for each K-means centre; classes where it is not said and the data has some.
    held_out: MNIST's test file as well, brought to `dim` dimensions as the others are.
    """
    if arms < 1 or dim < 1:
        raise DataError(f"an environment has at least 1 arm and 1 dimension, not {arms} and {dim}")
    if held_out and name != "mnist":
        raise DataError(f"{name} has no test file to hold out, MNIST alone has: hold out rows")
    if name == "synthetic":
        if task is not None:
            raise DataError("synthetic data has neither classes nor clusters: leave out --task")
        return synthetic_linear(arms, dim, seed=seed)
    labels = task is not Task.CLUSTERS
    rows = _mnist(data, "train", labels=labels) if name == "mnist" else _rows(name)
    if dim > min(rows.values.shape) or arms > len(rows.values):
        raise DataError(
            f"{name} has {rows.values.shape[1]} dimensions and {len(rows.values)} rows: lower --dim or --arms"
        )
    from sklearn.decomposition import PCA

    pca = PCA(dim, random_state=seed).fit(rows.values)
    contexts = unit_rows(pca.transform(rows.values))
    arms_of = _arms(name, task, rows, contexts, arms, seed)
    environment = arms_of(contexts, rows)
    if not held_out:
        return environment
    others = _mnist(data, "t10k", labels=labels)
    kept = arms_of(unit_rows(pca.transform(others.values)), others)
    return replace(environment, held_out=kept)


def _arms(
    name: str, task: Task | None, rows: _Rows, contexts: np.ndarray, arms: int, seed: int
) -> Callable[[np.ndarray, _Rows], Environment]:
    """What arms pay for contexts of this data set."""
    if task is None and rows.rewards is not None:
        if rows.rewards.shape[1] != arms:
            raise DataError(f"{name} has rewards of {rows.rewards.shape[1]} arms: say --arms {rows.rewards.shape[1]}")
        return lambda x, own: Environment(name, x, np.asarray(own.rewards), drawn=False)
    if task is not Task.CLUSTERS and rows.labels is not None:
        if (classes := len(np.unique(rows.labels))) != arms:
            raise DataError(
                f"{name} has {classes} classes, an arm for each: say --arms {classes}, or --task clusters for {arms}"
            )
        return lambda x, own: right_or_wrong(name, x, np.asarray(own.labels))
    if task is Task.CLASSES:
        raise DataError(f"{name} has no column 'label' with classes: add it, or say --task clusters")
    from sklearn.cluster import KMeans

    centres = KMeans(arms, n_init=4, random_state=seed).fit(contexts).cluster_centers_
    return lambda x, _: gaussian_kernel(f"{name} by clusters", x, centres)


def _rows(name: str) -> _Rows:
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        return _Rows(digits.data / digits.data.max(), digits.target)
    if not name.endswith(CSV):
        raise DataError(f"there is no data set {name!r}: choose one of {', '.join(DATA_SETS)}, or a file named .csv")
    if not Path(name).is_file():
        raise DataError(f"there is no file {name}: give a CSV with a line of names and numbers below")
    try:
        return _from_csv(Path(name))
    except TableError as error:
        raise DataError(f"{name}: {error}") from error


def _from_csv(path: Path) -> _Rows:
    table = read_table(path)
    names = table.names
    paying = list(itertools.takewhile(names.__contains__, (f"reward{arm}" for arm in itertools.count())))
    features = [name for name in names if name != "label" and name not in paying]
    if stray := [name for name in features if re.fullmatch(r"reward\d+", name)]:
        raise TableError(f"it has a column {stray[0]!r} but no 'reward{len(paying)}': count arms from 0, or rename it")
    if not features:
        raise TableError("it has no column of features: name them as you like, but not 'label' or 'reward0'")
    found = {name: table.numbers(name) for name in (*features, *paying)}
    for name, column in found.items():
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise TableError(f"{name} of {table.place(row)} is NaN or infinite: clean it")
    values = np.stack([found[name] for name in features], axis=1)
    values = values - values.mean(axis=0)
    spread = values.std(axis=0)
    return _Rows(
        values / np.where(spread > 0, spread, 1.0),
        _classes(table) if "label" in names else None,
        np.stack([found[name] for name in paying], axis=1) if paying else None,
    )


def _classes(table: Table) -> np.ndarray:
    """Numbers where all are, so that 10 comes behind 2; else as they are written."""
    try:
        numbers = table.numbers("label")
    except TableError:
        numbers = np.array(np.nan)
    exact = (np.abs(numbers) < 2.0**53).all()  # longer ones are codes, which may differ in what a float leaves out
    return numbers if exact else np.array(table.columns["label"])


def _mnist(data: Path | None, part: str, *, labels: bool) -> _Rows:
    """part: `train` or `t10k`, as its files are called."""
    pixels = np.frombuffer(_bytes(data, f"{part}-images-idx3-ubyte.gz"), np.uint8, offset=_IMAGES_HEADER)
    classes = None
    if labels:
        classes = np.frombuffer(_bytes(data, f"{part}-labels-idx1-ubyte.gz"), np.uint8, offset=_LABELS_HEADER)
    return _Rows(pixels.reshape(-1, 784) / 255.0, classes)


def _bytes(data: Path | None, name: str) -> bytes:
    """A file of MNIST's, unpacked, as it was published."""
    if data is None:
        raise DataError("MNIST is not embedded: give the folder that holds its files with --data-dir DIR")
    places = [data / name, data / "mnist" / name]
    found = [place for place in places if place.is_file()]
    if not found:
        raise DataError(f"there is no {name} in {data}: give the folder that holds MNIST's files with --data-dir DIR")
    raw = found[0].read_bytes()
    if hashlib.sha256(raw).hexdigest() != _MNIST[name]:
        raise DataError(f"{found[0]} is not MNIST as published (its sha256 differs): fetch it again")
    return gzip.decompress(raw)

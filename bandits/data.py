"""Data sets as environments.  The door to scikit-learn; knows files and checksums.

Data lies where the user says (`data`), or is scikit-learn's embedded digits.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from .environments import DATA_SETS, Environment, gaussian_kernel, synthetic_linear, unit_rows

_MNIST = ("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609")
_MNIST_HEADER = 16


class DataError(Exception):
    """A data set is missing or is not what it should be."""


def load(name: str, *, arms: int, dim: int = 20, data: Path | None = None, seed: int = 0) -> Environment:
    """The environment called `name`: rows by PCA to `dim` dimensions with norm 1, an arm for each K-means centre."""
    if arms < 1 or dim < 1:
        raise DataError(f"an environment has at least 1 arm and 1 dimension, not {arms} and {dim}")
    if name == "synthetic":
        return synthetic_linear(arms, dim, seed=seed)
    if name == "digits":
        images = load_digits().data
    elif name == "mnist":
        images = _mnist(data)
    else:
        raise DataError(f"there is no data set {name!r}: choose one of {', '.join(DATA_SETS)}")
    if dim > images.shape[1] or arms > len(images):
        raise DataError(f"{name} has {images.shape[1]} dimensions and {len(images)} rows: lower --dim or --arms")
    contexts = unit_rows(PCA(dim, random_state=seed).fit_transform(images / images.max()))
    centres = KMeans(arms, n_init=4, random_state=seed).fit(contexts).cluster_centers_
    return gaussian_kernel(name, contexts, centres)


def _mnist(data: Path | None) -> np.ndarray:
    name, checksum = _MNIST
    if data is None:
        raise DataError("MNIST is not embedded: give the folder that holds its files with --data-dir DIR")
    places = [data / name, data / "mnist" / name]
    found = [place for place in places if place.is_file()]
    if not found:
        raise DataError(f"there is no {name} in {data}: give the folder that holds MNIST's files with --data-dir DIR")
    raw = found[0].read_bytes()
    if hashlib.sha256(raw).hexdigest() != checksum:
        raise DataError(f"{found[0]} is not MNIST as published (its sha256 differs): fetch it again")
    pixels = np.frombuffer(gzip.decompress(raw), np.uint8, offset=_MNIST_HEADER)
    return pixels.reshape(-1, 784).astype(np.float64)

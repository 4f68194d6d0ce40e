"""A symmetric matrix held once: its upper triangle, row after row, and behind it any rows that belong to none.

Knows positions; no share.  [P; w'] of D + 1 rows and D columns is a vector of D (D + 1) / 2 + D words.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def pack(table: np.ndarray) -> np.ndarray:
    """(..., rows, dim) as (..., words): what lies below the diagonal of the first `dim` rows is left out."""
    *lead, rows, dim = table.shape
    return table.reshape(*lead, rows * dim).take(_kept(rows, dim), axis=-1)


def unpack(words: np.ndarray, dim: int) -> np.ndarray:
    """(..., words) as (..., rows, dim), symmetric in its first `dim` rows."""
    rows = rows_of(words.shape[-1], dim)
    return words.take(_spread(rows, dim), axis=-1).reshape(*words.shape[:-1], rows, dim)


def rows_of(words: int, dim: int) -> int:
    """Rows of the table that so many words hold."""
    further, rest = divmod(words - words_of(dim), dim)
    if further < 0 or rest:
        raise ValueError(f"{words} words hold no triangle of {dim} rows and whole rows behind it")
    return dim + further


@lru_cache(maxsize=64)
def triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of an upper triangle, diagonal included."""
    return np.triu_indices(dim)


def words_of(dim: int) -> int:
    """Words of a triangle of so many rows."""
    return dim * (dim + 1) // 2


def dim_of(words: int) -> int:
    """Rows of a triangle of so many words."""
    dim = (math.isqrt(8 * words + 1) - 1) // 2
    if words_of(dim) != words:
        raise ValueError(f"{words} words are no triangle")
    return dim


@lru_cache(maxsize=64)
def bordered(dim: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in x, of `dim` words, and in y, of `length`, whose products are x y' packed, and rows x y_j behind it."""
    i, j = triangle(dim)
    further = np.repeat(np.arange(dim, length), dim)
    return np.concatenate([i, np.tile(np.arange(dim), length - dim)]), np.concatenate([j, further])


@lru_cache(maxsize=64)
def border(words: int) -> np.ndarray:
    """Where the triangle of [y; s] [y; s]', of so many words, has that of y y' and behind it s y'."""
    dim = dim_of(words)
    i, j = triangle(dim)
    return np.concatenate([np.nonzero(j < dim - 1)[0], np.nonzero((j == dim - 1) & (i < dim - 1))[0]])


@lru_cache(maxsize=64)
def _kept(rows: int, dim: int) -> np.ndarray:
    i, j = triangle(dim)
    return np.concatenate([i * dim + j, np.arange(dim * dim, rows * dim)])


@lru_cache(maxsize=64)
def _spread(rows: int, dim: int) -> np.ndarray:
    at = np.empty((rows, dim), np.intp)
    i, j = triangle(dim)
    at[i, j] = at[j, i] = np.arange(i.size)
    at[dim:] = np.arange(i.size, i.size + (rows - dim) * dim).reshape(-1, dim)
    return at.reshape(-1)

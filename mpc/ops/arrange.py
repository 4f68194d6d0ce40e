"""Shares put together and taken apart, without a message.  Knows axes and scales; no randomness.

All parts are of one session, and of one scale or width: words of two scales side by side would be read wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from .. import packing
from ..errors import RangeError
from ..share import BinaryShare, Share, hosted_axis

S = TypeVar("S", Share, BinaryShare)


def concat(parts: Sequence[S], axis: int = 0) -> S:
    """[x_1; x_2; ...] along an axis that they have.  Local."""
    _check_alike(parts)
    (at,) = hosted_axis(axis, parts[0].ndim)
    return _like(parts[0], np.concatenate([part.words for part in parts], axis=at))


def stack(parts: Sequence[S], axis: int = 0) -> S:
    """[x_1; x_2; ...] along a new axis.  Local."""
    _check_alike(parts)
    (at,) = hosted_axis(axis, parts[0].ndim + 1)
    return _like(parts[0], np.stack([part.words for part in parts], axis=at))


def scatter(x: S, columns: np.ndarray, count: int) -> S:
    """`count` columns on the last axis: x's in the places `columns`, a mask or numbers, and zeros elsewhere.  Local."""
    words = np.zeros((*x.words.shape[:-1], count), x.words.dtype)
    words[..., columns] = x.words
    return _like(x, words)


def replaced(x: S, rows: np.ndarray, by: S) -> S:
    """x with the places `rows` of its last axis but one, a mask or numbers, taken by those of `by`.  Local."""
    _check_alike([x, by])
    words = x.words.copy()
    words[..., rows, :] = by.words
    return _like(x, words)


def pack(x: Share) -> Share:
    """A symmetric matrix, and any rows behind it, on the last two axes: each word once, on one axis.  Local."""
    return Share(x.session, packing.pack(x.words), x.scale)


def unpack(x: Share, dim: int) -> Share:
    """What `pack` packed, for a matrix of `dim` columns.  Local."""
    return Share(x.session, packing.unpack(x.words, dim), x.scale)


def bordered(x: Share) -> Share:
    """[y y'; s y'] as `pack` packs it, from the `outer_square` of [y; s]: s^2 is left out.  Local."""
    return x[..., packing.border(x.shape[-1])]


def _like(x: S, words: np.ndarray) -> S:
    made: Any = Share(x.session, words, x.scale) if isinstance(x, Share) else BinaryShare(x.session, words, x.width)
    return made


def _check_alike(parts: Sequence[Share] | Sequence[BinaryShare]) -> None:
    first = parts[0]
    kind, session, unit = type(first), first.session, _unit(first)
    for part in parts[1:]:
        if type(part) is not kind or part.session is not session or _unit(part) != unit:
            raise _refusal(first, part)


def _unit(x: Share | BinaryShare) -> tuple[int, int]:
    """What two parts must have in common beside their session: the scale, or the width, and the ring."""
    return (x.scale, x.ring) if isinstance(x, Share) else (x.width, x.width)


def _refusal(x: Share | BinaryShare, y: Share | BinaryShare) -> Exception:
    """Why two parts do not join."""
    if type(x) is not type(y):
        return TypeError("an arithmetic and a binary share do not join: convert with ops.to_arithmetic")
    if x.session is not y.session:
        return TypeError("shares of different sessions do not join: share all values in one session")
    if isinstance(x, BinaryShare):
        return TypeError(f"<x> of {x.width} bits and <y> of {_unit(y)[0]} do not join: the same width is needed")
    (scale, ring), (other, its_ring) = _unit(x), _unit(y)
    if ring != its_ring:
        return TypeError(f"shares mod 2^{ring} and 2^{its_ring} do not join: lift the narrow one with ops.lift")
    return RangeError(
        f"scales {scale} and {other} do not join: truncate one, raise the other with rescale, or join the words "
        "of all as integers()"
    )

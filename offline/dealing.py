"""What the dealt fields of each kind are.  Knows clear values: it runs at a dealer only.

Most kinds are functions of their free fields alone.  Those are worked out for many items at once, `of_free`: rows are
(parties, items, *shape), and the clear words of the dealt fields (items, *shape).  Kinds that take from the dealer's
own generator as well are made one by one, in the order of the program: `dealt_words`, with rows (parties, *shape).
"""

from __future__ import annotations

from functools import reduce, singledispatch

import numpy as np

from mpc import correlations as kinds
from mpc.bilinear import AND
from mpc.chunks import CHUNK, last_tables
from mpc.errors import ConfigError, RangeError
from mpc.ops.truncate import wrap_count
from mpc.prg import Prg
from mpc.ring import mask, narrow_mask, spread_bits

_LINES = 1 << 12  # that are worked out at once
_THERMOMETER = np.array([(2 << r) - 1 for r in range(1 << CHUNK)], np.uint16)

Clear = tuple[np.ndarray, ...]
Rows = tuple[np.ndarray, ...]


@singledispatch
def dealt_words(item: kinds.Correlation, rows: Rows, prg: Prg) -> Clear:
    """The clear dealt fields of one item of any kind."""
    return tuple([field[0] for field in of_free(item, tuple([row[:, None] for row in rows]))])


@singledispatch
def of_free(item: kinds.Correlation, rows: Rows) -> Clear:
    """The clear dealt fields of many items, where the free ones decide them."""
    raise ConfigError(f"no dealer makes {type(item).__name__}: register it with dealt_words or of_free")


def is_drawn(item: kinds.Correlation) -> bool:
    """Whether the dealer's own generator has a part in an item."""
    return dealt_words.dispatch(type(item)) is not dealt_words.dispatch(kinds.Correlation)


def joined(part: kinds.Field, rows: np.ndarray) -> np.ndarray:
    """The clear value behind the rows of one field."""
    total = over_rows(part, rows)
    return total if part.bits == 8 * part.dtype.itemsize else total & narrow_mask(part.bits)


def over_rows(part: kinds.Field, rows: np.ndarray) -> np.ndarray:
    """Rows of one field, at least one, added up, or XOR-ed; of few rows quicker than along an axis."""
    return np.asarray(reduce(np.bitwise_xor if part.xor else np.add, rows))


def correct(part: kinds.Field, shares: np.ndarray, value: np.ndarray) -> None:
    """Make the first row such that all rows are a sharing of the value."""
    rest = over_rows(part, shares[1:])
    if part.xor:
        np.bitwise_xor(value, rest, out=shares[0, ...])
    else:
        np.subtract(value.astype(part.dtype, copy=False), rest, out=shares[0, ...])


def _clear(item: kinds.Correlation, rows: Rows) -> Clear:
    return tuple([joined(part, row) for part, row in zip(kinds.layout(item).free, rows, strict=True)])


@of_free.register
def _(item: kinds.ProductMask, rows: Rows) -> Clear:
    a, b = _clear(item, rows)
    return (item.op.hosted(a, b, x_hosted=True, y_hosted=True),)


@of_free.register
def _(item: kinds.SquareMask, rows: Rows) -> Clear:
    (a,) = _clear(item, rows)
    return (item.op.hosted(a, a, x_hosted=True, y_hosted=True),)


@of_free.register
def _(item: kinds.AndMask, rows: Rows) -> Clear:
    a, b = _clear(item, rows)
    return (AND.hosted(a, b, x_hosted=True, y_hosted=True),)


@of_free.register
def _(item: kinds.TruncationMask, rows: Rows) -> Clear:
    (r,) = _clear(item, rows)
    return r >> np.uint64(item.bits), r >> np.uint64(63)


@of_free.register
def _(item: kinds.WrapMask, rows: Rows) -> Clear:
    (r,) = _clear(item, rows)
    return wrap_count(rows[0]), r >> np.uint64(63)


@of_free.register
def _(item: kinds.LookupMask, rows: Rows) -> Clear:
    (r,) = _clear(item, rows)
    entries = np.arange(1 << item.table.bits, dtype=np.uint64)
    at = (entries - r[..., None].astype(np.uint64)) & mask(item.table.bits)
    return (item.table.values[at.astype(np.intp)],)


@of_free.register
def _(item: kinds.LineMask, rows: Rows) -> Clear:
    """A few elements at a time, or what each line of the arithmetic leaves would be fetched from memory by the next."""
    (r,) = _clear(item, rows)
    flat, few = r.reshape(-1), max(1, _LINES >> item.segments)
    words = np.empty((flat.size, 1 << item.segments, 2), np.uint64)
    for at in range(0, flat.size, few):
        words[at : at + few] = _lines(item, flat[at : at + few])
    return (words.reshape(*r.shape, *words.shape[1:]),)


def _lines(item: kinds.LineMask, r: np.ndarray) -> np.ndarray:
    """The line of each piece: through both ends of the curve, moved half-way towards it in the middle.

    start = 2^(k-s) z_hi - r mod 2^k.  A piece that straddles the end of Z_2^k serves the lower end: it starts below 0
    and is fitted from 0 on.
    """
    inside = item.bits - item.segments
    z_hi = np.arange(1 << item.segments, dtype=np.uint64) << np.uint64(inside)
    start = ((z_hi - r[..., None].astype(np.uint64)) & mask(item.bits)).astype(np.float64)
    start = np.where(start > 2.0**item.bits - 2.0**inside, start - 2.0**item.bits, start)
    left, right = np.maximum(start, 0.0), start + 2.0**inside
    f_left, f_middle, f_right = (
        item.curve(item.curve.lower + np.minimum(at, item.last) * 2.0**-item.in_scale)
        for at in (left, 0.5 * (left + right), right)
    )
    slope = (f_right - f_left) / np.maximum(right - left, 1.0)
    height = f_left + slope * (start - left) + 0.5 * (f_middle - 0.5 * (f_left + f_right))
    lines = np.stack([height, slope * 2.0**item.step], axis=-1) * 2.0**item.out_scale
    if not (np.abs(lines) < 2.0**62).all():
        raise RangeError(f"the lines of {type(item.curve).__name__} do not fit {item.out_scale} fraction bits")
    return np.rint(lines).astype(np.int64).view(np.uint64)


@of_free.register
def _(item: kinds.SignTables, rows: Rows) -> Clear:
    r, masks = (part.reshape(-1) for part in _clear(item, rows))
    cut = item.cut
    chunks = _THERMOMETER.take(cut.split(r))
    at = cut.entries(masks)
    words = [np.bitwise_xor.reduce(table.take(at), axis=0) for table in cut.coefficients]
    top = (r >> r.dtype.type(item.width - 1)).astype(np.intp)
    verdicts = (masks >> masks.dtype.type(cut.pair_bits)).astype(np.intp)
    last = cut.last.take(verdicts | top << cut.verdict_bits, axis=1)
    return tuple([_of_items(item.shape, field) for field in (chunks, *words, last)])


@of_free.register
def _(item: kinds.SignStrings, rows: Rows) -> Clear:
    r, masks = (part.reshape(-1) for part in _clear(item, rows))
    cut, lead = item.cut, (-1, *item.shape)
    last = last_tables(len(cut.chunks), item.ring, masks, r >> r.dtype.type(item.width - 1))
    return cut.strings(r).reshape(*lead, cut.string_bytes), last.reshape(*lead, cut.readings)


def _of_items(shape: kinds.Shape, field: np.ndarray) -> np.ndarray:
    """(..., items * elements) as (items, ..., *shape)."""
    return np.moveaxis(field.reshape(*field.shape[:-1], -1, *shape), field.ndim - 1, 0)


@of_free.register
def _(item: kinds.SignBits, rows: Rows) -> Clear:
    (r,) = _clear(item, rows)
    r = r.astype(np.uint64)
    return spread_bits(r & mask(item.width - 1), item.low_bits), (r >> np.uint64(item.width - 1)).astype(np.uint8)


@of_free.register
def _(item: kinds.BitMask, rows: Rows) -> Clear:
    return _clear(item, rows)


@of_free.register
def _(item: kinds.SharedBits, rows: Rows) -> Clear:
    (bits,) = _clear(item, rows)
    places = np.arange(item.width, dtype=np.uint64)
    return ((bits.astype(np.uint64)[..., None] >> places) & np.uint64(1),)


@dealt_words.register
def _(item: kinds.EqualTables, rows: Rows, prg: Prg) -> Clear:
    (r,) = _clear(item, rows)
    count = item.chunk_count
    r_k = np.ascontiguousarray(r).astype("<u8").reshape(*item.shape, 1).view(np.uint8)[..., :count]
    secret = prg.bytes(r.size).reshape(item.shape) & np.uint8((1 << count) - 1)
    j = np.arange(256, dtype=np.uint8)
    chunks = np.zeros((*item.shape, 256), np.uint8)
    for k in range(count):
        chunks |= (j == r_k[..., k, None]).astype(np.uint8) << np.uint8(k)
    last = np.arange(1 << count) == (secret ^ np.uint8((1 << count) - 1))[..., None]
    return chunks ^ secret[..., None], last.astype(np.uint64)


@dealt_words.register
def _(item: kinds.ChoiceNoise, rows: Rows, prg: Prg) -> Clear:
    order = prg.permutations(item.shape)
    if item.eps <= 0:
        return (order,)
    explores = _coin(item.shape[:-1], item.eps, prg)
    arm = prg.below(item.shape[-1], item.shape[:-1])[..., None]
    lifted = (np.arange(item.shape[-1], dtype=np.uint64) == arm) & (explores[..., None] == 1)
    return (order + (lifted.astype(np.uint64) << np.uint64(item.high)),)


@dealt_words.register
def _(item: kinds.Exploration, rows: Rows, prg: Prg) -> Clear:
    return _coin(item.shape[:-1], item.eps, prg), prg.words(item.shape) & mask(item.bits)


def _coin(shape: tuple[int, ...], eps: float, prg: Prg) -> np.ndarray:
    """y ~ Bernoulli(eps)."""
    word = prg.words(shape)
    limit = min(int(eps * 2.0**64), (1 << 64) - 1)
    return ((word <= np.uint64(limit)) if eps >= 1 else (word < np.uint64(limit))).astype(np.uint64)


@dealt_words.register
def _(item: kinds.Gaussian, rows: Rows, prg: Prg) -> Clear:
    """Box and Muller on 53-bit uniforms; the angle and the radius of each draw are its own."""
    uniform = ((prg.words((2, *item.shape)) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    z = np.sqrt(-2.0 * np.log(uniform[0])) * np.cos(2.0 * np.pi * uniform[1])
    words = np.rint(np.clip(z, -8.0, 8.0) * item.deviation * 2.0**item.scale)
    if not np.abs(words).max(initial=0.0) < 2.0**62:
        raise RangeError(f"normal draws of deviation {item.deviation:g} do not fit {item.scale} fraction bits")
    return (words.astype(np.int64).view(np.uint64),)


@dealt_words.register
def _(item: kinds.Permutation, rows: Rows, prg: Prg) -> Clear:
    return (prg.permutations(item.shape) + np.uint64(1),)


@dealt_words.register
def _(item: kinds.UniformNumber, rows: Rows, prg: Prg) -> Clear:
    return (prg.words(item.shape) & mask(item.bits),)

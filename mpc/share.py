"""Secret-shared values.  Knows local arithmetic; whatever needs a message is a function in `mpc.ops`.

The words of a share have a leading *hosted* axis: one row for each party that this process plays.  A party process
hosts one, a simulation hosts all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import ring
from .errors import RangeError

if TYPE_CHECKING:
    from .session import Session


class _Hidden:
    """What no secret-shared value may do quietly."""

    __slots__ = ("session", "words")
    __array_ufunc__ = None  # numpy hands `array * share` to the share
    __hash__ = None  # type: ignore[assignment]

    words: np.ndarray
    session: Session

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the secret value, without the hosted axis."""
        return self.words.shape[1:]

    @property
    def ndim(self) -> int:
        return self.words.ndim - 1

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a shared scalar has no length")
        return self.shape[0]

    def _refuse(self, what: str, cure: str) -> NoReturn:
        raise TypeError(f"{what} of a secret is not known to any party: {cure}")

    def __bool__(self) -> bool:
        self._refuse("the truth", "compare with ops.less and select with a product, or Reveal it")

    def __float__(self) -> float:
        self._refuse("the number", "Reveal it to a role first")

    def __int__(self) -> int:
        self._refuse("the number", "Reveal it to a role first")

    def __index__(self) -> int:
        self._refuse("the number", "select with a one-hot product, or Reveal it")

    def __eq__(self, other: object) -> bool:
        self._refuse("the equality", "use ops.equal")

    def __ne__(self, other: object) -> bool:
        self._refuse("the equality", "use ops.equal")

    def __lt__(self, other: object) -> bool:
        self._refuse("the order", "use ops.less")

    def __le__(self, other: object) -> bool:
        self._refuse("the order", "use ops.less")

    def __gt__(self, other: object) -> bool:
        self._refuse("the order", "use ops.less")

    def __ge__(self, other: object) -> bool:
        self._refuse("the order", "use ops.less")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self._refuse("the array", "Reveal it to a role first")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a share is never pickled: keep it in its party's own process")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a share is never pickled: keep it in its party's own process")


_WHOLE = slice(None)
_BASIC = frozenset((slice, type(Ellipsis), type(None), int))  # keys that keep or drop an axis where it stands


def _picked(words: np.ndarray, key: Any) -> np.ndarray:
    """words[:, key] with numpy's meaning of `key` on the value alone.

    Several index arrays that a slice keeps apart would move their axes in front of the hosted one; for those the
    positions are worked out on the value's own shape.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if _BASIC.issuperset(map(type, keys)):
        return words[(_WHOLE, *keys)]
    arrays = [k for k in keys if not isinstance(k, (slice, type(Ellipsis), type(None), int, np.integer))]
    if not arrays or (len(arrays) == 1 and not any(isinstance(k, (int, np.integer)) for k in keys)):
        return words[(slice(None), *keys)]
    places = np.arange(words[0].size).reshape(words.shape[1:])[keys]
    return words.reshape(words.shape[0], -1)[:, places]


def hosted_axis(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Axes of a value with `ndim` of them, as axes of its words."""
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim + 1,)
    axes = tuple(range(ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if any(not -ndim <= a < ndim for a in axes):
        raise TypeError(f"axis {axis} of a share with {ndim} axes")
    return tuple(a % ndim + 1 for a in axes)


class Share(_Hidden):
    """An additive share [x] mod 2^ring with `scale` fraction bits.

    The ring is that of the words' type: 64 bits, or 8 or 16 for small numbers such as bits and ranks.  A share mod 2^8
    is none mod 2^64, as the carries of its sum are secret; so narrow ones meet no wide ones before `ops.lift`.
    """

    __slots__ = ("scale",)

    def __init__(self, session: Session, words: np.ndarray, scale: int) -> None:
        self.session = session
        self.words = words
        self.scale = scale

    def _with(self, words: np.ndarray) -> Share:
        return Share(self.session, words, self.scale)

    @property
    def ring(self) -> int:
        """Bits of the ring that it is shared in."""
        return 8 * self.words.dtype.itemsize

    def wide(self) -> np.ndarray:
        """The words of a share mod 2^64; a narrower one is refused."""
        if self.words.dtype != np.uint64:
            raise TypeError(f"a share mod 2^{self.ring} does not do here: lift it to 2^64 with ops.lift first")
        return self.words

    def _other(self, other: Any) -> np.ndarray:
        """Words of an operand of + and -: a share of the same scale, or a public value encoded at this scale."""
        if isinstance(other, Share):
            if other.session is not self.session:
                raise TypeError("two shares of different sessions: share both values in one session")
            if other.words.dtype != self.words.dtype:
                raise TypeError(
                    f"shares mod 2^{self.ring} and 2^{other.ring} do not add: lift the narrow one with ops.lift"
                )
            if other.scale != self.scale:
                raise RangeError(
                    f"scales {self.scale} and {other.scale} do not add: truncate one, or raise the other with rescale"
                )
            return other.words
        if isinstance(other, _Hidden):
            raise TypeError("an arithmetic and a binary share do not add: convert with ops.to_arithmetic")
        encode = ring.encode_number if type(other) in (int, float) else ring.encode
        return self.session.public(self._fitting(encode(other, self.scale)))

    def _fitting(self, words: Any) -> Any:
        """A public value's words in this ring; a value that is none of a narrow one is refused."""
        if self.words.dtype == np.uint64:
            return words
        value = words.astype(np.int64)
        if ((value < -(1 << self.ring - 1)) | (value >= 1 << self.ring)).any():
            raise RangeError(
                f"a public value beyond 2^{self.ring} meets a share mod 2^{self.ring}: lift it with ops.lift"
            )
        return words.astype(self.words.dtype)

    def __add__(self, other: Any) -> Share:
        x, y = _align(self.words, self._other(other))
        return self._with(x + y)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Share:
        x, y = _align(self.words, self._other(other))
        return self._with(x - y)

    def __rsub__(self, other: Any) -> Share:
        return (-self) + other

    def __neg__(self) -> Share:
        return self._with(np.negative(self.words))

    def __mul__(self, factor: Any) -> Share:
        """Times a public value: integers keep the scale, reals are encoded at 20 fraction bits and add them."""
        if isinstance(factor, _Hidden):
            raise TypeError("share * share needs a message: use 'yield from ops.product(session, x, y)'")
        array = ring.as_array(factor)
        return self.times(array, bits=ring.FRACTION_BITS if array.dtype.kind == "f" else 0)

    __rmul__ = __mul__

    def times(self, factor: Any, *, bits: int) -> Share:
        """Times a public value encoded with `bits` fraction bits, which are added to the scale."""
        words, scale = self._factor(factor, bits)
        x, y = _align(self.words, words[None])
        return Share(self.session, x * y, scale)

    def mapped(self, rows: Any, *, bits: int) -> Share:
        """[M x] of a vector x, for a public matrix M, or [<m, x>] for one row, encoded as in `times`."""
        if self.ndim != 1:
            raise TypeError(f"a public matrix maps a vector, not a share of shape {self.shape}: use ops.einsum")
        words, scale = self._factor(rows, bits)
        return Share(self.session, np.einsum("...d,Pd->P...", words, self.words), scale)

    def _factor(self, factor: Any, bits: int) -> tuple[np.ndarray, int]:
        """The words of a public factor, and the scale of a product with it."""
        scale = self.scale + bits
        if scale > ring.VALUE_BITS:
            raise RangeError(f"the product would have {scale} fraction bits of {ring.VALUE_BITS}: truncate first")
        words = ring.encode(factor, bits)
        if self.session.trail is not None:
            self.session.trail.multiplied(words)
        return self._fitting(words), scale

    def __truediv__(self, other: Any) -> Share:
        raise TypeError("division is not local: multiply by a public reciprocal, or use ops.truncate or ops.reciprocal")

    def rescale(self, scale: int) -> Share:
        """The same value with more fraction bits; fewer need ops.truncate."""
        if scale < self.scale:
            raise RangeError(f"from {self.scale} to {scale} fraction bits is a division: use ops.truncate")
        if scale > ring.VALUE_BITS:
            raise RangeError(f"{scale} fraction bits of {ring.VALUE_BITS}: no room is left for the value")
        return Share(self.session, self.wide() << np.uint64(scale - self.scale), scale)

    def integers(self) -> Share:
        """The same words as whole numbers: the value times 2^scale."""
        return Share(self.session, self.words, 0)

    def at_scale(self, scale: int) -> Share:
        """The same words read with `scale` fraction bits: the value times 2^(self.scale - scale)."""
        if not 0 <= scale <= ring.VALUE_BITS:
            raise RangeError(f"words are read with 0 to {ring.VALUE_BITS} fraction bits, not {scale}: truncate first")
        return Share(self.session, self.words, scale)

    def mod(self, bits: int) -> Share:
        """The same value in a ring of 8 or 16 bits; back again needs ops.lift."""
        if bits > self.ring:
            raise TypeError(f"a share mod 2^{self.ring} is none mod 2^{bits}: lift it with ops.lift")
        return Share(self.session, self.words.astype(ring.dtype_for(bits), copy=False), self.scale)

    def __getitem__(self, key: Any) -> Share:
        return self._with(_picked(self.words, key))

    def reshape(self, *shape: int) -> Share:
        return self._with(self.words.reshape(self.words.shape[0], *shape))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> Share:
        return self._with(self.words.sum(axis=hosted_axis(axis, self.ndim), dtype=self.words.dtype))

    def cumsum(self, axis: int) -> Share:
        return self._with(self.words.cumsum(axis=hosted_axis(axis, self.ndim)[0], dtype=self.words.dtype))

    @property
    def T(self) -> Share:
        """The last two axes swapped."""
        if self.ndim < 2:
            raise TypeError(f"a share of shape {self.shape} has no two axes to swap: reshape it first")
        return self._with(np.swapaxes(self.words, -1, -2))

    def diagonal(self) -> Share:
        """Of the last two axes."""
        if self.ndim < 2:
            raise TypeError(f"a share of shape {self.shape} has no diagonal: reshape it first")
        return self._with(np.ascontiguousarray(np.diagonal(self.words, axis1=-2, axis2=-1)))

    def __repr__(self) -> str:
        ring = "" if self.ring == 64 else f", ring={self.ring}"
        return f"Share(shape={self.shape}, scale={self.scale}{ring})"


class BinaryShare(_Hidden):
    """An XOR share <x> of `width`-bit words."""

    __slots__ = ("width",)

    def __init__(self, session: Session, words: np.ndarray, width: int) -> None:
        self.session = session
        self.words = words
        self.width = width

    def wide(self) -> NoReturn:
        """Its words do not add up, as those of a share mod 2^64 do."""
        raise TypeError(f"an XOR share of {self.width} bits does not do here: convert with ops.to_arithmetic first")

    def _with(self, words: np.ndarray) -> BinaryShare:
        return BinaryShare(self.session, words, self.width)

    def __xor__(self, other: Any) -> BinaryShare:
        if isinstance(other, BinaryShare):
            if other.session is not self.session or other.width != self.width:
                raise TypeError(f"<x> of {self.width} bits and <y> of {other.width}: same session and width are needed")
            x, y = _align(self.words, other.words)
        elif isinstance(other, _Hidden):
            raise TypeError("an arithmetic and a binary share do not mix: convert with ops.to_binary")
        else:
            x, y = _align(self.words, self.session.public(self._bits(other)))
        return self._with(x ^ y)

    __rxor__ = __xor__

    def __and__(self, other: Any) -> BinaryShare:
        if isinstance(other, _Hidden):
            raise TypeError("share & share needs a message: use 'yield from ops.conjunction(session, x, y)'")
        x, y = _align(self.words, self._bits(other)[None])
        return self._with(x & y)

    __rand__ = __and__

    def __invert__(self) -> BinaryShare:
        return self ^ ring.mask(self.width)

    def __lshift__(self, bits: int) -> BinaryShare:
        dtype = self.words.dtype.type
        return self._with((self.words << dtype(bits)) & dtype(ring.mask(self.width)))

    def __rshift__(self, bits: int) -> BinaryShare:
        return self._with(self.words >> self.words.dtype.type(bits))

    def __getitem__(self, key: Any) -> BinaryShare:
        return self._with(_picked(self.words, key))

    def reshape(self, *shape: int) -> BinaryShare:
        return self._with(self.words.reshape(self.words.shape[0], *shape))

    def _bits(self, value: Any) -> np.ndarray:
        return ring.encode_bits(value, self.width).astype(self.words.dtype)

    def __repr__(self) -> str:
        return f"BinaryShare(shape={self.shape}, width={self.width})"


def _align(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two hosted arrays brought to the same rank, so that they broadcast."""
    rank = max(x.ndim, y.ndim) - 1
    return (x, y) if x.ndim == y.ndim else (ring.widen(x, rank), ring.widen(y, rank))

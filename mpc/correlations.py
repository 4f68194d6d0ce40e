"""What a party may draw on: the kinds of correlated randomness and their layout.  Knows no dealer and no store.

A kind is a frozen dataclass of public parameters.  Its fields are either *free*, uniform for every party, so that
each expands its own seed, or *dealt*, a function of the free ones: parties 1, 2, ... expand these from their seed as
well, and party 0 is handed the correction that makes the sum right.  So party 0 alone stores anything, and only for
dealt fields.

A `Source` hands out items in the order of the program.  `offline` implements it.
"""

from __future__ import annotations

import hashlib
import math
import operator
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from .bilinear import MULTIPLY, Bilinear
from .chunks import Cut, cut
from .curves import Curve, Table
from .ring import dtype_for
from .strings import Strings, strings

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Field:
    """One array of an item: shape, ring Z_2^bits (held in the narrowest dtype), shared by sum or XOR."""

    name: str
    shape: Shape
    bits: int = 64
    xor: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_for(self.bits)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class _Interned(ABCMeta):
    """Equal parameters give the same object, so that a step that draws what the one before drew makes nothing new.

    Parameters are brought to one form: whichever of (7,) and (np.int64(7),) a process meets first, the digest is that
    of (7,), as it is for its peers.
    """

    @lru_cache(maxsize=4096, typed=True)  # noqa: B019 - kinds live as long as the program
    def __call__(cls, *args: Any, **named: Any) -> Any:
        made = super().__call__(*args, **named)
        for part in fields(made) if is_dataclass(made) else ():
            value = getattr(made, part.name)
            if isinstance(value, tuple):
                value = tuple(operator.index(number) for number in value)
            elif part.type in ("int", "float"):
                value = operator.index(value) if part.type == "int" else float(value)
            object.__setattr__(made, part.name, value)
        return made


class Correlation(metaclass=_Interned):
    """A kind of item, with its public parameters.

    coins: whether its dealt fields are chances that the result depends on, such as an order or a normal draw, and not
    masks.  A dealer draws these from a stream of their own, so that a run can be repeated with fresh masks.
    """

    coins: ClassVar[bool] = False

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that stand for the kind and its parameters."""
        return hashlib.blake2b(repr(self).encode(), digest_size=16).digest()

    @abstractmethod
    def free(self) -> tuple[Field, ...]:
        """Uniform fields."""

    @abstractmethod
    def dealt(self) -> tuple[Field, ...]:
        """Fields that depend on the free ones."""


@dataclass(frozen=True)
class Layout:
    """Where the fields of an item lie in its bytes: free ones first, each aligned to 8 bytes."""

    free: tuple[Field, ...]
    dealt: tuple[Field, ...]
    places: tuple[tuple[int, int, np.dtype[Any], Shape], ...]
    free_bytes: int
    total_bytes: int

    @property
    def dealt_bytes(self) -> int:
        return self.total_bytes - self.free_bytes

    def views(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """The fields of `rows` (hosted, total_bytes) as arrays (hosted, *shape)."""
        hosted = rows.shape[0]
        return tuple(
            rows[:, start:stop].view(dtype).reshape(hosted, *shape) for start, stop, dtype, shape in self.places
        )


@lru_cache(maxsize=4096)
def layout(item: Correlation) -> Layout:
    """The layout of an item; the same for every party."""
    places, at, free_end = [], 0, 0
    free, dealt = item.free(), item.dealt()
    for index, part in enumerate(free + dealt):
        places.append((at, at + part.nbytes, part.dtype, part.shape))
        at += -(-part.nbytes // 8) * 8
        if index < len(free):
            free_end = at
    return Layout(free, dealt, tuple(places), free_end, at)


class Source(Protocol):
    """Hands a process the rows of its hosted parties, item by item in program order.

    One that has its items in blocks says as `block` of which the last was; sessions compare it in every round.
    """

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The fields of the next item as (hosted, *shape); OutOfMaterial when there is none."""

    def statement(self) -> bytes:
        """What the parties compare before the first round: at most 64 public bytes on where this source stands."""

    def agree(self, statements: list[bytes]) -> None:
        """Hear the statements of all parties, before the first item; move forward or refuse."""


@dataclass(frozen=True)
class ProductMask(Correlation):
    """a, b uniform and c = op(a, b).

    From:  Beaver, CRYPTO '91; docs/protocol-book.md, Products.
    """

    op: Bilinear
    x: Shape
    y: Shape

    def free(self) -> tuple[Field, ...]:
        return Field("a", self.x), Field("b", self.y)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("c", self.op.shape(self.x, self.y)),)


@dataclass(frozen=True)
class SquareMask(Correlation):
    """a uniform and c = op(a, a).

    From:  Beaver, CRYPTO '91; docs/protocol-book.md, Products.
    """

    shape: Shape
    op: Bilinear = MULTIPLY

    def free(self) -> tuple[Field, ...]:
        return (Field("a", self.shape),)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("c", self.op.shape(self.shape, self.shape)),)


@dataclass(frozen=True)
class AndMask(Correlation):
    """XOR shares: a, b uniform and c = a & b, broadcast; words of `bits` bits.

    From:  Beaver, CRYPTO '91, over GF(2); docs/protocol-book.md, Products.
    """

    x: Shape
    y: Shape
    bits: int

    def free(self) -> tuple[Field, ...]:
        return Field("a", self.x, self.bits, xor=True), Field("b", self.y, self.bits, xor=True)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("c", np.broadcast_shapes(self.x, self.y), self.bits, xor=True),)


@dataclass(frozen=True)
class TruncationMask(Correlation):
    """r uniform, its quotient r >> bits, and its top bit (mod 2^bits is enough: it is multiplied by 2^(64 - bits)).

    From:  docs/protocol-book.md, Exact truncation.
    """

    shape: Shape
    bits: int

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape),)

    def dealt(self) -> tuple[Field, ...]:
        return Field("high", self.shape), Field("top", self.shape, bits=32 if self.bits <= 32 else 64)


@dataclass(frozen=True)
class WrapMask(Correlation):
    """r uniform, theta = how often the signed shares of r wrap around, and the sign bit of r.

    From:  Hannun et al., "Privacy-preserving contextual bandits", Algorithm 3; docs/protocol-book.md, The published
           wrap count.
    """

    shape: Shape

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape),)

    def dealt(self) -> tuple[Field, ...]:
        return Field("theta", self.shape), Field("negative", self.shape)


@dataclass(frozen=True)
class LookupMask(Correlation):
    """r uniform in Z_2^k and, for each element, the table turned by r: entries T[j - r].

    From:  docs/protocol-book.md, Look-ups.
    """

    shape: Shape
    table: Table

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape, self.table.bits),)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("turned", (*self.shape, 1 << self.table.bits)),)


@dataclass(frozen=True)
class LineMask(Correlation):
    """r uniform in Z_2^k and, for each of 2^segments top parts of x + r, the line through the curve there.

    The words are (height, slope) at `out_scale` fraction bits, the slope per 2^step units in the last place of x.
    Beyond `last` units from the curve's lower end the lines are flat: no argument lies there.

    From:  docs/protocol-book.md, Look-ups.
    """

    shape: Shape
    curve: Curve
    in_scale: int
    out_scale: int
    bits: int
    segments: int
    last: int
    step: int = 0

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape, self.bits),)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("lines", (*self.shape, 1 << self.segments, 2)),)


@dataclass(frozen=True)
class SignTables(Correlation):
    """r uniform in Z_2^width and three levels of tables that turn the public z = d + r into [d < 0] mod 2^ring.

    masks: of the chunks' pairs of opened bits and, above them, of the groups'.
    chunks[k]: for the 4 bits r_k of chunk k, 2^(r_k + 1) - 1: bit z says whether z <= r_k.
    words: the coefficients of the groups' polynomials, functions of the chunks' masks.
    last: tables that turn the groups' bits into r's top bit XOR the borrow, functions of their masks and that bit.

    From:  docs/protocol-book.md, Sign and comparison.
    """

    shape: Shape
    width: int
    ring: int = 64

    @property
    def cut(self) -> Cut:
        """How the bits below the top one are joined."""
        return cut(self.width, self.ring)

    def free(self) -> tuple[Field, ...]:
        masks = self.cut.pair_bits + self.cut.verdict_bits
        return Field("r", self.shape, self.width), Field("masks", self.shape, masks, xor=True)

    def dealt(self) -> tuple[Field, ...]:
        words = self.cut.coefficient_words
        return (
            Field("chunks", (self.cut.chunks, *self.shape), 16, xor=True),
            *(Field(f"words{i}", self.shape, bits, xor=True) for i, bits in enumerate(words)),
            Field("last", (self.cut.readings, *self.shape), self.ring),
        )


@dataclass(frozen=True)
class SignStrings(Correlation):
    """r uniform in Z_2^width and what turns the public z = d + r into [d < 0] mod 2^ring in a round less.

    masks: of the chunks' opened bits.
    strings: for each chunk k, 2^c bits that say of every z whether z <= r_k.
    last: tables that turn the opened bits into r's top bit XOR the borrow, functions of their masks and that bit.

    From:  docs/protocol-book.md, Sign and comparison.
    """

    shape: Shape
    width: int
    ring: int = 64

    @property
    def cut(self) -> Strings:
        """How the bits below the top one are cut."""
        return strings(self.width, self.ring)

    def free(self) -> tuple[Field, ...]:
        return Field("r", self.shape, self.width), Field("masks", self.shape, self.cut.verdict_bits, xor=True)

    def dealt(self) -> tuple[Field, ...]:
        return (
            Field("strings", (*self.shape, self.cut.string_bytes), 8, xor=True),
            Field("last", (*self.shape, self.cut.readings), self.ring),
        )


@dataclass(frozen=True)
class SignBits(Correlation):
    """r uniform in Z_2^width, its low width - 1 bits XOR-shared as a word in `spread_bits` order, and its top bit.

    From:  docs/protocol-book.md, Sign and comparison.
    """

    shape: Shape
    width: int

    @property
    def low_bits(self) -> int:
        """The word the low bits are held in: the next power of two, at least 8."""
        return max(8, 1 << (self.width - 2).bit_length())

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape, self.width),)

    def dealt(self) -> tuple[Field, ...]:
        return Field("low", self.shape, self.low_bits, xor=True), Field("top", self.shape, 1, xor=True)


@dataclass(frozen=True)
class BitMask(Correlation):
    """r uniform in Z_2^64 and the same word XOR-shared.

    From:  docs/protocol-book.md, Conversions.
    """

    shape: Shape

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape),)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("bits", self.shape, xor=True),)


@dataclass(frozen=True)
class SharedBits(Correlation):
    """Words of `width` uniform bits, XOR-shared, and each bit as an additive share.

    From:  docs/protocol-book.md, Conversions.
    """

    shape: Shape
    width: int

    def free(self) -> tuple[Field, ...]:
        return (Field("bits", self.shape, self.width, xor=True),)

    def dealt(self) -> tuple[Field, ...]:
        return (Field("each", (*self.shape, self.width)),)


@dataclass(frozen=True)
class EqualTables(Correlation):
    """r uniform in Z_2^width; chunks[j] holds [j = r_k] in bit k, masked; last: from 8 opened bits to "all equal".

    From:  docs/protocol-book.md, Sign and comparison.
    """

    shape: Shape
    width: int

    @property
    def chunk_count(self) -> int:
        return -(-self.width // 8)

    def free(self) -> tuple[Field, ...]:
        return (Field("r", self.shape, self.width),)

    def dealt(self) -> tuple[Field, ...]:
        last = 1 << self.chunk_count
        return Field("chunks", (*self.shape, 256), 8, xor=True), Field("last", (*self.shape, last))


@dataclass(frozen=True)
class ChoiceNoise(Correlation):
    """Secret noise that makes keys unique and, with probability eps, decides alone.

    permutation + y * [i = arm] * 2^high along the last axis: y ~ Bernoulli(eps), a uniform permutation and arm per row.

    From:  docs/protocol-book.md, Argmax.
    """

    coins: ClassVar[bool] = True

    shape: Shape
    eps: float
    high: int

    def free(self) -> tuple[Field, ...]:
        return ()

    def dealt(self) -> tuple[Field, ...]:
        return (Field("noise", self.shape),)


@dataclass(frozen=True)
class Permutation(Correlation):
    """A secret uniform permutation of 1..A along the last axis.

    From:  Hannun et al., "Privacy-preserving contextual bandits", its argmax.
    """

    coins: ClassVar[bool] = True

    shape: Shape

    def free(self) -> tuple[Field, ...]:
        return ()

    def dealt(self) -> tuple[Field, ...]:
        return (Field("order", self.shape),)


@dataclass(frozen=True)
class UniformNumber(Correlation):
    """u uniform in [0, 2^bits), shared mod 2^64.

    From:  docs/protocol-book.md, Argmax (categorical draws).
    """

    coins: ClassVar[bool] = True

    shape: Shape
    bits: int

    def free(self) -> tuple[Field, ...]:
        return ()

    def dealt(self) -> tuple[Field, ...]:
        return (Field("u", self.shape),)


@dataclass(frozen=True)
class Exploration(Correlation):
    """y ~ Bernoulli(eps) for each row, and for each of its arms a score of `bits` uniform bits.

    From:  Hannun et al., "Privacy-preserving contextual bandits", Algorithm 1; docs/protocol-book.md, Argmax.
    """

    coins: ClassVar[bool] = True

    shape: Shape
    eps: float
    bits: int

    def free(self) -> tuple[Field, ...]:
        return ()

    def dealt(self) -> tuple[Field, ...]:
        return Field("explores", self.shape[:-1]), Field("scores", self.shape)


@dataclass(frozen=True)
class Gaussian(Correlation):
    """Normal draws of mean 0 and standard deviation `deviation`, rounded to `scale` fraction bits.

    Cut off at 8 standard deviations, beyond which a draw lies with probability 1e-15.

    From:  docs/protocol-book.md, Argmax (normal draws).
    """

    coins: ClassVar[bool] = True

    shape: Shape
    deviation: float
    scale: int

    def free(self) -> tuple[Field, ...]:
        return ()

    def dealt(self) -> tuple[Field, ...]:
        return (Field("z", self.shape),)


KINDS: dict[str, type[Correlation]] = {
    kind.__name__: kind
    for kind in (
        ProductMask, SquareMask, AndMask, TruncationMask, WrapMask, LookupMask, LineMask, SignTables, SignStrings,
        SignBits,
        BitMask, SharedBits, EqualTables, ChoiceNoise, Permutation, UniformNumber, Exploration, Gaussian,
    )
}  # fmt: skip

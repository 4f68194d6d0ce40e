"""One list for the tests of this room: items of every kind, at the corners of their parameters, and small plans."""

from __future__ import annotations

import numpy as np

from mpc.bilinear import MATMUL, MULTIPLY, TRIANGLE, Bilinear
from mpc.correlations import (
    AndMask,
    BitMask,
    ChoiceNoise,
    Correlation,
    EqualTables,
    Exploration,
    Gaussian,
    LineMask,
    LookupMask,
    Permutation,
    ProductMask,
    SharedBits,
    SignBits,
    SignStrings,
    SignTables,
    SquareMask,
    TruncationMask,
    UniformNumber,
    WrapMask,
)
from mpc.curves import Exponential, InverseSquareRoot, Reciprocal, SquareRoot, Table, indicator

CUBES = Table(np.arange(16, dtype=np.uint64) ** 3)
RECIPROCAL = LineMask((), Reciprocal(1.0), 9, 30, 9, 4, 1 << 9)

SHAPED: list[Correlation] = [
    item
    for shape in ((), (3,), (2, 2))
    for item in (
        ProductMask(MULTIPLY, shape, shape),
        SquareMask(shape),
        AndMask(shape, shape, 1),
        AndMask(shape, shape, 13),
        AndMask(shape, shape, 64),
        TruncationMask(shape, 1),
        TruncationMask(shape, 20),
        TruncationMask(shape, 33),
        TruncationMask(shape, 62),
        WrapMask(shape),
        LookupMask(shape, CUBES),
        LookupMask(shape, indicator(7, 8)),
        LineMask(shape, Reciprocal(1.0), 9, 30, 9, 4, 1 << 9),
        *(SignTables(shape, width, 8) for width in (2, 8, 33, 51, 64)),
        *(SignTables(shape, width, 16) for width in (5, 43)),
        *(SignTables(shape, width, 64) for width in (8, 32, 34, 54)),
        *(SignStrings(shape, width, 8) for width in (2, 9, 51)),
        *(SignStrings(shape, width, ring) for width, ring in ((5, 64), (33, 16))),
        *(SignBits(shape, width) for width in (8, 33, 60, 64)),
        BitMask(shape),
        SharedBits(shape, 1),
        SharedBits(shape, 20),
        *(EqualTables(shape, width) for width in (1, 8, 30, 64)),
        UniformNumber(shape, 1),
        UniformNumber(shape, 40),
        UniformNumber(shape, 64),
    )
]

ITEMS: list[Correlation] = [
    *SHAPED,
    ProductMask(MULTIPLY, (3, 1), (2,)),
    ProductMask(MATMUL, (2, 3), (3, 2)),
    ProductMask(MATMUL, (2, 2, 3), (3,)),
    ProductMask(Bilinear("ab,c->abc"), (2, 3), (2,)),
    ProductMask(Bilinear("a,abc->bc"), (3,), (3, 2, 2)),
    AndMask((3, 1), (2,), 20),
    SquareMask((0,)),
    SquareMask((2, 3), TRIANGLE),
    ProductMask(Bilinear("sym:ij,j->i"), (7,), (2,)),
    LineMask((2,), Exponential(-1.0), 9, 30, 10, 4, 1 << 10),
    LineMask((2,), SquareRoot(0.25), 9, 30, 9, 4, 1 << 9),
    LineMask((2,), SquareRoot(0.25), 9, 12, 9, 4, 1 << 9, 2),
    LineMask((2,), InverseSquareRoot(1.0), 9, 30, 9, 4, 1 << 9),
    ChoiceNoise((5,), 0.0, 16),
    ChoiceNoise((4, 5), 0.5, 16),
    ChoiceNoise((3, 4), 1.0, 32),
    ChoiceNoise((1,), 0.1, 16),
    Permutation((5,)),
    Permutation((2, 3, 4)),
    Exploration((5,), 0.0, 20),
    Exploration((4, 5), 0.5, 16),
    Exploration((2, 3, 4), 1.0, 64),
    Exploration((1,), 0.1, 1),
    Exploration((3, 1), 2.0**-40, 22),
    Gaussian((), 1.0, 20),
    Gaussian((2, 3), 0.0, 20),
    Gaussian((5,), 1.0, 0),
    Gaussian((5,), 1e-9, 20),
    Gaussian((5,), 1e6, 38),
    Gaussian((5,), 1.9, 58),
]


def name(item: Correlation) -> str:
    """For test ids: short, and without the words of a table."""
    rest = [str(value).replace(" ", "") for value in vars(item).values() if isinstance(value, (int, float, tuple))]
    return f"{type(item).__name__}-{'-'.join(rest)}"

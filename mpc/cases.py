"""The operations as a table: inputs, the secure program, the plaintext twin, and what may differ.

Tests, benchmarks and `masked run` read this table, so an operation that is listed is measured, metered, and checked
for correctness, uniform openings and an empty ledger.  It lies below all that read it; it is no part of the library's
face, and a program has no use for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from . import ops
from .curves import Table
from .ring import FRACTION_BITS as F
from .rounds import Rounds, together
from .session import Session
from .share import Share


class Draws(Protocol):
    """What makes inputs: a plaintext generator that the caller brings, for this room has none but that of masks."""

    def uniform(self, low: float, high: float, size: tuple[int, ...], /) -> np.ndarray: ...
    def integers(self, low: int, high: int, size: tuple[int, ...], /) -> np.ndarray: ...
    def normal(self, mean: float, deviation: float, size: tuple[int, ...], /) -> np.ndarray: ...
    def permutation(self, count: int, /) -> np.ndarray: ...


Inputs = Callable[[Draws], tuple[np.ndarray, ...]]
Program = Callable[..., Rounds[Share]]
Plain = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Case:
    """One operation at one size.

    size: how many results, or arms, or the side of a matrix.  scales: fraction bits of each input.
    tolerance: the largest error allowed against `plain` of the inputs as encoded; None where the result is random.
    rounds: what the docstring declares.  peer: the name of the same work in the baseline.
    """

    op: str
    size: int
    inputs: Inputs
    program: Program
    plain: Plain
    rounds: int
    tolerance: float | None
    scales: tuple[int, ...] = (F,)
    peer: str = ""

    def share(self, session: Session, values: tuple[np.ndarray, ...]) -> list[Share]:
        """The inputs, owned by the parties in turn."""
        return [
            session.share(value, owner=i % session.parties, shape=value.shape, scale=scale)
            for i, (value, scale) in enumerate(zip(values, self.scales, strict=True))
        ]

    @property
    def name(self) -> str:
        """op/size."""
        return f"{self.op}/{self.size}"


def _uniform(low: float, high: float, *shapes: tuple[int, ...]) -> Inputs:
    return lambda rng: tuple(on_grid(rng.uniform(low, high, shape)) for shape in shapes)


def _fine(low: float, high: float, shape: tuple[int, ...]) -> Inputs:
    return lambda rng: (on_grid(rng.uniform(low, high, shape), 2 * F),)


def on_grid(values: np.ndarray, scale: int = F) -> np.ndarray:
    """Values that fixed point holds exactly, so that an error is the operation's own."""
    return np.rint(values * 2.0**scale) / 2.0**scale


def _sizes(low: float, high: float, shape: tuple[int, ...], scale: int) -> Inputs:
    """As many small numbers as large ones."""

    def drawn(rng: Draws) -> tuple[np.ndarray, ...]:
        return (on_grid(np.exp(rng.uniform(np.log(low), np.log(high), shape)), scale),)

    return drawn


def _one_hot(rows: int, arms: int) -> Inputs:
    def distinct(rng: Draws) -> tuple[np.ndarray, ...]:
        steps = np.array([rng.permutation(arms) for _ in range(rows)])
        return (steps * 2.0**-F,) if rows > 1 else (steps[0] * 2.0**-F,)

    return distinct


def _definite(side: int) -> Inputs:
    def matrix(rng: Draws) -> tuple[np.ndarray, ...]:
        half = rng.normal(0.0, 1.0, (side, side)) / np.sqrt(side)
        return (on_grid(half @ half.T + np.eye(side)),)

    return matrix


_SQUARES = Table(np.arange(256, dtype=np.uint64) ** 2)


def _round_trip(session: Session, x: Share) -> Rounds[Share]:
    bits = yield from ops.to_binary(session, x)
    return (yield from ops.to_arithmetic(session, bits))


def _binary_sum(session: Session, x: Share, y: Share) -> Rounds[Share]:
    left, right = yield from together(ops.to_binary(session, x), ops.to_binary(session, y))
    total = yield from ops.add_binary(session, left, right)
    return (yield from ops.to_arithmetic(session, total))


def _int_inputs(low: int, high: int, *shapes: tuple[int, ...]) -> Inputs:
    return lambda rng: tuple(rng.integers(low, high, shape) for shape in shapes)


def argmax_case(arms: int) -> Case:
    """Argmax over all pairs, neighbours one unit in the last place apart."""
    return Case("argmax", arms, _one_hot(1, arms), ops.argmax, _best_arm, 4, 0.0, peer="argmax")


def cases(*, quick: bool = False) -> list[Case]:
    """The table; quick: an eighth of the elements."""
    n, r = (125, 16) if quick else (1000, 100)
    side = 16 if quick else 64
    few, many = (10, 32) if quick else (10, 100)
    return [
        Case("product", n, _uniform(-6, 6, (n,), (n,)), ops.product, np.multiply, 1, 0.0, (F, F), "product"),
        Case(
            "product-truncate", n, _uniform(-6, 6, (n,), (n,)), _product_truncated, np.multiply, 2, 2.0**-F, (F, F),
            "product",
        ),
        Case("square", n, _uniform(-6, 6, (n,)), ops.square, np.square, 1, 0.0, peer="square"),
        Case("square-truncate", n, _uniform(-6, 6, (n,)), _square_truncated, np.square, 2, 2.0**-F, peer="square"),
        Case("outer-square", 20, _uniform(-6, 6, (20,)), ops.outer_square, _upper_outer, 1, 0.0),
        Case(
            "matmul", side, _uniform(-1, 1, (side, side), (side, side)), ops.matmul, np.matmul, 1, 0.0, (F, F), "matmul"
        ),
        Case(
            "matmul-truncate", side, _uniform(-1, 1, (side, side), (side, side)), _matmul_truncated, np.matmul, 2,
            2.0**-F, (F, F), "matmul",
        ),
        Case("truncate", n, _uniform(-6, 6, (n,)), _truncate_by_f, lambda x: x, 1, 2.0**-F, (2 * F,), "truncate"),
        Case("round-off", n, _fine(-6, 6, (n,)), _round_off_by_f, _nearest, 4, 0.0, (2 * F,)),
        Case(
            "truncate-published", n, _uniform(-6, 6, (n,)), _truncate_published, lambda x: x, 1, 5 * 2.0**-F, (2 * F,)
        ),
        Case("wraps", n, _uniform(-6, 6, (n,)), ops.wraps, np.zeros_like, 1, None),
        Case("lookup", n, _int_inputs(0, 256, (n,)), _lookup_squares, np.square, 1, 0.0, (0,)),
        Case("comparison", n, _uniform(-6, 6, (n,)), ops.sign_by_tables, _negative, 3, 0.0, peer="comparison"),
        Case("comparison-strings", n, _uniform(-6, 6, (n,)), ops.sign_by_strings, _negative, 2, 0.0, peer="comparison"),
        Case("comparison-circuit", n, _uniform(-6, 6, (n,)), ops.sign_by_circuit, _negative, 8, 0.0, peer="comparison"),
        Case("equality", n, _int_inputs(-2, 3, (n,)), ops.is_zero, lambda x: x == 0, 2, 0.0, (0,)),
        Case("binary-adder", r, _int_inputs(-(2**40), 2**40, (r,), (r,)), _binary_sum, np.add, 15, 0.0, (0, 0)),
        Case("binary-round-trip", r, _int_inputs(-(2**40), 2**40, (r,)), _round_trip, lambda x: x, 8, 0.0, (0,)),
        argmax_case(few),
        argmax_case(many),
        Case("argmax-tournament", many, _one_hot(1, many), ops.argmax_tournament, _best_arm, 10, 0.0, peer="argmax"),
        Case(
            "argmax-published", few, _one_hot(1, few), ops.argmax_published, _best_arm, 22, 0.0, peer="argmax-pairwise"
        ),
        Case("reciprocal-table", r, _uniform(1, 2, (r,)), _reciprocal, np.reciprocal, 1, 2e-6, peer="reciprocal"),
        Case("reciprocal-newton", r, _uniform(1, 20, (r,)), _reciprocal_20, np.reciprocal, 6, 2e-5, peer="reciprocal"),
        Case(
            "reciprocal-published", r, _uniform(1, 20, (r,)), ops.reciprocal_published, np.reciprocal, 58, 2e-5,
            peer="reciprocal",
        ),
        Case("sqrt", r, _uniform(2.0**-F, 10, (r,)), _root, np.sqrt, 5, 1e-3, peer="sqrt"),
        Case("sqrt-newton", r, _uniform(0.5, 10, (r,)), _root_newton, np.sqrt, 16, 1e-4, peer="sqrt"),
        Case("sqrt-helba", r, _uniform(0.5, 10, (r,)), _root_helba, np.sqrt, 42, 1e-4, peer="sqrt"),
        Case("sqrt-levels", r, _sizes(2.0**-20, 10.0, (r,), 40), _root_levelled, np.sqrt, 8, 4e-7, (40,), peer="sqrt"),
        Case("exp", r, _uniform(-1, 1, (r,)), ops.exponential, np.exp, 17, 1e-2, peer="exp"),
        Case("exp-table", r, _uniform(-1, 1, (r,)), _exp_table, np.exp, 1, 1e-5, peer="exp"),
        Case("inverse", 8, _definite(8), _inverse, np.linalg.inv, 11, 1e-5),
        Case("draw", 10, _int_inputs(0, 1000, (10,)), _draw, lambda w: w, 4, None, (0,)),
        Case("epsilon-greedy", 10, _one_hot(1, 10), _explore, _best_arm, 4, None),
    ]  # fmt: skip


def paper_cases(arms: int = 100) -> list[Case]:
    """The operations of Table 1 of Hannun et al., each on so many numbers, ours and as published."""
    pair, n = _uniform(-6, 6, (arms,), (arms,)), arms
    return [
        Case("addition", n, pair, _sum, np.add, 0, 0.0, (F, F)),
        Case("multiplication", n, pair, _product_truncated, np.multiply, 2, 2.0**-F, (F, F)),
        Case("multiplication-published", n, pair, _product_published, np.multiply, 2, 2.0 ** (2 - F), (F, F)),
        Case("reciprocal", n, _uniform(1, 2, (n,)), _reciprocal, np.reciprocal, 1, 2e-6),
        Case("reciprocal-published", n, _uniform(1, 2, (n,)), _reciprocal_in_seven, np.reciprocal, 46, 2e-5),
        argmax_case(n),
        Case("argmax-published", n, _one_hot(1, n), ops.argmax_published, _best_arm, _published_rounds(n), 0.0),
    ]


def _published_rounds(arms: int) -> int:
    """Two comparisons by circuits, the second of numbers up to the arms, two product trees, and a product between."""
    second = 2 + max(3, ((arms + 1).bit_length() + 1).bit_length())
    return 8 + second + 2 * (arms - 2).bit_length() + 1


def _sum(session: Session, x: Share, y: Share) -> Rounds[Share]:
    return x + y
    yield


def _product_published(session: Session, x: Share, y: Share) -> Rounds[Share]:
    z = yield from ops.product(session, x, y)
    return (yield from ops.truncate_published(session, z, F))


def _reciprocal_in_seven(session: Session, x: Share) -> Rounds[Share]:
    return ops.reciprocal_published(session, x, iterations=7)


def _product_truncated(session: Session, x: Share, y: Share) -> Rounds[Share]:
    z = yield from ops.product(session, x, y)
    return (yield from ops.truncate(session, z, F))


def _square_truncated(session: Session, x: Share) -> Rounds[Share]:
    z = yield from ops.square(session, x)
    return (yield from ops.truncate(session, z, F))


def _matmul_truncated(session: Session, x: Share, y: Share) -> Rounds[Share]:
    z = yield from ops.matmul(session, x, y)
    return (yield from ops.truncate(session, z, F))


def _truncate_by_f(session: Session, x: Share) -> Rounds[Share]:
    return ops.truncate(session, x, F)


def _round_off_by_f(session: Session, x: Share) -> Rounds[Share]:
    return ops.round_off(session, x, F)


def _truncate_published(session: Session, x: Share) -> Rounds[Share]:
    return ops.truncate_published(session, x, F)


def _lookup_squares(session: Session, x: Share) -> Rounds[Share]:
    return ops.lookup(session, x, _SQUARES)


def _reciprocal(session: Session, x: Share) -> Rounds[Share]:
    return ops.reciprocal(session, x, upper=2.0)


def _reciprocal_20(session: Session, x: Share) -> Rounds[Share]:
    return ops.reciprocal_newton(session, x, upper=20.0)


def _root(session: Session, x: Share) -> Rounds[Share]:
    return ops.square_root(session, x, upper=10.0)


def _root_newton(session: Session, x: Share) -> Rounds[Share]:
    return ops.square_root_newton(session, x, upper=10.0, lower=0.5)


def _root_helba(session: Session, x: Share) -> Rounds[Share]:
    return ops.square_root_helba(session, x, upper=10.0)


def _root_levelled(session: Session, x: Share) -> Rounds[Share]:
    return ops.square_root_levelled(session, x, ops.Levels.over(2.0**-21, 10.0, 40))


def _exp_table(session: Session, x: Share) -> Rounds[Share]:
    return ops.exponential_table(session, x, lower=-1.0, upper=1.0, segments=10)


def _inverse(session: Session, w: Share) -> Rounds[Share]:
    return ops.inverse(session, w, least=1.0, bound=8.0)


def _draw(session: Session, weights: Share) -> Rounds[Share]:
    return ops.draw(session, weights)


def _explore(session: Session, scores: Share) -> Rounds[Share]:
    return ops.argmax(session, scores, score_bits=32, eps=0.1)


def _best_arm(scores: np.ndarray) -> np.ndarray:
    """One-hot of the largest score, whose rows have no ties."""
    return (scores == scores.max(axis=-1, keepdims=True)).astype(np.int64)


def _upper_outer(x: np.ndarray) -> np.ndarray:
    """x x' row after row, without what lies below the diagonal."""
    return np.outer(x, x)[np.triu_indices(x.size)]


def _nearest(x: np.ndarray) -> np.ndarray:
    """At F fraction bits, ties upwards."""
    return np.floor(x * 2.0**F + 0.5) * 2.0**-F


def _negative(x: np.ndarray) -> np.ndarray:
    return x < 0

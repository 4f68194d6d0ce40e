"""Protocols on shares.  Each is a generator: one yield, one round."""

from .argmax import Keys, argmax, argmax_published, argmax_tournament, max_value, unique_keys
from .arrange import bordered, concat, pack, replaced, scatter, stack, unpack
from .binary import add_binary, conjunction, to_arithmetic, to_binary
from .draw import draw
from .functions import (
    exponential,
    exponential_table,
    newton_reciprocal,
    reciprocal,
    reciprocal_newton,
    reciprocal_published,
    square_root,
    square_root_helba,
    square_root_newton,
)
from .inverse import inverse, inverse_steps
from .levels import Levels, square_root_levelled
from .lookup import Lines, curve, lookup
from .products import bilinear, einsum, matmul, outer, outer_square, product, quadratic, square
from .sign import (
    Compare,
    bit_to_arithmetic,
    equal,
    is_negative,
    is_zero,
    less,
    lift,
    sign_by_circuit,
    sign_by_strings,
    sign_by_tables,
)
from .truncate import round_off, rounding_items, truncate, truncate_published, truncate_to, wraps

__all__ = [
    "Compare", "Keys", "Levels", "Lines", "add_binary", "argmax", "argmax_published", "argmax_tournament", "bilinear",
    "bit_to_arithmetic", "bordered", "concat", "conjunction", "curve", "draw", "einsum", "equal", "exponential",
    "exponential_table", "inverse", "inverse_steps", "is_negative", "is_zero", "less", "lift", "lookup", "matmul",
    "max_value", "newton_reciprocal", "outer", "outer_square", "pack", "product", "quadratic", "reciprocal",
    "reciprocal_newton", "reciprocal_published", "replaced", "round_off", "rounding_items", "scatter",
    "sign_by_circuit", "sign_by_strings", "sign_by_tables", "square", "square_root", "square_root_helba",
    "square_root_levelled", "square_root_newton", "stack", "to_arithmetic", "to_binary", "truncate",
    "truncate_published", "truncate_to", "unique_keys", "unpack", "wraps",
]  # fmt: skip

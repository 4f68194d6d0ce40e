"""What each docstring of mpc.ops says under "Cost:", as a table; test_costs.py compares it with the meter.

    rounds                as stated
    peer bytes            payload a party sends to each peer in Opens
    dealt bytes           what party 0 is handed: the dealt fields of each item, each padded to 8 bytes

n is the number of elements; it is a multiple of 8 here, so that no padding blurs a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

from mpc import Session, ops
from mpc.bilinear import COMMUTING, GRAM, TRIANGLE, Bilinear
from mpc.chunks import cut
from mpc.curves import Reciprocal, indicator
from mpc.ops import Lines
from mpc.strings import strings

Shape = tuple[int, ...]
N = 40  # elements


@dataclass(frozen=True)
class Cost:
    """An operation on inputs of these shapes, and what it should cost."""

    name: str
    run: Callable[..., Any]
    shapes: tuple[Shape, ...]
    rounds: int
    peer: int
    dealt: int
    width: int = 0  # of binary inputs; 0: arithmetic


def word_bytes(bits: int) -> int:
    """The narrowest word."""
    return 1 if bits <= 8 else 2 if bits <= 16 else 4 if bits <= 32 else 8


def padded(size: int) -> int:
    """Bytes of a field as an item holds it."""
    return -(-size // 8) * 8


def table_bytes(width: int, ring: int, n: int = 1) -> list[int]:
    """Each dealt field of n comparisons by tables.  The groups are the cut's, what they cost is not."""
    lowest, *upper = groups = cut(width, ring).groups
    chunks = ceil((width - 1) / 4)
    assert sum(groups) == chunks
    bits = 1 + 2**lowest - 1 - lowest + sum(3 * 2 ** (k - 1) - 2 - k for k in upper)
    words = [8] * (bits // 64) + [word_bytes(bits % 64)] * (bits % 64 > 0)
    return [n * size for size in (2 * chunks, *words, (3 * 2 ** (len(groups) - 1) - 1) * ring // 8)]


def tables(width: int, ring: int = 64) -> tuple[int, int, int]:
    """sign_by_tables: one element."""
    count, chunks = len(cut(width, ring).groups), ceil((width - 1) / 4)
    peer = word_bytes(width) + word_bytes(2 * chunks - 1) + word_bytes(2 * count - 1)
    return 3, peer, sum(table_bytes(width, ring))


def by_strings(width: int, ring: int) -> tuple[int, int, int]:
    """sign_by_strings: one element.  The chunks are the cut's, what they cost is not."""
    chunks = strings(width, ring).chunks
    count = len(chunks)
    octets = sum(max(1, 2**bits // 8) for bits in chunks)
    return 2, word_bytes(width) + word_bytes(2 * count - 1), octets + (3 * 2 ** (count - 1) - 1) * ring // 8


def matched(width: int, n: int) -> tuple[int, int]:
    """n comparisons of an argmax, mod 2^8: peer and dealt."""
    return n * tables(width, 8)[1], sum(map(padded, table_bytes(width, 8, n)))


def rounding(bits: int) -> tuple[int, int, int]:
    """round_off: one element, truncated and then compared at bits + 1."""
    rounds, peer, dealt = tables(bits + 1)
    return 1 + rounds, 8 + peer, (12 if bits <= 32 else 16) + dealt


def circuit(width: int) -> tuple[int, int, int]:
    """sign_by_circuit: one element."""
    levels = max(3, ceil(log2(width - 1)))
    halves = [word_bytes(2**level) for level in reversed(range(levels))]  # the words of each level
    peer = word_bytes(width) + sum(3 * half for half in halves[:-1]) + 2 * halves[-1] + 1
    dealt = word_bytes(2**levels) + 1 + sum(2 * half for half in halves[:-1]) + halves[-1] + 8
    return 2 + levels, peer, dealt


def zero_test(width: int) -> tuple[int, int, int]:
    """is_zero: one element."""
    return 2, word_bytes(width) + 1, 256 + 8 * 2 ** ceil(width / 8)


def lookups(bits: int) -> tuple[int, int]:
    """lookup: one element, peer and dealt."""
    return word_bytes(bits), 8 * 2**bits


def argmax(arms: int, score_bits: int = 44, eps: float = 0.0) -> tuple[int, int, int]:
    """A (A - 1) / 2 comparisons, A look-ups of ceil(log2 A) bits, the noise."""
    tie = ceil(log2(arms))
    width = score_bits + tie + (2 if eps else 1)
    peer, dealt = matched(width, arms * (arms - 1) // 2)
    look_peer, look_dealt = lookups(tie)
    return 4, peer + arms * look_peer, dealt + arms * (look_dealt + 8)


def tournament(arms: int) -> tuple[int, int, int]:
    """Groups of g = ceil(sqrt A) arms; g divides A here."""
    g = ceil(arms**0.5)
    count, width = arms // g, 44 + ceil(log2(arms)) + 1
    within, among = (matched(width, n) for n in (count * g * (g - 1) // 2, count * (count - 1) // 2))
    inner, outer = lookups(ceil(log2(g))), lookups(ceil(log2(count)))
    peers = within[0] + among[0] + arms * inner[0] + count * outer[0] + 8 * (2 * arms + count + arms)
    return 10, peers, within[1] + among[1] + arms * inner[1] + count * outer[1] + 8 * (2 * arms + arms)


def inverse(side: int, steps: int) -> tuple[int, int, int]:
    """W and then X, M are truncated; X and M opened packed, in the first step M alone, and the last makes no M."""
    words = side * (side + 1) // 2
    products, truncations = 1 + 2 * (steps - 2) + 1, 1 + 2 * (steps - 1) + 1
    opened = 1 + 2 * (steps - 2) + 2 + truncations
    return 1 + 2 * steps, 8 * words * opened, words * (8 * products + 12 * truncations)


def published(arms: int) -> tuple[int, int, int]:
    """Two passes of A (A - 1) comparisons by circuit and a product tree; one product between them."""
    first, second = circuit(45), circuit((arms + 1).bit_length() + 2)
    matches, products = arms * (arms - 1), arms * (2 * arms - 3)
    rounds = first[0] + second[0] + 2 * ceil(log2(arms - 1)) + 1
    peer, dealt = first[1] + second[1], first[2] + second[2]
    return rounds, matches * peer + 16 * products, matches * dealt + 8 * (products + arms)


def scaled(name: str, run: Callable[..., Any], per_element: tuple[int, int, int], **rest: Any) -> Cost:
    rounds, peer, dealt = per_element
    return Cost(name, run, ((N,),), rounds, N * peer, N * dealt, **rest)


def whole(name: str, run: Callable[..., Any], shapes: tuple[Shape, ...], cost: tuple[int, int, int]) -> Cost:
    return Cost(name, run, shapes, *cost)


def then_truncated(s: Session, x: Any, y: Any) -> Any:
    z = yield from ops.product(s, x, y)
    return (yield from ops.truncate(s, z, 20))


QUICK = ops.Compare.STRINGS
LINES = Lines.over(Reciprocal(), 2.0, 20, 9)
CURVE = (1, word_bytes(LINES.bits), 16 * 2**9)
LEVELS = ops.Levels.over(2.0**-20, 10.0, 40)  # 12 of them
TABLE = [
    whole("product", ops.product, ((N,), (N,)), (1, 8 * 2 * N, 8 * N)),
    whole("product, broadcast", ops.product, ((4, 1), (5,)), (1, 8 * 9, 8 * 20)),
    whole("product, truncated", then_truncated, ((N,), (N,)), (2, 8 * 3 * N, (8 + 12) * N)),
    whole("bilinear", lambda s, x, y: ops.bilinear(s, Bilinear("i,ij->"), x, y), ((3,), (3, 8)), (1, 8 * 27, 8)),
    whole("matmul", ops.matmul, ((4, 5), (5, 6)), (1, 8 * 50, 8 * 24)),
    whole("einsum", lambda s, x, y: ops.einsum(s, "ij,j->i", x, y), ((4, 5), (5,)), (1, 8 * 25, 8 * 4)),
    whole("outer_square", ops.outer_square, ((4, 5),), (1, 8 * 20, 8 * 4 * 15)),
    whole("packed", lambda s, x, y: ops.einsum(s, "sym:ij,j->i", x, y), ((20,), (5,)), (1, 8 * 25, 8 * 6)),
    whole("outer", ops.outer, ((4,), (5,)), (1, 8 * 9, 8 * 20)),
    scaled("square", ops.square, (1, 8, 8)),
    scaled("truncate", lambda s, x: ops.truncate(s, x, 20), (1, 8, 12)),
    scaled("truncate_to", lambda s, x: ops.truncate_to(s, x, 0), (1, 8, 12)),
    scaled("newton_reciprocal", lambda s, x: ops.newton_reciprocal(s, x, x, 1), (4, 48, 40)),
    scaled("truncate 33", lambda s, x: ops.truncate(s, x, 33), (1, 8, 16)),
    *(scaled(f"round_off {k}", lambda s, x, k=k: ops.round_off(s, x, k), rounding(k)) for k in (7, 20, 33, 62)),
    scaled("wraps", ops.wraps, (1, 8, 16)),
    scaled("truncate_published", lambda s, x: ops.truncate_published(s, x, 20), (1, 8, 16)),
    *(scaled(f"lookup {k}", lambda s, x, k=k: ops.lookup(s, x, indicator(1, k)), (1, *lookups(k))) for k in (1, 8, 9)),
    scaled("curve", lambda s, x: ops.curve(s, x, LINES), CURVE),
    *(
        scaled(f"tables {w} mod 2^{r}", lambda s, x, w=w, r=r: ops.sign_by_tables(s, x, width=w, ring=r), tables(w, r))
        for w in (2, 8, 33, 34, 51, 64) for r in (8, 16, 64)
    ),
    scaled("comparison, 64 bits, mod 2^8", lambda s, x: ops.less(s, x, x, ring=8), (3, 13, 61)),
    scaled("comparison, 64 bits, mod 2^64", lambda s, x: ops.less(s, x, x), (3, 13, 138)),
    whole("argmax 10", lambda s, x: ops.argmax(s, x, eps=0.1), ((10,),), (4, 595, 3392)),
    whole("argmax 100", ops.argmax, ((100,),), (4, 64450, 325960)),
    *(
        scaled(f"strings {w}, {r}", lambda s, x, w=w, r=r: ops.sign_by_strings(s, x, width=w, ring=r), by_strings(w, r))
        for w in (2, 8, 33, 51, 64) for r in (8, 64)
    ),
    scaled("strings, 64 bits, mod 2^8", lambda s, x: ops.sign_by_strings(s, x, ring=8), (2, 10, 623)),
    whole("argmax 10 in 3", lambda s, x: ops.argmax(s, x, eps=0.1, how=QUICK), ((10,),), (3, 460, 15000)),
    scaled("lift", lambda s, x: ops.lift(s, x.integers().mod(8)), (1, 1, 8)),
    *(
        scaled(f"circuit {w}", lambda s, x, w=w: ops.sign_by_circuit(s, x, width=w), circuit(w))
        for w in (2, 9, 10, 33, 34, 64)
    ),
    scaled("less", lambda s, x: ops.less(s, x, x), tables(64)),
    scaled("is_negative", lambda s, x: ops.is_negative(s, x, how=ops.Compare.CIRCUIT), circuit(64)),
    *(
        scaled(f"is_zero {w}", lambda s, x, w=w: ops.is_zero(s, x, width=w), zero_test(w))
        for w in (1, 8, 16, 33, 64)
    ),
    scaled("equal", lambda s, x: ops.equal(s, x, x), zero_test(64)),
    Cost("conjunction", ops.conjunction, ((8, 1), (1, 16)), 1, 2 * 24, 2 * 128, width=13),
    Cost("add_binary", ops.add_binary, ((N,), (N,)), 7, 8 * N * (2 + 5 * 3 + 2), 8 * N * (1 + 5 * 2 + 1), width=64),
    Cost("add_binary 13", ops.add_binary, ((N,), (N,)), 5, 2 * N * (2 + 3 * 3 + 2), 2 * N * (1 + 3 * 2 + 1), width=13),
    scaled("to_binary", ops.to_binary, (7, 8 + 5 * 24 + 16, 8 + 5 * 16 + 8)),
    scaled("to_arithmetic", ops.to_arithmetic, (1, 2, 8 * 13), width=13),
    scaled("bit_to_arithmetic", ops.bit_to_arithmetic, (1, 1, 8), width=1),
    *(whole(f"argmax {a}", ops.argmax, ((a,),), argmax(a)) for a in (8, 16, 64)),
    whole("argmax, exploring", lambda s, x: ops.argmax(s, x, score_bits=32, eps=0.1), ((8,),), argmax(8, 32, 0.1)),
    *(whole(f"tournament {a}", ops.argmax_tournament, ((a,),), tournament(a)) for a in (16, 64)),
    *(whole(f"published {a}", ops.argmax_published, ((a,),), published(a)) for a in (8, 16)),
    scaled("reciprocal", lambda s, x: ops.reciprocal(s, x, upper=2.0, segments=9), CURVE),
    scaled("exponential_table", lambda s, x: ops.exponential_table(s, x, lower=0.0, upper=1.0), CURVE),
    scaled(
        "reciprocal_newton", lambda s, x: ops.reciprocal_newton(s, x, upper=2.0),
        (2 + 4, 4 + 8 + 8 * 6, 16 * 512 + 12 + 2 * (8 + 12)),
    ),
    scaled("exponential", ops.exponential, (17, 8 * 17, 8 * 8 + 12 * 9)),
    scaled("reciprocal_published", ops.reciprocal_published, (58, 8 * (18 + 10 * 6), 64 + 12 * 10 + 10 * (16 + 24))),
    scaled(
        "square_root", lambda s, x: ops.square_root(s, x, upper=10.0),
        (5, 4 + 4 + 2 + 2 * tables(25)[1] + 2 * 2 * 8 + 8, 3 * 16 * 512 + 2 * tables(25)[2] + 2 * 8 + 12),
    ),
    scaled(
        "square_root_newton", lambda s, x: ops.square_root_newton(s, x, upper=10.0, lower=0.5),
        (16, 4 + 8 + 2 * 8 * 8 + 3 * 8, 16 * 512 + 12 + 2 * (24 + 36) + 20),
    ),
    scaled(
        "square_root_helba", lambda s, x: ops.square_root_helba(s, x, upper=10.0),
        (10 * 4 + 2, 8 * (10 * 8 + 2), 10 * (8 + 8 + 12 + 12 + 8 + 12) + 2 * 12),
    ),
    whole(
        "square_root_levelled", lambda s, x: ops.square_root_levelled(s, x.rescale(40), LEVELS), ((N,),),
        (8, N * (11 * tables(44)[1] + 4 * 8 + 8 + 4 + 8), N * (11 * tables(44)[2] + 2 * 8 + 2 * 12 + 16 * 2**11)),
    ),
    *(
        whole(f"inverse to {c}", lambda s, w, c=c: ops.inverse(s, w, least=1.0, bound=c), ((4, 4),), inverse(4, k))
        for c, k in ((8.0, 5), (200.0, 7), (1.0, 2))
    ),
    whole("gram", lambda s, x, y: ops.bilinear(s, GRAM, x, y), ((7, 3), (7, 3)), (1, 8 * 42, 8 * 28)),
    whole("own gram", lambda s, x: ops.quadratic(s, GRAM, x), ((7, 3),), (1, 8 * 21, 8 * 28)),
    whole("squares of packed", lambda s, x: ops.quadratic(s, COMMUTING, x), ((2, 10),), (1, 8 * 20, 8 * 20)),
    whole("border", lambda s, x, y: ops.bilinear(s, TRIANGLE, x, y), ((5,), (6,)), (1, 8 * 11, 8 * 20)),
    whole(
        "draw", ops.draw, ((5, 9),),
        (4, 5 * (16 + 8 * tables(61)[1]), 5 * (8 + 8 + 8 * tables(61)[2])),
    ),
    whole("max_value", lambda s, x: ops.max_value(s, x, x), ((4, 5),), (1, 8 * 40, 8 * 4)),
]  # fmt: skip

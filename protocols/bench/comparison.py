"""Comparisons by tables and by strings beside integers: every width, ends, ties, powers of 2, bits above the width.

    scripts/comparison_count --values 1000000 --parties 2 3 5

Values are for each number of parties and either way, spread over widths 2 to 64 and results mod 2^8, 2^16 and 2^64.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np

from mpc import Reveal, Rounds, Session, ops
from mpc.share import Share
from offline import InsecureSeededDealer

WIDTHS = range(2, 65)
RINGS = (8, 16, 64)
WAYS = {"tables": ops.sign_by_tables, "strings": ops.sign_by_strings}
COLUMNS = "{:>7}  {:>7}  {:>11}  {:>9}  {:>6}  {:>6}"


def differences(width: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """A third uniform, a third of every size, and a third among 0, the ends, powers of 2, and their neighbours."""
    top = (1 << (width - 1)) - 1
    powers = np.array([1 << k for k in range(width - 1)], np.int64)
    edges = np.concatenate([powers, -powers, powers - 1, 1 - powers, [0, top, -top, top - 1, 1 - top]])
    uniform = rng.integers(-top, top, count, endpoint=True)
    sized = uniform >> rng.integers(0, width, count)
    kind = rng.integers(0, 3, count)
    return np.choose(kind, [uniform, sized, edges[rng.integers(0, edges.size, count)]])


def wrong(session: Session, way: str, d: np.ndarray, width: int, ring: int, rng: np.random.Generator) -> int:
    """How many comparisons of one width and ring differ from integers'."""
    words = d.view(np.uint64)
    if width < 64:
        words = words + (rng.integers(0, 1 << (64 - width), d.size, np.uint64) << np.uint64(width))
    zero = session.share(np.zeros(d.size), scale=0)
    shared = Share(session, session.plus(zero.words, words), 0)

    def revealed() -> Rounds[np.ndarray]:
        return (yield Reveal((yield from WAYS[way](session, shared, width=width, ring=ring))))

    return int((session.run(revealed()) != (d < 0)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/comparison_count", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--values", type=int, default=1_000_000, help="comparisons for each N and way (1,000,000)")
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3, 5], help="numbers of parties (2 3 5)")
    parser.add_argument("--seed", type=int, default=1, help="of values and masks (1)")
    options = parser.parse_args()
    if options.values < 1 or min(options.parties) < 2:
        parser.error("at least 1 value, and at least 2 parties")
    each = -(-options.values // (len(WIDTHS) * len(RINGS)))
    print(COLUMNS.format("parties", "by", "comparisons", "negative", "ties", "wrong"), flush=True)
    total = 0
    for parties, way in itertools.product(options.parties, WAYS):
        session = Session.simulate(parties, InsecureSeededDealer(parties, options.seed))
        rng = np.random.default_rng(options.seed)
        count = negative = ties = errors = 0
        for width in WIDTHS:
            for ring in RINGS:
                d = differences(width, each, rng)
                count, negative, ties = count + d.size, negative + int((d < 0).sum()), ties + int((d == 0).sum())
                errors += wrong(session, way, d, width, ring, rng)
        print(COLUMNS.format(parties, way, f"{count:,}", f"{negative / count:.3f}", ties, errors), flush=True)
        total += errors
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()

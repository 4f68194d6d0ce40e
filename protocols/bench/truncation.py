"""Count what truncation by 2^20 gets wrong, ours and the published one, on uniform words |x| < 2^62.

    scripts/truncation_count --values 10000000 --parties 2 3 5

An error beyond 2^20 units in the last place is catastrophic.  The published protocol is expected to make
sum |x| / 2^64 of them: words as large as these are its worst case, and at |x| < 2^40 it fails once in 2^25.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np

from mpc import Reveal, Rounds, Session, ops
from mpc.share import Share
from offline import InsecureSeededDealer

BITS = 20
LARGEST = (1 << 62) - 1
COLUMNS = "{:>7}  {:>11}  {:>9}  {:>9}  {:>12}  {:>15}  {:>9}"


class Count(NamedTuple):
    """One chunk: ours (largest error, sum, sum of squares, catastrophes), published catastrophes and expected ones."""

    largest: float
    total: float
    squares: float
    ours: int
    published: int
    expected: float


def opened(session: Session, program: Rounds[Share]) -> np.ndarray:
    def revealed() -> Rounds[np.ndarray]:
        return (yield Reveal((yield from program)))

    return session.run(revealed())


def count(session: Session, x: np.ndarray) -> Count:
    shared = session.share(x, scale=0)
    ulp = ((opened(session, ops.truncate(session, shared, BITS)) << BITS) - x) / 2.0**BITS  # exact in int64
    published = np.abs(opened(session, ops.truncate_published(session, shared, BITS)) - x / 2.0**BITS) > 2.0**20
    ours = int((np.abs(ulp) > 2.0**20).sum())
    expected = float((np.abs(x) / 2.0**64).sum())
    return Count(np.abs(ulp).max(), ulp.sum(), (ulp**2).sum(), ours, int(published.sum()), expected)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/truncation_count", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--values", type=int, default=1_000_000, help="how many words (1,000,000)")
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3, 5], help="numbers of parties (2 3 5)")
    parser.add_argument("--chunk", type=int, default=250_000, help="words at a time (250,000)")
    parser.add_argument("--seed", type=int, default=1, help="of words and masks (1)")
    options = parser.parse_args()
    if options.values < 1 or options.chunk < 1 or min(options.parties) < 2:
        parser.error("at least 1 value, chunks of at least 1, and at least 2 parties")
    header = ("parties", "values", "max ulp", "mean/s.e.", "catastrophic", "published: cat.", "expected")
    print(COLUMNS.format(*header), flush=True)
    for parties in options.parties:
        session = Session.simulate(parties, InsecureSeededDealer(parties, options.seed))
        rng = np.random.default_rng(options.seed)
        counts: list[Count] = []
        for done in range(0, options.values, options.chunk):
            x = rng.integers(-LARGEST, LARGEST, min(options.chunk, options.values - done), endpoint=True)
            counts.append(count(session, x))
            print(f"\r{parties} parties: {done + x.size:,} of {options.values:,}", end="", file=sys.stderr, flush=True)
        print("\r", " " * 60, end="\r", file=sys.stderr, flush=True)
        largest, (_, *sums) = max(c.largest for c in counts), map(sum, zip(*counts, strict=True))
        total, squares, ours, published, expected = sums
        ratio = total / np.sqrt(squares)
        row = (parties, options.values, f"{largest:.6f}", f"{ratio:+.2f}", ours, published, f"{expected:.0f}")
        print(COLUMNS.format(*row), flush=True)


if __name__ == "__main__":
    main()

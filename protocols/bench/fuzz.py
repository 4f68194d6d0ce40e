"""`scripts/fuzz`: what a peer may send in place of a message, a million times: declared errors alone, and no memory."""

from __future__ import annotations

import argparse
import json
import resource

from mpc.net.fuzzing import fuzz

from ..run.exits import exit_codes, say


def main() -> None:
    """Fuzz, and print how it ended."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="frames (1,000,000)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    options = parser.parse_args()
    with exit_codes():
        fuzz(1000, options.seed + 1)
        before = _memory()
        ends = fuzz(options.count, options.seed, lambda at: say(f"{at:,} frames") if at % 100_000 == 0 else None)
        found = {"count": options.count, "seed": options.seed, "ends": dict(ends), "more_memory": _memory() - before}
        print(json.dumps(found, indent=1))


def _memory() -> int:
    """Bytes at most, so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

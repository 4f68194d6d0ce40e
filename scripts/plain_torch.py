#!/usr/bin/env python3
"""Times the operations of Table 1 of Hannun et al. in plain PyTorch, one thread: median microseconds, as JSON."""

import argparse
import json
import statistics
import time

import torch


def main() -> None:
    """Parse, time, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="numbers of a vector, arms of an argmax (100)")
    parser.add_argument("--repeats", type=int, default=2001, help="of each operation, after a tenth to warm up (2001)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x, y = (12 * torch.rand(options.size) - 6 for _ in range(2))
    positive = 1 + torch.rand(options.size)
    timed = {
        "addition": lambda: x + y,
        "multiplication": lambda: x * y,
        "reciprocal": lambda: 1 / positive,
        "argmax": x.argmax,
    }
    rows = []
    for op, work in timed.items():
        spent = []
        for _ in range(options.repeats + options.repeats // 10):
            started = time.perf_counter_ns()
            work()
            spent.append(time.perf_counter_ns() - started)
        microseconds = statistics.median(spent[options.repeats // 10 :]) / 1000
        rows.append({"op": op, "size": options.size, "microseconds": microseconds})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

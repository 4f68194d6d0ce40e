"""Labelled rows as the log of somebody who gave each row a uniform arm: the reward is 1 where that is its class.

    python examples/as_log.py shuttle.npz shuttle.csv --rows 5000

A .npz whose first array has a row for each example, and its class in the last column or in an array `label`; the log is
CSV, with columns x0, x1, ..., arm, reward and propensity, as `masked evaluate LOG` finds them by itself.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np


def main() -> None:
    """Read, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows_of", metavar="FILE.npz", type=Path)
    parser.add_argument("log", metavar="LOG.csv", type=Path)
    parser.add_argument("--rows", type=int, default=5000, help="how many, drawn at random (5000)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows and of the arms (1)")
    given = parser.parse_args()
    try:
        with np.load(given.rows_of, allow_pickle=False) as arrays:
            table = arrays[arrays.files[0]]
            if "label" in arrays.files:
                table = np.column_stack([table, arrays["label"]])
    except (OSError, ValueError, IndexError) as error:
        parser.error(f"{given.rows_of} is no .npz of labelled rows: {error}")
    if table.ndim != 2 or table.shape[1] < 2 or not 1 <= given.rows <= len(table):
        parser.error(f"{given.rows} rows of features and a class are wanted, {given.rows_of} has shape {table.shape}")
    rng = np.random.default_rng(given.seed)
    rows = table[rng.permutation(len(table))[: given.rows]]
    classes = np.unique(table[:, -1])
    arms = rng.choice(classes, len(rows))
    with given.log.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(f"x{at}" for at in range(table.shape[1] - 1)), "arm", "reward", "propensity"])
        for row, arm in zip(rows, arms, strict=True):
            writer.writerow([*row[:-1].tolist(), f"type {arm}", int(arm == row[-1]), 1.0 / len(classes)])


if __name__ == "__main__":
    main()

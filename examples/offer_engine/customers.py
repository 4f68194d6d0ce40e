"""The customers of the example: what the shop and the bank know of each, and what each does with an offer.

customers.py make DIR         DIR/shop/customers.csv and DIR/bank/customers.csv, a line for each customer
customers.py be DIR FILE      reads the offers that the till shows on stdin; payments with an offer go to FILE, when the
                              customer makes them: some customers later, in any order, or a month late, when it is void
customers.py report DIR ...   how many offers were used, beside offers by chance; ...: the folder of the puller's result
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

OFFERS = ("coffee", "fuel", "hotel", "instalments")
COLUMNS = {"shop": ("basket", "visits", "fresh", "toys"), "bank": ("income", "savings", "travel")}
CUSTOMERS, LATEST = 240, 19  # an offer is used at most so many customers later
_LIKES = np.array([
    #  basket visits fresh  toys  income savings travel
    [-0.35,  0.65,  0.40, -0.20, -0.15,  0.00,  0.10],
    [ 0.20,  0.10, -0.35,  0.15,  0.30, -0.25,  0.25],
    [ 0.05, -0.30,  0.10, -0.35,  0.35,  0.20,  0.60],
    [ 0.45, -0.15, -0.20,  0.50, -0.30, -0.55, -0.10],
])  # fmt: skip


def make(folder: Path) -> None:
    """Both know a customer by the number of the card; neither file says who it is."""
    rng = np.random.default_rng(16)
    for owner, columns in COLUMNS.items():
        rows = rng.normal(size=(CUSTOMERS, len(columns)))
        rows *= (0.5 + 0.5 * rng.random((CUSTOMERS, 1))) / np.linalg.norm(rows, axis=1, keepdims=True)
        (folder / owner).mkdir(parents=True, exist_ok=True)
        with (folder / owner / "customers.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["card", *columns])
            out.writerows([f"C{at:04}", *row] for at, row in enumerate((np.trunc(rows * 1e4) / 1e4).tolist()))


def read(folder: Path) -> np.ndarray:
    """(customers, features): of the shop and of the bank; nobody has both but the customers."""
    files = (folder / owner / "customers.csv" for owner in COLUMNS)
    return np.hstack([np.loadtxt(file, delimiter=",", skiprows=1, usecols=range(1, 1 + len(c)))
                      for file, c in zip(files, COLUMNS.values())])  # fmt: skip


def uses(customers: np.ndarray) -> np.ndarray:
    """(customers, offers): whether each would pay with each offer within a month."""
    chances = np.clip(0.35 + 0.6 * customers @ _LIKES.T, 0.02, 0.98)
    return np.random.default_rng(7).random(chances.shape) < chances


def payments(shown: Iterable[tuple[int, int]], wanted: np.ndarray, decisions: int) -> Iterator[tuple[int, int]]:
    """(decision, 1 where the offer was used) in the order in which the bank finds out; at the end all that are left."""
    rng, waiting = np.random.default_rng(8), list[tuple[int, int, int]]()
    for decision, offer in shown:
        used = int(wanted[decision, offer])
        waiting.append((decision + (int(rng.integers(LATEST)) if used else LATEST), decision, used))
        over = decision == decisions - 1
        for due in sorted(each for each in waiting if over or each[0] <= decision):
            waiting.remove(due)
            yield due[1:]


def shown(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """What the till was told to show."""
    for line in lines:
        said = json.loads(line)
        yield said["decision"], int(said["values"][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["make", "be", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("more", type=Path, nargs="?", default=Path("puller"))
    parser.add_argument("--steps", type=int, default=CUSTOMERS)
    options = parser.parse_args()
    if options.what == "make":
        make(options.folder)
        return
    wanted = uses(read(options.folder))[: options.steps]
    if options.what == "be":
        with options.more.open("w") as file:
            for decision, used in payments(shown(sys.stdin), wanted, options.steps):
                print(f"{decision},{used}", file=file, flush=True)
        return
    (result,) = (options.more / "runs").glob("*/result.json")
    offers = np.array(json.loads(result.read_text())["learned"]).reshape(-1)
    used, half = wanted[np.arange(len(offers)), offers], len(offers) // 2
    counts = ", ".join(f"{count} x {name}" for name, count in zip(OFFERS, np.bincount(offers, minlength=len(OFFERS))))
    print(counts)
    print(f"of the first half of the offers {used[:half].mean():.3f} were used, of the second {used[half:].mean():.3f}")
    print(f"of offers by chance it would have been {wanted.mean():.3f}")


if __name__ == "__main__":
    main()

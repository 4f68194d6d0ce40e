"""What is outside the computation of the example: features of patients, and what a treatment does to them.

world.py make DIR       each clinic's features.csv below DIR, as they lie beside this file
world.py be             reads treatments on stdin, writes outcomes to stdout, line by line
world.py report DIR     the average outcome, beside that of treatments by chance; DIR: the folder of the ward
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np

from bandits.environments import synthetic_linear

CLINICS, ARMS, DIM, PATIENTS = ("clinic-a", "clinic-b", "clinic-c"), 4, 9, 200
WORLD = synthetic_linear(ARMS, DIM, seed=7).episode(PATIENTS, 7)


def make(folder: Path) -> None:
    """Nobody has these but their clinic, and the world."""
    for clinic, block in zip(CLINICS, np.split(WORLD.contexts, len(CLINICS), axis=1), strict=True):
        (folder / clinic).mkdir(exist_ok=True)
        with (folder / clinic / "features.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", "age", "pressure", "marker"])
            rows.writerows([f"P{number:06}", *map("{:.6f}".format, row)] for number, row in enumerate(block.tolist()))


def be() -> None:
    """What came of each treatment.  `again`, where it is told, goes back as it came."""
    for line in sys.stdin:
        said = json.loads(line)
        outcome = WORLD.outcomes[said["decision"]][said["values"][0]]
        print(json.dumps({**said, "values": [float(outcome)]}), flush=True)


def report(folder: Path) -> None:
    """How the clinics did."""
    (result,) = (folder / "runs").glob("*/result.json")
    arms = np.array(json.loads(result.read_text())["learned"]).reshape(-1)
    outcomes = WORLD.outcomes[: len(arms)]
    reached = outcomes[np.arange(len(arms)), arms].mean()
    print(f"average outcome {reached:.3f}; treatments by chance would have had {outcomes.mean():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["make", "be", "report"])
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    options = parser.parse_args()
    if options.what == "make":
        make(options.folder)
    elif options.what == "be":
        be()
    else:
        report(options.folder)


if __name__ == "__main__":
    main()

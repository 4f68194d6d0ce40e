"""What is outside the computation of the example: features of patients, and what a treatment does to them.

world.py make DIR --steps N    each clinic's features.csv below DIR, and what every treatment would have done
world.py be DIR                reads treatments on stdin, writes outcomes to stdout, line by line
world.py report DIR            the average outcome, beside that of treatments by chance
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np

from bandits.environments import synthetic_linear

CLINICS, ARMS, DIM = 3, 4, 9


def make(folder: Path, steps: int) -> None:
    """Nobody has these but their clinic, and the world."""
    episode = synthetic_linear(ARMS, DIM, seed=7).episode(steps, 7)
    for clinic, block in enumerate(np.split(episode.contexts, CLINICS, axis=1)):
        with (folder / f"party-{clinic}" / "features.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", "age", "pressure", "marker"])
            rows.writerows([f"P{number:06}", *row] for number, row in enumerate(block.tolist()))
    np.save(folder / "world.npy", episode.outcomes)


def be(folder: Path) -> None:
    """What came of each treatment."""
    for outcomes, line in zip(np.load(folder / "world.npy"), sys.stdin):
        said = json.loads(line)
        told = {"decision": said["decision"], "values": [float(outcomes[said["values"][0]])]}
        print(json.dumps(told), flush=True)


def report(folder: Path) -> None:
    """How the clinics did."""
    outcomes = np.load(folder / "world.npy")
    (result,) = (folder / "puller" / "runs").glob("*/result.json")
    arms = np.array(json.loads(result.read_text())["learned"]).reshape(-1)
    reached = outcomes[np.arange(len(arms)), arms].mean()
    print(f"average outcome {reached:.3f}; treatments by chance would have had {outcomes.mean():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["make", "be", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    if options.what == "make":
        make(options.folder, options.steps)
    elif options.what == "be":
        be(options.folder)
    else:
        report(options.folder)


if __name__ == "__main__":
    main()

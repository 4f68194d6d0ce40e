"""HELBA on shares beside its policy in the clear: the same arms, the same batch ends, and an inverse within eps(t).

    toy     the paper's problem, 130 steps           wide    d = 5, K = 20, L = 1, 2,000 steps
    fresh   new features at each step, 130 steps     deep    d = 20, K = 10, L = 1, 2,000 steps
    trace   fresh, eta = 1                           long    d = 2, 10,000 steps
    alone   toy and fresh with the trace alone

Where indices are within 1e-5 of the best, the clear pulls as the run did.  A run fails where it pulls an arm that is
further below the best, where a batch ends elsewhere, or where the inverse is off by more than eps(t) (largest
eigenvalue of the difference, looked at every hundredth of the run).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bandits.helba import Batches, Constants, Problem, fresh, toy

from ..helba.run import NEAR, Encrypted, Parties
from ..helba.settings import ESTIMATE_BITS, Settings
from ..run.exits import exit_codes
from ..run.progress import Progress
from ..run.simulate import Simulation

Make = Callable[..., Problem]


@dataclass(frozen=True)
class Size:
    """A problem, and how it is played."""

    name: str
    constants: Constants
    arms: int = 2
    steps: int = 130
    make: Make = fresh


SIZES = (
    Size("toy", Constants(), make=toy),
    Size("fresh", Constants()),
    Size("trace", Constants(growth=1.0)),
    Size("alone", Constants(growth=None), make=toy),
    Size("alone", Constants(growth=None)),
    Size("wide", Constants(dim=5, norm=1.0), 20, 2000),
    Size("deep", Constants(dim=20, norm=1.0), 10, 2000),
    Size("long", Constants(), 2, 10_000),
)


@dataclass(frozen=True)
class Beside:
    """A run beside the clear.  inverse: its largest error over eps(t).  estimate: the largest error of w."""

    arms_equal: bool
    ends_equal: bool
    near_ties: int
    smallest_gap: float
    updates: int
    inverse: float
    estimate: float
    regret: float
    rounds_per_step: float
    offline_bytes_per_step: float
    seconds: float
    dealing_seconds: float

    @property
    def agrees(self) -> bool:
        """As the module says."""
        return self.arms_equal and self.ends_equal and self.inverse <= 1.0


def measure(
    size: Size, seed: int, *, parties: int = 2, batches: Batches = Batches.PUBLIC,
    watch: Callable[[int], object] = lambda _: None,
) -> Beside:  # fmt: skip
    """Play it."""
    problem = size.make(size.constants, size.steps, seed, arms=size.arms)
    settings = Settings(size.constants, size.arms, size.steps, batches)
    simulation = Simulation(Encrypted(settings, parties, seed=seed, problem=problem), seed=seed)
    inverse, estimate = np.array(list(_errors(simulation, problem, settings, watch))).max(axis=0).tolist()
    run = simulation.result()
    assert run.ends is not None
    return Beside(
        run.first_difference is None, bool(run.ends_equal), int((run.twin.gaps <= NEAR).sum()),
        float(run.twin.gaps.min()), int(run.ends.sum()), inverse, estimate,
        run.regret, run.cost.rounds / size.steps, run.offline_bytes / size.steps, run.seconds, run.offline_seconds,
    )  # fmt: skip


def _errors(
    simulation: Simulation[Any], problem: Problem, settings: Settings, watch: Callable[[int], object]
) -> Iterator[tuple[float, float]]:
    """Play to the end; of A over eps(t), and of w, every hundredth of the run; both before its last step."""
    given, player = settings.constants, simulation.player
    assert isinstance(player, Parties)
    gram, sums = given.ridge * np.eye(given.dim), np.zeros(given.dim)
    for step in range(settings.steps):
        simulation.turn()
        watch(step + 1)
        if (step + 1) % max(1, settings.steps // 100) == 0:
            words = player.shares.table.words.sum(axis=0, dtype=np.uint64).view(np.int64)[-1]
            exact = np.linalg.inv(gram)
            off = np.linalg.norm(np.ldexp(words[:-1], -settings.widths.inverse) - exact, 2)
            estimate = np.abs(np.ldexp(words[-1], -ESTIMATE_BITS) - exact @ sums).max()
            yield float(off) / given.eps(step + 1), float(estimate)
        arm = int(simulation.notes[-1])
        x = problem.features[step, arm]
        gram += np.outer(x, x)
        sums += problem.rewards[step, arm] * x


def main() -> None:
    """Run, compare, print."""
    names = list(dict.fromkeys(size.name for size in SIZES))
    parser = argparse.ArgumentParser(prog="scripts/agreement_helba", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"{', '.join(names)} (all)")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each size, seeded 0, 1, ... (20)")
    parser.add_argument("--parties", type=int, default=2, help="computing parties (2)")
    parser.add_argument("--batches", choices=[kind.value for kind in Batches], default="public")
    parser.add_argument("--json", type=Path, help="write the rows to this file as well")
    options = parser.parse_args()
    with exit_codes(place="name another file with --json"):
        if unknown := set(options.sizes) - set(names):
            parser.error(f"there is no size {', '.join(sorted(unknown))}: choose among {', '.join(names)}")
        rows = list(_rows(options))
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if not all(row["agrees"] for row in rows):
        raise SystemExit(1)


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for size in SIZES:
        for seed in range(options.seeds if not options.sizes or size.name in options.sizes else 0):
            progress = Progress(size.steps)
            batches = Batches(options.batches)
            found = measure(size, seed, parties=options.parties, batches=batches, watch=progress)
            progress.end()
            row = {"size": size.name, "problem": size.make.__name__, "seed": seed, **asdict(found)}
            print(json.dumps({**row, "agrees": found.agrees}), flush=True)
            yield {**row, "agrees": found.agrees}


if __name__ == "__main__":
    main()

"""`scripts/agreement_linucb`: every mode of the outsourced bandit beside its integer reference and beside float64.

Movies of MovieLens as arms, and sets whose best indices tie.  Classic and mpc with arms shown must pull the reference's
arms and end with its integer; beside float64, and with arms hidden, the first arm that differs must be a near tie:
two best indices closer than twice the stated precision.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits.coins import Coins
from bandits.fixed_point import Scales, precision, rounded, words
from bandits.linear_problem import LinearProblem, ProblemError
from bandits.movielens import movielens, spectral_movielens
from bandits.oful import OFUL, Confidence, play
from bandits.spectral import spectral_problem
from mpc.errors import ConfigError
from mpc.tables import markdown

from ..linucb_ds.classic.run import play_classic
from ..linucb_ds.mpc.dealt_coins import replayed
from ..linucb_ds.mpc.run import Outsourced, nearest, pulled
from ..linucb_ds.mpc.settings import Settings
from ..run.exits import exit_codes, say
from ..run.simulate import Simulation

SIZES = ((3, 15), (5, 50), (18, 6))
PARTIES = 2
_COLUMNS = (
    ("arms", "s"), ("d", "d"), ("K", "d"), ("mode", "s"), ("runs", "d"), ("exact", "d"), ("precision", ".1e"),
    ("parted from float64", "d"), ("at gaps up to", ".1e"), ("closest gap", ".1e"),
)  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """One run.  exact: its integer reference's arms and sum; with arms hidden, the sum that its own pulls make.

    gap: between float64's two best indices where the first other arm was pulled; None where none was.  closest: the
    smallest gap of the run.  precision: how far an index may be from float64's.
    """

    exact: bool
    gap: float | None
    closest: float
    precision: float

    @property
    def near(self) -> bool:
        """No other arm than float64's, or behind a near tie only."""
        return self.gap is None or self.gap < 2.0 * self.precision


@dataclass(frozen=True)
class Row:
    """Runs of one mode on one problem."""

    problem: str
    dim: int
    arms: int
    mode: str
    runs: int
    exact: int
    parted: int
    largest_gap: float | None
    closest: float
    precision: float
    near: bool


def problems(folder: Path | None) -> Iterator[tuple[str, Callable[[int], LinearProblem]]]:
    """By seed: movies for a user each, if their file is there, and sets that tie."""
    if folder is not None:
        for dim, arms in SIZES:
            yield f"movies {dim} x {arms}", partial(_movies, folder, dim, arms)
        yield "movies' graph", partial(_graph, folder)
    yield "orthonormal", lambda _: _of(np.eye(6), np.full(6, 0.5))
    yield "plus and minus", _pairs
    yield "ring", lambda _: _ring(8)


def classic(problem: LinearProblem, budget: int, seed: int, bits: int) -> Beside:
    """The published protocol."""
    scales = Scales()
    run = play_classic(problem, budget, seed=seed, scales=scales, bits=bits, insecure=True)
    coins = Coins.draw(seed, budget=budget, arms=len(problem.arms), size=problem.exploration.noise)
    return _beside(rounded(problem, scales), coins, run.arms, run.exact, precision(problem, scales))


def shown(problem: LinearProblem, budget: int, seed: int) -> Beside:
    """On shares, arms shown."""
    settings = Settings.of(problem, budget)
    simulation = Simulation(Outsourced(settings, PARTIES, seed, problem), seed=seed)
    for _ in range(budget):
        simulation.turn()
    run, coins = simulation.result(), _coins(simulation, settings)
    assert run.arms is not None and run.reference is not None
    exact = run.arms == run.reference.arms and run.word == run.reference.word
    return _beside(
        rounded(problem, settings.scales), coins, run.arms, exact, precision(problem, settings.scales)
    )  # fmt: skip


def hidden(problem: LinearProblem, budget: int, seed: int) -> Beside:
    """On shares, arms hidden."""
    settings = Settings.of(problem, budget, hide=True)
    simulation = Simulation(Outsourced(settings, PARTIES, seed, problem), seed=seed)
    for _ in range(budget):
        simulation.turn()
    run, coins, arms = simulation.result(), _coins(simulation, settings), pulled(simulation.player)
    exact = rounded(problem, settings.scales)
    x, theta = words(exact.arms, settings.scales.arm), words(exact.theta, settings.scales.theta)
    paid = sum((x[arms] @ theta).tolist()) + sum(words(coins.noise, settings.scales.reward).tolist())
    return _beside(exact, coins, arms, run.word == nearest(paid, settings), settings.ranges.precision)


def measure(folder: Path | None, *, seeds: int, budget: int, bits: int) -> list[Row]:
    """All problems in all modes."""
    modes: dict[str, Callable[[LinearProblem, int], Beside]] = {
        "classic": lambda problem, seed: classic(problem, budget, seed, bits),
        "mpc, arms shown": lambda problem, seed: shown(problem, budget, seed),
        "mpc, arms hidden": lambda problem, seed: hidden(problem, budget, seed),
    }
    rows = []
    for name, made in problems(folder):
        for mode, run in modes.items():
            say(f"{name}, {mode}: {seeds} runs")
            rows.append(_row(name, made(0), mode, [run(made(seed), seed) for seed in range(seeds)]))
    return rows


def main() -> None:
    """Measure, print; exit code 1 if anything disagrees."""
    parser = argparse.ArgumentParser(
        prog="scripts/agreement_linucb", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="the folder with u.data of MovieLens 100K (else sets that tie)")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each mode, a user each (20)")
    parser.add_argument("--budget", type=int, default=200, help="pulls of a run (200)")
    parser.add_argument("--bits", type=int, default=1024, help="of the keys of classic (1024)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    with exit_codes(ProblemError, place="name another file with --json"):
        if options.seeds < 1 or options.budget < 1:
            raise ConfigError("at least 1 seed and 1 pull")
        rows = measure(options.data_dir, seeds=options.seeds, budget=options.budget, bits=options.bits)
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
        print(as_markdown(rows))
    if not all(row.near and row.exact == row.runs for row in rows):
        raise SystemExit(1)


def as_markdown(rows: Sequence[Row]) -> str:
    """A table."""
    found = (
        (row.problem, row.dim, row.arms, row.mode, row.runs, row.exact, row.precision, row.parted, row.largest_gap,
         row.closest)
        for row in rows
    )  # fmt: skip
    return "\n".join(markdown(_COLUMNS, found, absent="-"))


def _row(name: str, problem: LinearProblem, mode: str, runs: Sequence[Beside]) -> Row:
    gaps = [run.gap for run in runs if run.gap is not None]
    return Row(
        name, problem.dim, len(problem.arms), mode, len(runs), sum(run.exact for run in runs), len(gaps),
        max(gaps, default=None), min(run.closest for run in runs), max(run.precision for run in runs),
        all(run.near for run in runs),
    )  # fmt: skip


def _beside(
    problem: LinearProblem, coins: Coins, arms: Sequence[int], exact: bool, precise: float
) -> Beside:  # fmt: skip
    """A run's arms beside float64's, which plays the same rounded problem with the same coins."""
    pulls = list(play(OFUL(problem.arms, problem.exploration), problem, coins))
    gap = next((pull.gap for pull, arm in zip(pulls, arms) if pull.arm != arm), None)
    return Beside(exact, gap, min(pull.gap for pull in pulls), precise)


def _coins(simulation: Simulation[Any], settings: Settings) -> Coins:
    return replayed(settings, simulation.seed, simulation.dealer.coin_key, simulation.rehearsed.turn)


def _movies(folder: Path, dim: int, arms: int, user: int) -> LinearProblem:
    return movielens(folder, dim=dim, arms=arms, user=user)


def _graph(folder: Path, user: int) -> LinearProblem:
    return spectral_movielens(folder, arms=15, user=user)


def _of(arms: np.ndarray, theta: np.ndarray) -> LinearProblem:
    return LinearProblem(arms, theta, Confidence.of(arms, theta))


def _pairs(seed: int) -> LinearProblem:
    half = np.random.default_rng(seed).normal(size=(3, 3))
    return _of(np.concatenate([half, -half]), np.array([0.5, -0.25, 0.25]))


def _ring(nodes: int) -> LinearProblem:
    weights = np.roll(np.eye(nodes), 1, axis=1)
    return spectral_problem(weights + weights.T, np.ones(nodes))


if __name__ == "__main__":
    main()

"""What the tests of the outsourced bandit on shares lean on: problems, runs, and an oracle in float64."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bandits.coins import Coins
from bandits.fixed_point import rounded, words
from bandits.linear_problem import LinearProblem
from bandits.oful import OFUL, Confidence
from bandits.spectral import neighbour_graph, spectral_problem
from mpc.share import Share
from offline import Plan
from protocols.linucb_ds.mpc.dealt_coins import replayed
from protocols.linucb_ds.mpc.hidden import HiddenState
from protocols.linucb_ds.mpc.player import HiddenArms
from protocols.linucb_ds.mpc.run import Outsourced, Run, pulled
from protocols.linucb_ds.mpc.settings import Settings
from protocols.run import simulate as run_simulate
from protocols.run.checkpoint import Checkpoint
from protocols.run.folder import Keep
from protocols.run.launch import Processes, launch
from protocols.run.rehearsal import rehearse
from protocols.run.simulate import Simulation


def simulation_of(
    problem: LinearProblem, settings: Settings, *, parties: int, seed: int, kept: Checkpoint | None = None,
    listener: Any = None,
) -> Simulation[Run]:  # fmt: skip
    return Simulation(Outsourced(settings, parties, seed, problem), seed=seed, kept=kept, listener=listener)


def simulate(
    problem: LinearProblem, settings: Settings, *, parties: int, seed: int, progress: Any = None,
    keep: Keep | None = None,
) -> Run:  # fmt: skip
    program = Outsourced(settings, parties, seed, problem)
    return run_simulate.simulate(program, seed=seed, keep=keep, watch=progress)


def launched(
    problem: LinearProblem, settings: Settings, *, parties: int = 2, seed: int = 5, keep: Keep | None = None,
    say: Any = lambda _: None, scratch: Path | None = None, **how: Any,
) -> Run:  # fmt: skip
    program, processes = Outsourced(settings, parties, seed, problem), Processes(**{"timeout": 20.0, **how})
    return launch(program, processes, keep=keep, say=say, scratch=scratch)


def plan_of(settings: Settings, parties: int, problem: LinearProblem) -> Plan:
    return rehearse(Outsourced(settings, parties, 0, problem)).plan


def normal(dim: int, arms: int, *, seed: int = 0, size: float = 1.0, **constants: float) -> LinearProblem:
    """Normal arms and theta; `size` multiplies the arms and divides theta."""
    rng = np.random.default_rng(seed)
    x, theta = size * rng.normal(size=(arms, dim)), rng.normal(size=dim) / size
    return of(x, theta, **constants)


def of(arms: Any, theta: Any, **constants: float) -> LinearProblem:
    x, weights = np.array(arms, np.float64), np.array(theta, np.float64)
    return LinearProblem(x, weights, Confidence.of(x, weights, **constants))


def spectral(arms: int, *, seed: int = 0, **constants: float) -> LinearProblem:
    """Points in space, joined to their nearest three, with smooth rewards."""
    points = np.random.default_rng(seed).normal(size=(arms, 2))
    return spectral_problem(neighbour_graph(points, 3), np.tanh(points[:, 0]), **constants)


def ring(nodes: int) -> LinearProblem:
    """A graph that looks the same from every node: indices tie until rewards tell nodes apart."""
    weights = np.roll(np.eye(nodes), 1, axis=1)
    return spectral_problem(weights + weights.T, np.ones(nodes))


TIES = {
    "orthonormal": of(np.eye(6), np.full(6, 0.5)),
    "without theta": of(np.eye(5), np.zeros(5)),
    "plus and minus": of(np.vstack([np.eye(3), -np.eye(3)]), [0.0, 0.0, 0.25]),
    "ring": ring(8),
}
"""Problems whose best indices tie, exactly or nearly, in many steps."""


def played(problem: LinearProblem, budget: int, *, seed: int = 1, parties: int = 2, **changes: Any) -> Run:
    return simulate(problem, Settings.of(problem, budget, **changes), parties=parties, seed=seed)


def paid_exactly(problem: LinearProblem, settings: Settings, arms: list[int], coins: Coins) -> int:
    """The integer that these pulls and this noise add up to."""
    exact = rounded(problem, settings.scales)
    x, theta = words(exact.arms, settings.scales.arm), words(exact.theta, settings.scales.theta)
    return sum(int(x[arm] @ theta) for arm in arms) + sum(words(coins.noise, settings.scales.reward).tolist())


@dataclass(frozen=True)
class Followed:
    """A run with hidden arms beside float64 on the same pulls and rewards.

    shortfall: by how much a pulled arm's index fell short of the best.  error: of all indices that the shares hold.
    gram: of what the shares hold of A^-1.
    """

    simulation: Simulation[Run]
    run: Run
    coins: Coins
    shortfall: float
    error: float
    gram: float


def followed(
    problem: LinearProblem, budget: int, *, seed: int = 1, parties: int = 2, **changes: Any
) -> Followed:  # fmt: skip
    """Play with hidden arms, and look into the shares after each pull."""
    settings = Settings.of(problem, budget, hide=True, **changes)
    simulation = simulation_of(problem, settings, parties=parties, seed=seed)
    exact, player = rounded(problem, settings.scales), simulation.player
    assert isinstance(player, HiddenArms)
    coins = replayed(settings, seed, simulation.dealer.coin_key, simulation.rehearsed.turn)
    oracle = OFUL(exact.arms, exact.exploration)
    shortfall = error = gram = 0.0
    for step, noise in enumerate(coins.noise.tolist()):
        simulation.turn()
        arm = pulled(simulation.player)[-1]
        if step:
            indices = oracle.indices()
            shortfall = max(shortfall, float(indices.max() - indices[arm]))
        oracle.update(arm, float(exact.arms[arm] @ exact.theta) + noise)
        lengths, held = settings.ranges.lengths, clear(player.held.gram)
        widths = np.sqrt(np.maximum(np.diagonal(held), 0.0)) * exact.exploration.omega(step + 1, settings.dim)
        own = lengths * (clear(player.held.estimates) + widths)
        error = max(error, float(np.abs(own - oracle.indices()).max()))
        there = np.nonzero(lengths)[0]
        seen = exact.arms[there] / lengths[there, None]
        truth = seen @ np.linalg.inv(oracle.gram) @ seen.T
        gram = max(gram, float(np.abs(held[np.ix_(there, there)] - truth).max()))
    return Followed(simulation, simulation.result(), coins, shortfall, error, gram)


def state_of(run: Followed) -> HiddenState:
    """What the parties hold at the end."""
    assert isinstance(run.simulation.player, HiddenArms)
    return run.simulation.player.held


def clear(share: Share) -> np.ndarray:
    """The value behind the shares of all parties."""
    return share.words.sum(axis=0, dtype=np.uint64).view(np.int64) * 2.0**-share.scale

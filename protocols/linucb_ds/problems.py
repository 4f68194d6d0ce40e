"""Problems by name: movies for a user, or normal arms; for LinUCB, or as the nodes of a graph.  Knows no protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bandits.linear_problem import LinearProblem, ProblemError
from bandits.movielens import movielens, spectral_movielens
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence, neighbour_graph, spectral_problem
from mpc.errors import ConfigError

LINUCB, SPECTRAL = "linucb-ds", "spectralucb-ds"
NEIGHBOURS = 10
PAPER: Mapping[str, float] = {"gamma": 0.01, "delta": 0.001, "noise": 0.01}
"""The constants of the paper's experiments, where S and C are log t (`as_published`)."""
_NONE: Mapping[str, float] = {}


def made_up(
    program: str, *, arms: int, dim: int | None = None, seed: int = 0, folder: Path | None = None,
    neighbours: int = NEIGHBOURS, constants: Mapping[str, float] = _NONE,
) -> LinearProblem:  # fmt: skip
    """Movies of MovieLens' `folder`, for the user `seed`; without it, normal arms and theta by this seed."""
    if folder is None:
        return of(program, *normal_arms(arms, 5 if dim is None else dim, seed), neighbours, constants)
    if program == LINUCB:
        return movielens(folder, dim=5 if dim is None else dim, arms=arms, user=seed, **constants)
    return spectral_movielens(
        folder, dim=10 if dim is None else dim, arms=arms, user=seed, neighbours=neighbours, **constants
    )


def of(
    program: str, arms: np.ndarray, theta: np.ndarray, neighbours: int = NEIGHBOURS,
    constants: Mapping[str, float] = _NONE,
) -> LinearProblem:  # fmt: skip
    """These arms and this theta; of the other program nodes that are joined to their nearest, and what they pay."""
    if program == LINUCB:
        return LinearProblem(arms, theta, Confidence.of(arms, theta, **constants))
    if arms.shape[1:] != theta.shape:
        raise ProblemError(f"arms of shape {arms.shape} and theta of shape {theta.shape}: both need the same dimension")
    return spectral_problem(neighbour_graph(arms, neighbours), arms @ theta, **constants)


def as_published(problem: LinearProblem, *, growing: bool = True, printed: bool = False) -> LinearProblem:
    """The problem with the paper's S or C = log t; printed: and with SpectralUCB's omega as it prints it."""
    exploration = problem.exploration
    if isinstance(exploration, SpectralConfidence):
        return replace(problem, exploration=replace(exploration, growing=growing, printed=printed))
    assert isinstance(exploration, Confidence)
    return replace(problem, exploration=replace(exploration, growing=growing))


def completed(public: LinearProblem, row: np.ndarray) -> LinearProblem:
    """What all know, and what its owner alone does: theta, or on a graph what each node pays on average.

    ConfigError where that breaks the bounds which are public.
    """
    spectral = isinstance(public.exploration, SpectralConfidence)
    try:
        return replace(public, theta=public.arms.T @ row if spectral else row)
    except ProblemError as error:
        raise ConfigError(str(error)) from error


def normal_arms(arms: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(K, d) arms and theta with standard normal coordinates."""
    if arms < 1 or dim < 1 or seed < 0:
        raise ProblemError(f"{arms} arms of {dim} dimensions by seed {seed}: at least 1, 1 and 0")
    rng = np.random.default_rng([seed, dim, arms])
    return rng.normal(size=(arms, dim)), rng.normal(size=dim)

"""SpectralUCB (Valko, Munos, Kveton and Kocak 2014): arms are nodes of a graph on which the rewards are smooth.

    Laplacian = Q Lambda Q',  arm i is row i of Q,  rewards f = Q theta
    after t pulls:  A = Lambda + gamma I + sum x x',  theta^ = A^-1 b
    omega = 2 R sqrt(d' log(1 + t / gamma) + 2 log(1 / delta)) + C,  C >= |theta|_Lambda
    d' = the largest i with (i - 1) lambda_i <= t / log(1 + t / gamma)        the effective dimension

The rest is LinUCB, `oful.OFUL` with these constants: pull the largest <x_i, theta^> + omega |x_i|_(A^-1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .linear_problem import LinearProblem, ProblemError, longest_norm
from .oful import LARGEST_NORM, check_constants, power_above

_SLACK = 1.0 + 2.0**-10  # rounding to fixed point may carry a norm so far over its bound
_ROUNDING = 1e-9  # of the eigenvalues of a Laplacian, relative to the largest


@dataclass(frozen=True)
class SpectralConfidence:
    """eigenvalues: lambda_1 <= ... <= lambda_K of the Laplacian.  noise: R.  smoothness: C.

    theta_norm: S >= |theta|, for the ranges of a protocol alone.
    growing: omega has log t in place of C, as in the experiments of Ciucanu et al.  C still bounds |theta|_Lambda.
    printed: omega as Ciucanu et al. print it, 2 R sqrt(d' log(1 + t / gamma)) + 2 log(1 / delta) + C, where the root
    ends too soon; else as in Valko et al.
    """

    eigenvalues: tuple[float, ...]
    gamma: float = 1.0
    delta: float = 0.01
    noise: float = 1.0
    smoothness: float = 1.0
    theta_norm: float = 1.0
    growing: bool = False
    printed: bool = False

    def __post_init__(self) -> None:
        check_constants(self.gamma, self.delta, self.noise)
        values = np.array(self.eigenvalues)
        if not (values.size and np.isfinite(values).all() and (values >= 0).all() and (np.diff(values) >= 0).all()):
            raise ProblemError("eigenvalues of a Laplacian are given from the least, none below 0: use `eigenbasis`")
        if not (0 <= self.smoothness < LARGEST_NORM and 0 < self.theta_norm < LARGEST_NORM):
            raise ProblemError(
                f"the smoothness C is at least 0 and the norm S positive, both up to {LARGEST_NORM:g}, not "
                f"{self.smoothness:g} and {self.theta_norm:g}"
            )

    def regulariser(self, dim: int) -> np.ndarray:
        """Lambda + gamma I."""
        if dim != len(self.eigenvalues):
            raise ProblemError(f"{len(self.eigenvalues)} eigenvalues for arms of {dim} dimensions: give one for each")
        return np.array(self.eigenvalues, np.float64) + self.gamma

    def omega(self, pulls: int, dim: int) -> float:
        """2 R sqrt(d' log(1 + t / gamma) + 2 log(1 / delta)) + C."""
        grown = self.effective_dimension(pulls) * math.log1p(pulls / self.gamma)
        sure = 2.0 * math.log(1.0 / self.delta)
        rough = math.log(max(1, pulls)) if self.growing else self.smoothness
        if self.printed:
            return 2.0 * self.noise * math.sqrt(grown) + sure + rough
        return 2.0 * self.noise * math.sqrt(grown + sure) + rough

    def effective_dimension(self, pulls: int) -> int:
        """The largest i, from 1, with (i - 1) lambda_i <= t / log(1 + t / gamma)."""
        limit = pulls / math.log1p(pulls / self.gamma) if pulls else self.gamma
        return max(i for i, value in enumerate(self.eigenvalues, start=1) if (i - 1) * value <= limit)

    def prediction_bound(self, arms: np.ndarray) -> float:
        """A^-1 sum x x' theta = theta - A^-1 (Lambda + gamma I) theta: L (S + sqrt(C^2 / gamma + S^2))."""
        energy = math.hypot(self.smoothness / math.sqrt(self.gamma), self.theta_norm)
        return longest_norm(arms) * (self.theta_norm + energy)

    def check(self, arms: np.ndarray, theta: np.ndarray | None = None) -> None:
        """C and S hold."""
        if theta is None or len(theta) != len(self.eigenvalues):
            return
        if longest_norm(theta) > self.theta_norm * _SLACK:
            raise ProblemError(f"theta is longer than S = {self.theta_norm:g}: state a larger theta_norm")
        rough = math.sqrt(float((np.array(self.eigenvalues) * theta**2).sum()))
        if rough > self.smoothness * _SLACK + 1e-12:
            raise ProblemError(
                f"the rewards are rougher than C = {self.smoothness:g} on this graph: state a larger smoothness"
            )


def spectral_problem(
    weights: np.ndarray, rewards: np.ndarray, *, gamma: float = 1.0, delta: float = 0.01, noise: float = 1.0
) -> LinearProblem:
    """Nodes of a graph with these expected rewards, as arms; C and S are the next powers of two."""
    values, vectors = eigenbasis(laplacian(weights))
    if rewards.shape != (len(values),):
        raise ProblemError(f"{len(values)} nodes and rewards of shape {rewards.shape}: one for each node is wanted")
    theta = vectors.T @ rewards
    if not np.isfinite(rewards).all():
        raise ProblemError("the rewards hold NaN or infinite values: clean them")
    rough = math.sqrt(float((values * theta**2).sum()))
    smoothness, norm = power_above(rough) if rough else 0.0, power_above(longest_norm(theta))
    return LinearProblem(
        vectors, theta, SpectralConfidence(tuple(values.tolist()), gamma, delta, noise, smoothness, norm)
    )


def neighbour_graph(points: np.ndarray, neighbours: int = 10) -> np.ndarray:
    """(K, K) weights 0 and 1: each point joined to its nearest ones, in one direction or the other; no loops."""
    if points.ndim != 2 or not points.size or not np.isfinite(points).all():
        raise ProblemError(f"a graph is built on finite points (K, d), not on an array of shape {points.shape}")
    if neighbours < 1:
        raise ProblemError(f"each point is joined to at least 1 neighbour, not {neighbours}")
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(squared, np.inf)
    nearest = squared.argsort(axis=1, kind="stable")[:, : min(neighbours, len(points) - 1)]
    weights = np.zeros(squared.shape)
    weights[np.arange(len(points))[:, None], nearest] = 1.0
    return np.maximum(weights, weights.T)


def laplacian(weights: np.ndarray) -> np.ndarray:
    """D - W."""
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not weights.size:
        raise ProblemError(f"the weights of a graph form a square matrix, not one of shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights == weights.T).all()):
        raise ProblemError("the weights of a graph are symmetric and at least 0: symmetrise them")
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def eigenbasis(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues from the least, and eigenvectors as columns, each with its largest coordinate positive."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.where(np.abs(values) <= _ROUNDING * max(1.0, float(values[-1])), 0.0, values)
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)

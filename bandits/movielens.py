"""MovieLens 100K (Harper and Konstan 2015) as a linear bandit: movies are arms, theta is a user.

    ratings[u, m] = <U_u, M_m>      U: 943 x d users, M: 1682 x d movies

The factors minimise the squared error on the given ratings plus `weight` n (|U_u|^2 + |M_m|^2), n the number of ratings
of that user or movie, by alternating least squares (Zhou, Wilkinson, Schreiber and Pan 2008) from a fixed seed; then
both are turned so that U'U and M'M are the same diagonal matrix, and no norm is on one side only.

The ratings are GroupLens's and may not be passed on: they lie in a folder that the user names.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from .linear_problem import LinearProblem, ProblemError
from .oful import Confidence
from .spectral import neighbour_graph, spectral_problem

USERS, MOVIES = 943, 1682
_FILES = ("u.data", "u.data.gz")
_CHECKSUM = "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"  # of u.data, uncompressed
_WHERE = "https://files.grouplens.org/datasets/movielens/ml-100k/u.data"


@dataclass(frozen=True)
class Factors:
    """users: (943, d).  movies: (1682, d)."""

    users: np.ndarray
    movies: np.ndarray

    def error(self, ratings: np.ndarray) -> float:
        """Root of the mean squared error on the ratings that were given."""
        given = ratings > 0
        return float(np.sqrt(((self.users @ self.movies.T - ratings)[given] ** 2).mean()))


def load_ratings(folder: Path) -> np.ndarray:
    """(943, 1682) ratings 1 to 5, and 0 for none, from u.data or u.data.gz in `folder` or its movielens-100k."""
    places = [folder / below / name for below in ("", "movielens-100k", "ml-100k") for name in _FILES]
    found = [place for place in places if place.is_file()]
    if not found:
        raise ProblemError(f"there is no u.data of MovieLens 100K in {folder}: fetch {_WHERE} and name its folder")
    raw = found[0].read_bytes()
    try:
        raw = gzip.decompress(raw) if found[0].suffix == ".gz" else raw
    except (OSError, EOFError) as error:
        raise ProblemError(f"{found[0]} is damaged: fetch it again") from error
    if hashlib.sha256(raw).hexdigest() != _CHECKSUM:
        raise ProblemError(f"{found[0]} is not u.data as published (its sha256 differs): fetch it again")
    rows = np.array(raw.split(), np.int64).reshape(-1, 4)  # user, movie, rating, time
    ratings = np.zeros((USERS, MOVIES))
    ratings[rows[:, 0] - 1, rows[:, 1] - 1] = rows[:, 2]
    return ratings


def factorise(ratings: np.ndarray, dim: int, *, weight: float = 0.05, sweeps: int = 15, seed: int = 1) -> Factors:
    """U and M by alternating least squares."""
    if not 1 <= dim <= min(ratings.shape):
        raise ProblemError(f"{dim} dimensions: choose from 1 to {min(ratings.shape)}")
    given = (ratings > 0).astype(np.float64)
    if not (given.any(axis=0).all() and given.any(axis=1).all()):
        raise ProblemError("a user or a movie has no rating: drop it before factorising")
    rng = np.random.default_rng(seed)
    movies = rng.normal(scale=0.1, size=(ratings.shape[1], dim))
    movies[:, 0] += ratings.sum(axis=0) / given.sum(axis=0)
    for _ in range(sweeps):
        users = _solve(movies, ratings, given, weight)
        movies = _solve(users, ratings.T, given.T, weight)
    return _balanced(users, movies)


@lru_cache(maxsize=8)
def factors_of(folder: Path, dim: int) -> Factors:
    """Those of the ratings in `folder`, factorised once a process."""
    return factorise(load_ratings(folder), dim)


def movielens(
    folder: Path, *, dim: int, arms: int, user: int = 0, gamma: float = 1.0, delta: float = 0.01, noise: float = 1.0
) -> LinearProblem:
    """The first `arms` movies for one user, in d latent dimensions."""
    factors = chosen(folder, dim, arms, user)
    movies, theta = factors.movies[:arms], factors.users[user]
    constants = Confidence.of(movies, theta, gamma=gamma, delta=delta, noise=noise)
    return LinearProblem(movies, theta, constants)


def spectral_movielens(
    folder: Path, *, arms: int, user: int = 0, dim: int = 10, neighbours: int = 10, gamma: float = 1.0,
    delta: float = 0.01, noise: float = 1.0,
) -> LinearProblem:  # fmt: skip
    """The first `arms` movies as nodes, joined to their nearest in d latent dimensions; theta in the graph's basis."""
    factors = chosen(folder, dim, arms, user)
    movies = factors.movies[:arms]
    graph = neighbour_graph(movies, neighbours)
    return spectral_problem(graph, movies @ factors.users[user], gamma=gamma, delta=delta, noise=noise)


def chosen(folder: Path, dim: int, arms: int, user: int) -> Factors:
    """The factors of all movies and users, where there are so many movies and this user."""
    if not 1 <= arms <= MOVIES:
        raise ProblemError(f"{arms} arms: MovieLens has 1 to {MOVIES} movies")
    if not 0 <= user < USERS:
        raise ProblemError(f"there is no user {user}: choose from 0 to {USERS - 1}")
    return factors_of(folder, dim)


def _solve(fixed: np.ndarray, ratings: np.ndarray, given: np.ndarray, weight: float) -> np.ndarray:
    """For each row, ridge regression of its ratings on the fixed factors; `weight` for each of its ratings."""
    dim = fixed.shape[1]
    squares = (fixed[:, :, None] * fixed[:, None, :]).reshape(len(fixed), dim * dim)
    gram = (given @ squares).reshape(-1, dim, dim)
    gram += (weight * given.sum(axis=1))[:, None, None] * np.eye(dim)
    return np.asarray(np.linalg.solve(gram, (ratings @ fixed)[..., None])[..., 0])


def _balanced(users: np.ndarray, movies: np.ndarray) -> Factors:
    """The same products from U = P sqrt(s), M = Q sqrt(s) of the singular value decomposition, P's signs made fixed."""
    left, upper = np.linalg.qr(users)
    right, lower = np.linalg.qr(movies)
    inner, singular, outer = np.linalg.svd(upper @ lower.T)
    scale = np.sqrt(singular)
    users, movies = left @ inner * scale, right @ outer.T * scale
    signs = np.where(users.sum(axis=0) < 0, -1.0, 1.0)
    return Factors(users * signs, movies * signs)

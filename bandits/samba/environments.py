"""Arms from ratings: an item pays 1 when somebody's rating of it reaches a threshold.  Knows raw data and its folders.

    published   count(rating >= threshold) / users       of given items; an unrated pair counts as a failure
    best        count(rating >= threshold) / ratings     the K items where this is largest

The first kind is that of the arm files that came with SAMBA: movies 1 to 100 of MovieLens 100K at threshold 4, all
jokes of Jester at 4.5 and ten of them at 3.5.

Ratings are GroupLens's and Goldberg's, and may not be passed on: they lie in a folder that the user names.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..linear_problem import ProblemError
from ..movielens import MOVIES, load_ratings
from .errors import SambaError
from .rewards import BernoulliArms

JOKES = 100
JESTER_SMALL = (5, 7, 8, 13, 15, 16, 17, 18, 19, 20)
_FILE = "jester1.npz"
_UNRATED = 9900
_USERS, _RATINGS = 24983, 1810455
_WHERE = "https://eigentaste.berkeley.edu/dataset"


def movielens_means(folder: Path, arms: int = 100, threshold: float = 4.0) -> BernoulliArms:
    """Movies 1 to `arms`."""
    return BernoulliArms(_published(_movielens(folder), range(1, _up_to(arms, MOVIES) + 1), threshold))


def movielens_best(folder: Path, arms: int = 100, threshold: float = 4.0) -> BernoulliArms:
    """The `arms` best movies."""
    return BernoulliArms(_best(_movielens(folder), _up_to(arms, MOVIES), threshold))


def jester_means(folder: Path, items: Sequence[int] = range(1, JOKES + 1), threshold: float = 4.5) -> BernoulliArms:
    """Jokes by number, from 1."""
    if not items or not all(1 <= item <= JOKES for item in items):
        raise SambaError(f"jokes are numbered from 1 to {JOKES}: choose at least one of these")
    return BernoulliArms(_published(load_jester(folder), items, threshold))


def jester_best(folder: Path, arms: int = 100, threshold: float = 4.5) -> BernoulliArms:
    """The `arms` best jokes."""
    return BernoulliArms(_best(load_jester(folder), _up_to(arms, JOKES), threshold))


def load_jester(folder: Path) -> np.ndarray:
    """(24983, 100) ratings in [-10, 10], NaN for none, from jester1.npz in `folder` or its jester.

    The file holds `ratings_x100`: 100 times the ratings of jester-data-1.xls as int16, 9900 for none.
    """
    found = [place for place in (folder / _FILE, folder / "jester" / _FILE) if place.is_file()]
    if not found:
        raise SambaError(
            f"there is no {_FILE} in {folder}: save 100 times the ratings of jester-data-1.xls ({_WHERE}) in it, as "
            "'ratings_x100', int16, and name its folder"
        )
    try:
        hundredfold = np.load(found[0], allow_pickle=False)["ratings_x100"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SambaError(f"{found[0]} is damaged or has no 'ratings_x100': make it again") from error
    rated = hundredfold != _UNRATED
    if hundredfold.shape != (_USERS, JOKES) or rated.sum() != _RATINGS or np.abs(hundredfold[rated]).max() > 1000:
        raise SambaError(
            f"{found[0]} does not hold {_RATINGS:,} ratings of {_USERS:,} users and {JOKES} jokes from -10 to 10, with "
            f"{_UNRATED} for none: make it again from {_WHERE}"
        )
    return np.where(rated, hundredfold / 100.0, np.nan)


def _movielens(folder: Path) -> np.ndarray:
    try:
        ratings = load_ratings(folder)
    except ProblemError as error:
        raise SambaError(str(error)) from error
    return np.where(ratings > 0, ratings, np.nan)


def _published(ratings: np.ndarray, items: Sequence[int], threshold: float) -> np.ndarray:
    """NaN passes no threshold."""
    return np.asarray((ratings[:, np.asarray(items) - 1] >= threshold).mean(axis=0))


def _best(ratings: np.ndarray, arms: int, threshold: float) -> np.ndarray:
    """Largest first; of equal ones the item of the smaller number."""
    received = (~np.isnan(ratings)).sum(axis=0)
    means = (ratings >= threshold).sum(axis=0) / np.maximum(received, 1)
    return np.asarray(means[np.argsort(-means, kind="stable")[:arms]])


def _up_to(arms: int, most: int) -> int:
    if not 1 <= arms <= most:
        raise SambaError(f"{arms} arms: there are 1 to {most}")
    return arms

"""Arms from ratings, by the data set's name and by how their means are counted; options that say so."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from enum import Enum
from pathlib import Path

import numpy as np

from bandits.samba import BernoulliArms, SambaError, load_arms
from bandits.samba.environments import JOKES, jester_best, jester_means, movielens_best, movielens_means
from mpc.errors import ConfigError


class Ratings(Enum):
    """Whose items are arms."""

    MOVIELENS = "movielens"
    JESTER = "jester"


class Means(Enum):
    """text: ratings above the threshold over ratings received, of the items where that is largest, as the paper says.

    files: over all users, of the first items, as the arm files have it that came with the paper's code.
    """

    TEXT = "text"
    FILES = "files"


def add_arms(parser: ArgumentParser) -> None:
    """Where the arms come from."""
    arms = parser.add_argument_group("the arms (ten built-in ones)")
    arms.add_argument("--arms-file", type=Path, metavar="FILE", help="the number of arms, then their means")
    arms.add_argument("--data", choices=[kind.value for kind in Ratings], help="items of a data set of ratings")
    arms.add_argument("--data-dir", type=Path, help="the folder with the folders movielens-100k and jester")
    arms.add_argument(
        "--means", choices=[kind.value for kind in Means], default=Means.TEXT.value,
        help="text: share of the ratings of an item, of the best items, as the paper says; files: share of all users, "
        "of the first items, as in the arm files of its authors (text)",
    )  # fmt: skip
    arms.add_argument("--arms", type=int, metavar="K", help="how many: of --data (100), or of built-in ones (10)")


def built_in(arms: int = 10) -> BernoulliArms:
    """Arms with means from 0.1 to 0.55, evenly; one alone has 0.1."""
    if arms < 1:
        raise ConfigError(f"--arms {arms}: there must be an arm")
    return BernoulliArms(np.linspace(0.1, 0.55, arms).round(12))


def arms_of(options: Namespace) -> BernoulliArms:
    """Those that the options name."""
    if options.data is None:
        if options.data_dir is not None:
            raise ConfigError("--data-dir is of --data movielens and jester: name one, or leave it out")
        if Means(options.means) is not Means.TEXT:
            raise ConfigError("--means is of --data movielens and jester: name one, or leave it out")
        if options.arms_file is None:
            return built_in() if options.arms is None else built_in(options.arms)
        if options.arms is not None:
            raise ConfigError("--arms-file has its own number of arms: leave out --arms")
        return _loaded(options.arms_file)
    if options.arms_file is not None:
        raise ConfigError("--arms-file and --data both name arms: leave one out")
    if options.data_dir is None:
        raise ConfigError(f"--data {options.data} needs the folder of its ratings: name it with --data-dir")
    return rated(
        Ratings(options.data), Means(options.means), options.data_dir, 100 if options.arms is None else options.arms
    )


def rated(data: Ratings, means: Means, folder: Path, arms: int = 100) -> BernoulliArms:
    """So many items; ConfigError with the cure where the ratings are not there."""
    try:
        if data is Ratings.MOVIELENS:
            return (movielens_best if means is Means.TEXT else movielens_means)(folder, arms)
        if means is Means.TEXT:
            return jester_best(folder, arms)
        if not 1 <= arms <= JOKES:
            raise SambaError(f"{arms} arms: there are 1 to {JOKES}")
        return jester_means(folder, range(1, arms + 1))
    except SambaError as error:
        raise ConfigError(str(error)) from error


def _loaded(path: Path) -> BernoulliArms:
    try:
        return load_arms(path)
    except SambaError as error:
        raise ConfigError(str(error)) from error

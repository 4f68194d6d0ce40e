"""Options that say what is learned from: a data set, and what its arms stand for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bandits.data import DataError, load
from bandits.environments import DATA_SETS, Environment, Task
from mpc.errors import ConfigError
from mpc.extras import extra

from ..run.choices import chosen


def add_data(parser: ArgumentParser) -> None:
    """Which data, and which task; arms and dimensions are options of their own."""
    data = parser.add_argument_group("the data")
    data.add_argument("--data", default="digits", help=f"{', '.join(DATA_SETS)}, or a table FILE.csv (digits)")
    data.add_argument("--data-dir", type=Path, help="the folder with the files of a data set that is not built in")
    data.add_argument(
        "--task",
        help="classes: an arm for each label, which pays 1 where it is right; clusters: as many arms as --arms, by "
        "K-means, which pay the likelier the nearer they are (classes, where the data has labels)",
    )


def check_data(options: Namespace) -> None:
    """ConfigError where these do not go together, before anything is loaded."""
    task_of(options)
    if options.data_dir is not None and options.data != "mnist":
        raise ConfigError(f"--data {options.data} needs no files: leave out --data-dir, or say --data mnist")


def task_of(options: Namespace) -> Task | None:
    """The task; None where it is not said."""
    return None if options.task is None else chosen(Task, options.task, "--task")


def environment_of(options: Namespace, *, held_out: bool = False) -> Environment:
    """The data set as these options want it.  held_out: with the rows of its test file."""
    task = task_of(options)
    try:
        with extra(f"--data {options.data} (--data synthetic does not)"):
            return load(
                options.data, arms=options.arms, dim=options.dim, data=options.data_dir, task=task, held_out=held_out
            )
    except DataError as error:
        raise ConfigError(str(error)) from error

"""A grid of experiments on all cores, kept one by one as they are made, and the table and picture of all.

    folder/experiments/KEY.csv     the rows of one experiment; KEY follows from all that it was asked with, and what a
                                   file of its environment holds
    folder/results.csv             all rows: one flat table
    folder/regret.png              mean regret by policy and kind, a panel for each environment

A second call makes what is missing.  The door to joblib.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from bandits.data import CSV, DataError, load
from bandits.environments import Episodic, synthetic_linear
from mpc.errors import ConfigError
from mpc.extras import extra, installed
from mpc.files import write_whole

from ..run.choices import whole_number
from .loop import evaluate
from .named import make, way
from .problems import PROBLEMS

_POINTS = 50  # rows of an experiment, equally spaced in steps
COLUMNS = ("policy", "environment", "arms", "dim", "eps", "seed", "how", "step", "average_reward", "regret")
_DRAWN = {"policy", "environment", "step", "regret"}
_KIND = ("arms", "dim", "eps", "how")  # what is never averaged over


@dataclass(frozen=True)
class Experiment:
    """One cell of a grid.

    environment: "synthetic", "digits" or a file named .csv, as `masked run ppcb` has; or what another system plays if
    nothing is named, by that system's name.  how: the policy is played, as `How` has it; "" for its usual way.
    """

    policy: str
    environment: str = "synthetic"
    arms: int = 4
    dim: int = 8
    steps: int = 500
    eps: float = 0.1
    seed: int = 0
    how: str = ""

    def __post_init__(self) -> None:
        for name, least in (("arms", 1), ("dim", 1), ("steps", 1), ("seed", 0)):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"an experiment's {name}", least))
        if not isinstance(self.eps, (int, float, np.floating)) or not 0.0 <= self.eps <= 1.0:
            raise ConfigError(f"an experiment's eps is a chance from 0 to 1, not {self.eps!r}")
        if isinstance(self.eps, np.floating):
            object.__setattr__(self, "eps", float(self.eps))

    @property
    def key(self) -> str:
        """Its file's name: by what it was asked with, and what its environment's file holds now."""
        asked = asdict(self)
        if self.environment.endswith(CSV) and (file := Path(self.environment)).is_file():
            asked["holds"] = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        return hashlib.blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=10).hexdigest()

    def rows(self) -> list[dict[str, Any]]:
        """Play it."""
        environment = _environment(self)
        player = make(self.policy, environment, steps=self.steps, seed=self.seed, eps=self.eps, how=self.how)
        found = evaluate(player, environment, steps=self.steps, seed=self.seed)
        average = found.rewards.cumsum() / np.arange(1, self.steps + 1)
        own = {"policy": self.policy, "environment": self.environment, "arms": self.arms, "dim": self.dim}
        return [
            {**own, "eps": self.eps, "seed": self.seed, "how": way(self.policy, self.how).value, "step": at + 1,
             "average_reward": round(float(average[at]), 6), "regret": round(float(found.regret[at]), 6)}
            for at in np.unique(np.linspace(0, self.steps - 1, _POINTS).round().astype(int)).tolist()
        ]  # fmt: skip


def grid(
    policies: Iterable[str], *, environments: Iterable[str] = ("synthetic",), seeds: Iterable[int] = range(5),
    arms: int = 4, dim: int = 8, steps: int = 500, eps: float = 0.1, how: str = "",
) -> list[Experiment]:  # fmt: skip
    """Every policy on every environment with every seed."""
    for what, given in (("policies", policies), ("environments", environments), ("seeds", seeds)):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ConfigError(f"{what} are given as a list, as [{given!r}], not as {given!r}")
    return [
        Experiment(policy, environment, arms, dim, steps, eps, seed, how)
        for policy, environment, seed in itertools.product(policies, environments, seeds)
    ]


def experiments(
    wanted: Sequence[Experiment], folder: str | Path, *, jobs: int = -1,
    progress: Callable[[int, int], object] | None = None,
) -> Path:  # fmt: skip
    """Make what the folder lacks, on so many cores (-1: all), and give the path of results.csv, with the wanted rows.

    Without joblib (extra `data`) they are made one after the other.  progress: told how many of how many are made.
    """
    place = Path(folder) / "experiments"
    for one in wanted:
        way(one.policy, one.how)
    if not wanted:
        raise ConfigError("there is no experiment to make: name at least one policy, environment and seed")
    place.mkdir(parents=True, exist_ok=True)
    kept = [(one, place / f"{one.key}.csv") for one in wanted]
    missing = [(one, path) for one, path in kept if not path.is_file()]
    for at, _ in enumerate(_made(missing, jobs)):
        if progress is not None:
            progress(at + 1, len(missing))
    results = Path(folder) / "results.csv"
    write_whole(results, _text(row for _, path in kept for row in _read(path)).encode(), 0o666)
    return results


def plot_regret(results: str | Path, path: str | Path) -> None:
    """Mean regret over the seeds and its standard error, a panel for each environment.

    A policy has a line, or several where its experiments differ by more than the seed: labels then say in what.
    """
    with extra("a picture"):
        from ..run.picture import picture
    rows = _results(Path(results))
    places = list(dict.fromkeys(row["environment"] for row in rows))
    with picture(Path(path), 5.5 * len(places), 4.2) as canvas:
        for axes, place in zip(canvas.subplots(1, len(places), squeeze=False)[0], places, strict=True):
            for label, of_line in _lines([row for row in rows if row["environment"] == place]).items():
                steps, mean, error = _curve(of_line)
                (line,) = axes.plot(steps, mean, label=label)
                axes.fill_between(steps, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
            axes.set(xlabel="step", ylabel="regret", title=place)
            axes.legend(fontsize=8)


def _results(path: Path) -> list[dict[str, str]]:
    """The rows of a table that `experiments` made."""
    rows: list[dict[str, str]] = []
    try:
        rows = _read(path)
        made = all({*row} >= _DRAWN and int(row["step"]) > 0 and isfinite(float(row["regret"])) for row in rows)
    except (TypeError, ValueError, csv.Error):  # no number, nothing, no text
        made = False
    if not rows or not made:
        raise ConfigError(f"{path} is no table that `experiments` made: give its results.csv")
    return rows


def _lines(rows: Sequence[Mapping[str, str]]) -> dict[str, list[Mapping[str, str]]]:
    """The rows of each line of a panel, by its label: the policy, and what differs among its own experiments."""
    of_policy, lines = defaultdict(list), defaultdict(list)
    for row in rows:
        of_policy[row["policy"]].append(row)
    for policy, own in of_policy.items():
        differing = [name for name in _KIND if len({row.get(name) for row in own}) > 1]
        for row in own:
            lines[", ".join([policy, *(f"{name} {row[name]}" for name in differing)])].append(row)
    return lines


def _curve(rows: Sequence[Mapping[str, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, mean and standard error over the seeds."""
    steps = sorted({int(row["step"]) for row in rows})
    by_step = [np.array([float(row["regret"]) for row in rows if int(row["step"]) == step]) for step in steps]
    error = [values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0 for values in by_step]
    return np.array(steps), np.array([values.mean() for values in by_step]), np.array(error)


def _made(missing: Sequence[tuple[Experiment, Path]], jobs: int) -> Iterator[Path]:
    if jobs == 1 or len(missing) < 2 or not installed("joblib"):
        for one, path in missing:
            yield _keep(one, path)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_keep)(*each) for each in missing)


def _keep(one: Experiment, path: Path) -> Path:
    """Its rows in one move, so that what is there is whole."""
    write_whole(path, _text(one.rows()).encode(), 0o666)
    return path


def _environment(one: Experiment) -> Episodic:
    if one.environment in PROBLEMS:
        return PROBLEMS[one.environment](one.arms, one.dim)
    if one.environment == "synthetic":
        return synthetic_linear(one.arms, one.dim, seed=one.seed)
    try:
        with extra(f"environment {one.environment}"):
            return load(one.environment, arms=one.arms, dim=one.dim)
    except DataError as error:
        raise ConfigError(str(error)) from error


def _text(rows: Iterable[Mapping[str, Any]]) -> str:
    text = StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise ConfigError(f"there is no table {path}: make it with `experiments`")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))

"""The data of the contextual bandit's figures."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from bandits.data import load
from bandits.environments import Environment, Task

from .size import Size

CLASSES, DIM = 10, 20


def environment(size: Size, clusters: int | None = None, *, held_out: bool = False) -> Environment:
    """The ten classes of the data set; where the number of arms varies, so many clusters of it."""
    return _loaded(size.data, clusters, size.folder, held_out)


@lru_cache(maxsize=4)
def _loaded(data: str, clusters: int | None, folder: Path | None, held_out: bool) -> Environment:
    task = None if clusters is None or data == "synthetic" else Task.CLUSTERS
    return load(data, arms=clusters or CLASSES, dim=DIM, data=folder, task=task, held_out=held_out)

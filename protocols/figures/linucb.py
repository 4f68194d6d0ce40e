"""The figures of the LinUCB-DS paper on MovieLens, with its constants: what each runs, and on how much.

6a    time of a run as published against cores, by what takes it: K = 50, d = 5, N = 200, keys of 2048 bits
6b    the same: K = 6, d = 18
6c    time against K, with d = K / 10, N = 200, on one core and on all
7     time of LinUCB-DS and SpectralUCB-DS against K = N = d, on one core and on all
115s  as 6a, of the run that took the paper 115 s: K = 15, d = 3, N = 1000, keys of 1024 bits
modes, work    ours, in no paper: see `linucb_modes`

The participants take turns in one process, so that each has all cores for what takes long.  The paper's step 3.i,
E(theta^) by d^2 products, is a map in the clear here; the fresh r^n are ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from . import linucb_modes as ours
from .linucb_modes import Policy
from .linucb_plots import draw
from .linucb_runs import times
from .making import Figure, FigureSet
from .size import Size
from .units import Unit

FIGURES = ("6a", "6b", "6c", "7", "115s", "modes", "work")
_PULLS = 200
_FOLDER = "these figures are on MovieLens 100K: name the folder of its u.data"


def cores_here() -> tuple[int, ...]:
    """1, 2, ..., as many as this process may use."""
    return tuple(range(1, len(os.sched_getaffinity(0)) + 1))


def _ends() -> tuple[int, ...]:
    """One core, and all."""
    return tuple(dict.fromkeys((1, cores_here()[-1])))


def _cores(dim: int, arms: int, size: Size, pulls: int = _PULLS, bits: int = 2048) -> Iterator[Unit]:
    cores = (1, 2) if size.quick else cores_here()
    sizes = (4, 2, 3) if size.quick else (pulls, dim, arms)
    yield from _units(size, Policy.LINUCB, *sizes, cores, bits)


def _six_a(size: Size) -> Iterator[Unit]:
    return _cores(5, 50, size)


def _six_b(size: Size) -> Iterator[Unit]:
    return _cores(18, 6, size)


def _one_run(size: Size) -> Iterator[Unit]:
    return _cores(3, 15, size, 1000, 1024)


def _six_c(size: Size) -> Iterator[Unit]:
    for arms in (10, 20) if size.quick else (10, 20, 30, 50, 70, 100):
        yield from _units(size, Policy.LINUCB, 3 if size.quick else _PULLS, arms // 10, arms, _ends())


def _seven(size: Size) -> Iterator[Unit]:
    for arms in (4, 5) if size.quick else (10, 20, 30, 40, 50):
        for policy in Policy:
            yield from _units(size, policy, arms, arms, arms, _ends())


def _units(
    size: Size, policy: Policy, pulls: int, dim: int, arms: int, cores: tuple[int, ...], bits: int = 2048
) -> Iterator[Unit]:
    """Cores by turns, so that what else a machine does falls on all alike."""
    for run in range(size.runs):
        for count in cores:
            name = f"{policy.value}-{pulls}-{dim}-{arms}-cores-{count}-run-{run}"
            yield Unit(name, times, (size, policy, pulls, dim, arms, count, bits, run), weight=pulls * arms / count)


FIGURE_SET = FigureSet(
    "linucb",
    "the figures of LinUCB-DS are 6a, 6b, 6c and 7, its run of 115s, and of ours modes and work",
    {
        name: Figure(name, of, _FOLDER, timed=True, minutes=minutes)
        for name, of, minutes in (
            ("6a", _six_a, 6),
            ("6b", _six_b, 2),
            ("6c", _six_c, 12),
            ("7", _seven, 8),
            ("115s", _one_run, 2),
            ("modes", ours.modes, 3),
            ("work", ours.works, 3),
        )
    },
    draw,
    {"runs": (3, 1)},
    place="movielens-100k",
)  # fmt: skip

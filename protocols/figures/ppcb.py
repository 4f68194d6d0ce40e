"""The figures of "Privacy-Preserving Contextual Bandits": what each runs, and on how much.  Knows no plot.

1  reward against steps for four eps                          secure; with --twin its twin, after agreement
2  reward against eta for three lengths, eta infinite beside  twin, after agreement with the secure run
3  time against arms for several N, 4 against N               processes on this machine
5  reward against eta for several numbers of arms             twin, after agreement
6  advantage of membership inference during training          twin; figure 1 has its agreement
7  reward against fraction bits, both truncations             secure
8  reward against Newton iterations                           secure
table 1     operations beside plain PyTorch and CrypTen       processes on this machine
table step  rounds and bytes of a step, published and recast  secure

The arms are the ten classes of the data; of figure 5, clusters.  Of figures 3 and 4 they are synthetic, as only their
number matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ppcb.settings import Truncation, Variant
from .making import Figure, FigureSet
from .ppcb_attack import advantages
from .ppcb_costs import operations, step_cost, step_time
from .ppcb_plots import draw
from .ppcb_rewards import against_eta, by_bits, by_newton, over_time, over_time_by_twin
from .size import Size
from .units import Rows, Unit

FIGURES = ("1", "2", "3", "4", "5", "6", "7", "8")
_EPS = (0.01, 0.05, 0.1, 0.5)
_RUNS, _TWINS, _ATTACKED = 10, 2, 25  # of a unit, which then takes some minutes


def _one(size: Size) -> Iterator[Unit]:
    for eps in _EPS:
        if size.twin:
            yield Unit(f"eps-{eps:g}-twin", over_time_by_twin, (size, eps, size.runs))
        else:
            yield from _in_parts(f"eps-{eps:g}", over_time, size, _RUNS, eps)


def _two(size: Size) -> Iterator[Unit]:
    lengths = tuple(round(size.steps * part) for part in (1 / 6, 1 / 2, 1))
    yield from _in_parts("twin", against_eta, size, _TWINS, None, lengths)


def _five(size: Size) -> Iterator[Unit]:
    for arms in (3, 5) if size.quick else (5, 10, 20, 50):
        yield from _in_parts(f"arms-{arms}", against_eta, size, _TWINS, arms, (size.steps,))


def _three(size: Size) -> Iterator[Unit]:
    for parties in (2,) if size.quick else (2, 3, 5):
        for arms in (2, 5) if size.quick else (5, 10, 20, 40, 60, 80, 100):
            yield Unit(f"parties-{parties}-arms-{arms}", step_time, (size, parties, arms))


def _four(size: Size) -> Iterator[Unit]:
    for arms in (3,) if size.quick else (10, 20, 40):
        for parties in (2, 3) if size.quick else (2, 3, 4, 5, 6, 8):
            yield Unit(f"parties-{parties}-arms-{arms}", step_time, (size, parties, arms))


def _six(size: Size) -> Iterator[Unit]:
    for eps in _EPS[:2] if size.quick else _EPS:
        yield from _in_parts(f"eps-{eps:g}", advantages, size, _ATTACKED, eps)


def _seven(size: Size) -> Iterator[Unit]:
    for bits in (14, 26) if size.quick else (14, 16, 18, 20, 22, 24, 26):
        for truncation in Truncation:
            yield from _in_parts(f"bits-{bits}-{truncation.value}", by_bits, size, _RUNS, bits, truncation.value)


def _eight(size: Size) -> Iterator[Unit]:
    for newton in (0, 3) if size.quick else (0, 1, 2, 3, 5, 7):
        yield from _in_parts(f"newton-{newton}", by_newton, size, _RUNS, newton)


def _operations(size: Size) -> Iterator[Unit]:
    yield Unit("operations", operations, (size,))


def _steps(size: Size) -> Iterator[Unit]:
    for variant in Variant:
        for parties in (2,) if size.quick else (2, 3):
            yield Unit(f"{variant.value}-{parties}", step_cost, (size, variant.value, parties))


def _in_parts(name: str, make: Callable[..., Rows], size: Size, most: int, *given: object) -> Iterator[Unit]:
    """Units of at most so many of the runs."""
    for first in range(0, size.runs, most):
        runs = min(most, size.runs - first)
        yield Unit(f"{name}-runs-{first}-to-{first + runs - 1}", make, (size, *given, first, runs))


FIGURE_SET = FigureSet(
    "ppcb",
    "the figures of ppcb are 1 to 8, its tables 1 and step",
    {
        "1": Figure("1", _one, minutes=90),
        "2": Figure("2", _two, runs=5, minutes=15),
        "3": Figure("3", _three, timed=True, minutes=10),
        "4": Figure("4", _four, timed=True, minutes=10),
        "5": Figure("5", _five, minutes=40),
        "6": Figure("6", _six, runs=200, minutes=60),
        "7": Figure("7", _seven, minutes=280),
        "8": Figure("8", _eight, minutes=240),
        "table1": Figure("table-1", _operations, timed=True),
        "tablestep": Figure("table-step", _steps, drawn=False),
    },
    draw,
    {"data": ("mnist", "digits"), "steps": (60_000, 120), "runs": (10, 2), "twin": (False, False)},
    place="mnist",
)

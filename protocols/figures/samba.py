"""Figure 8 of the SAMBA paper: what each panel runs, and on how much.

a  time of a run against N, K = 100, two data sets   in the clear, as published, on shares; launched at a tenth of N
b  time of a run against K, two data sets            in the clear, as published, on shares
c  cumulative reward against N, two data sets,       in the clear, after agreement with both protocols
   with means as the text has them, and as the arm files of its authors
d  share of each participant's computing time        as published, K = 10 and 100

A run of N pulls passes all smaller N, so its clock is read there; panels a, b and d have runs in common.  A run plays
all participants in one process, on shares two computing parties with their dealer; keys and the sum are not in a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bandits.samba import NAMES

from ..samba.classic.messages import Spec
from .making import Figure, FigureSet
from .samba_plots import draw
from .samba_runs import RATED, Data, Mode, label_of, launched, rewards, times
from .size import Size
from .units import Unit

FIGURES = ("a", "b", "c", "d")
_RUNS = 10  # of a unit
_SHARED = "runs"  # the folder of what panels a, b and d have in common

PLAYED = (
    Spec("epsilon-greedy"), Spec("epsilon-decreasing"), Spec("ucb"), Spec("thompson"), Spec("softmax", tau=0.06),
    Spec("softmax", tau=0.02), Spec("pursuit", beta=0.1), Spec("pursuit", beta=0.2),
)  # fmt: skip


def _timed(size: Size, arms: Sequence[int], modes: Sequence[Mode]) -> Iterator[Unit]:
    """Runs on the clock, by number of run, so that all is there once, then twice."""
    sets = (Data.EVEN,) if size.folder is None else (Data.MOVIELENS_TEXT, Data.JESTER_TEXT)
    for run in range(size.runs):
        for count in arms:
            for data in sets:
                for policy in ("ucb", "pursuit") if size.quick else NAMES:
                    for mode in modes:
                        if mode is not Mode.SHARES or (run == 0 and data is sets[0]):  # rounds do not depend on means
                            name = f"{mode.name.lower()}-{data.name.lower()}-{policy}-{count}-run-{run}"
                            passes = 2 if policy == "pursuit" else 1
                            weight = {Mode.PLAIN: 4.0, Mode.CLASSIC: 15.0 + count, Mode.SHARES: 120.0 + 3 * count}[mode]
                            yield Unit(name, times, (size, data, policy, count, mode, run), weight=passes * weight)


def _sizes(size: Size) -> tuple[int, ...]:
    return (4,) if size.quick else (10, 25, 50, 100)


def _a(size: Size) -> Iterator[Unit]:
    yield from _timed(size, _sizes(size)[-1:], (Mode.PLAIN, Mode.CLASSIC, Mode.SHARES))
    for mode in (Mode.LAUNCHED, Mode.LAUNCHED_SHARES):
        yield Unit(f"{mode.name.lower()}-ucb", launched, (size, _sizes(size)[-1], mode), weight=100.0)


def _b(size: Size) -> Iterator[Unit]:
    yield from _timed(size, _sizes(size), (Mode.PLAIN, Mode.CLASSIC, Mode.SHARES))


def _c(size: Size) -> Iterator[Unit]:
    for first in range(0, size.runs, _RUNS):  # so that all is there with a few runs, then with more
        for data in (Data.EVEN,) if size.folder is None else RATED:
            for spec in PLAYED[2:4] if size.quick else PLAYED:
                runs = min(_RUNS, size.runs - first)
                name = f"{data.name.lower()}-{label_of(spec).replace(' ', '-')}-runs-{first}-to-{first + runs - 1}"
                yield Unit(
                    name, rewards, (size, data, spec, first, runs), weight=6.0 if spec.name == "thompson" else 1.0
                )


def _d(size: Size) -> Iterator[Unit]:
    yield from _timed(size, (_sizes(size)[0], _sizes(size)[-1])[: 1 if size.quick else 2], (Mode.CLASSIC,))


_FOLDER = "this panel is on MovieLens and Jester: name the folder of their folders"

FIGURE_SET = FigureSet(
    "samba",
    "the panels of SAMBA's figure 8 are a, b, c and d",
    {
        "a": Figure("8a", _a, _FOLDER, runs=5, timed=True, kept=_SHARED, minutes=190),
        "b": Figure("8b", _b, _FOLDER, runs=5, timed=True, kept=_SHARED, minutes=210),
        "c": Figure("8c", _c, _FOLDER, minutes=110),
        "d": Figure("8d", _d, _FOLDER, runs=5, timed=True, kept=_SHARED),
    },
    draw,
    {"steps": (100_000, 120), "runs": (50, 2)},
)

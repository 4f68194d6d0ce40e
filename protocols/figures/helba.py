"""The figures of HELBA: what each runs, and on how much.

1        regret against t in the paper's problem: four policies in the clear, HELBA on shares      simulated
         with seal-python one run on ciphertexts as well
batches  regret by what ends a batch: 130 steps of the paper's problem, new features at each step  in the clear
updates  updates and regret against T, new features at each step                                   in the clear
time     time of a run against T, on shares from material, dealing, in the clear                   processes here
table 1  time of a step on ciphertexts against the level of security; needs seal-python             in this process

25 runs of each, as in the paper; its own values are only in its picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from bandits.helba import fresh, toy

from .helba_plots import draw
from .helba_runs import LEVELS, by_rule, on_ciphertexts, regrets, security, times, updates
from .making import Figure, FigureSet
from .size import Size
from .units import Unit


def _one(size: Size) -> Iterator[Unit]:
    for run in range(size.runs):
        yield Unit(f"run-{run}", regrets, (size.steps, run))
    if find_spec("seal") is not None and not size.quick:
        yield Unit("ciphertexts", on_ciphertexts, (size.steps, 0))


def _batches(size: Size) -> Iterator[Unit]:
    for run in range(size.runs):
        yield Unit(f"toy-{run}", by_rule, (toy, size.steps, run))
        yield Unit(f"fresh-{run}", by_rule, (fresh, 20 if size.quick else 2000, run))


def _updates(size: Size) -> Iterator[Unit]:
    for run in range(2 if size.quick else 6):
        yield Unit(f"run-{run}", updates, (100 if size.quick else 10_000, run))


def _time(size: Size) -> Iterator[Unit]:
    for steps in (10,) if size.quick else (130, 260, 520, 1040):
        yield Unit(f"steps-{steps}", times, (steps,))


def _security(size: Size) -> Iterator[Unit]:
    for level in LEVELS:
        yield Unit(f"{level}-bits", security, (1 if size.quick else 12, level))


FIGURES = {
    "1": Figure("1", _one, minutes=6),
    "batches": Figure("batches", _batches, minutes=5),
    "updates": Figure("updates", _updates, minutes=8),
    "time": Figure("time", _time, timed=True),
    "table1": Figure("table-1", _security, timed=True),
}
FIGURE_SET = FigureSet(
    "helba", "the figures of HELBA are 1, batches, updates and time, and table 1", FIGURES, draw,
    {"steps": (130, 12), "runs": (25, 2)},
)  # fmt: skip

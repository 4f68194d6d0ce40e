"""`scripts/bench helba`: HELBA on shares, two parties and the users as processes on loopback, beside the clear.

Material is dealt before the clock starts; what it cost stands in columns of its own.  `total` is a whole run, without
the start of processes.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

from bandits.helba import HELBA, Batches, Constants, Problem, fresh, play, toy
from mpc.tables import markdown

from ..helba.run import Encrypted, Run
from ..helba.settings import Settings
from ..run.exits import say
from ..run.launch import Processes, launch
from ..run.rehearsal import rehearse
from .helba_agreement import Make
from .measure import dealt, time_dealing
from .report import Page, head

PARTIES = 2
PAPER = (130, 74_340)  # steps, and seconds that the authors report: 20 h 39 min
_ABOUT = """Two computing parties and one process that plays
all users, on loopback. Times are of whole runs without the start of processes. Material is dealt beforehand;
'dealing' is one dealer's time for it. The paper reports 20 h 39 min, 74,340 s, for its problem of 130 steps,
encrypted, on a machine that it does not name."""
_TABLE = (
    ("problem", "s"), ("d", "d"), ("K", "d"), ("steps", ",d"), ("batches", "s"), ("run, s", ".2f"), ("goal, below", ""),
    ("ms a step", ".2f"), ("rounds a step", ".2f"), ("bytes to each peer, a step", ",.0f"),
    ("dealt a step, bytes", ","), ("dealing, s", ".2f"), ("in the clear, s", ".3f"), ("arms and ends", "s"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A problem, how it is played, and the seconds that its run has to stay below."""

    name: str
    make: Make
    settings: Settings
    goal: float | None = None

    @property
    def problem(self) -> Problem:
        """Of seed 1."""
        given = self.settings
        return self.make(given.constants, given.steps, 1, arms=given.arms)


CASES = (
    Case("toy", toy, Settings(Constants()), 1.0),
    *(Case("toy", toy, Settings(Constants(), batches=batches)) for batches in (Batches.HIDDEN, Batches.NONE)),
    Case("fresh", fresh, Settings(Constants(dim=20, norm=1.0), 10, 2000), 12.0),
)


@dataclass(frozen=True)
class Row:
    """One run; seconds and dealing_seconds are of all its steps."""

    problem: str
    dim: int
    arms: int
    steps: int
    batches: str
    goal: float | None
    seconds: float
    rounds: float
    opened_bytes: float
    offline_bytes: int
    dealing_seconds: float
    plain_seconds: float
    agrees: bool


def bench(options: argparse.Namespace) -> Page:
    """Measure all cases."""
    rows = []
    for case in CASES:
        given = case.settings
        steps = min(given.steps, 12) if options.quick else given.steps
        say(f"{case.name}, d = {given.constants.dim}, K = {given.arms}, {steps:,} steps, {given.batches.value}")
        small = Settings(given.constants, given.arms, steps, given.batches)
        rows.append(row_of(Case(case.name, case.make, small, case.goal)))
    return Page(json.dumps([asdict(row) for row in rows], indent=1), as_markdown(rows), missed(rows))


def row_of(case: Case) -> Row:
    """Play it, and beside it in the clear."""
    given, problem = case.settings, case.problem
    run, dealing = from_material(problem, given)
    return Row(
        case.name, given.constants.dim, given.arms, given.steps, given.batches.value, case.goal, run.seconds,
        run.cost.rounds / given.steps, run.cost.opened_bytes / given.steps, run.offline_bytes // given.steps,
        dealing * given.steps, plain_seconds(problem, given),
        run.first_difference is None and run.ends_equal is not False,
    )  # fmt: skip


def from_material(problem: Problem, settings: Settings) -> tuple[Run, float]:
    """A launched run from material dealt before, and the dealer's seconds a step."""
    program = Encrypted(settings, PARTIES, problem=problem)
    plan = rehearse(program).plan
    with dealt(plan, program.draws()) as folder:
        return launch(program, Processes(material=folder / "material")), 1e-6 * time_dealing(plan)


def plain_seconds(problem: Problem, settings: Settings) -> float:
    """The least of three."""
    spent = []
    for _ in range(3):
        started = time.perf_counter()
        play(HELBA(settings.constants, settings.batches), problem)
        spent.append(time.perf_counter() - started)
    return min(spent)


def as_markdown(rows: list[Row]) -> str:
    """A page for a reader."""
    table = [
        (row.problem, row.dim, row.arms, row.steps, row.batches, row.seconds, row.goal, 1e3 * row.seconds / row.steps,
         row.rounds, row.opened_bytes, row.offline_bytes, row.dealing_seconds, row.plain_seconds,
         "equal" if row.agrees else "NOT equal")
        for row in rows
    ]  # fmt: skip
    paper = [
        f"{row.steps} steps of the paper's problem: {PAPER[1] / row.seconds:,.0f} times faster than the paper reports."
        for row in rows[:1]
        if row.steps == PAPER[0]
    ]
    return "\n".join([*head("HELBA on shares", "helba", _ABOUT), *markdown(_TABLE, table), "", *paper]) + "\n"


def missed(rows: list[Row]) -> list[str]:
    """The goals that this run did not reach."""
    slow = [
        f"d = {row.dim}, K = {row.arms}, {row.steps:,} steps took {row.seconds:.2f} s, the goal is {row.goal:g}"
        for row in rows
        if row.goal is not None and row.seconds >= row.goal
    ]
    return slow + [f"{row.problem}, {row.batches}: other arms than in the clear" for row in rows if not row.agrees]

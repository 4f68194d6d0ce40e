"""`scripts/bench linucb`: a pull of the outsourced linear bandit, as published with Paillier and on shares.

Every participant is a process on loopback.  Classic: P, Comp, DO and DC.  On shares: two computing parties, DO and DC,
from material that is dealt before the clock starts; what it cost stands in columns of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np

from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from mpc.tables import markdown

from ..linucb_ds.classic.run import play_classic
from ..linucb_ds.mpc.run import Outsourced, Run
from ..linucb_ds.mpc.settings import Settings
from ..run.exits import say
from ..run.launch import Processes, launch
from ..run.rehearsal import rehearse
from .measure import dealt, time_dealing
from .report import Page, head

PARTIES = 2
# (dim, arms, key bits) -> milliseconds a pull that classic has to stay below: the published code's, over the goal
GOALS = {(3, 15, 1024): 9.6 / 2.0, (5, 50, 2048): 187.0 / 1.6, (18, 6, 2048): 156.0 / 4.0}
FASTER, AT = 30.0, (5, 50, 2048)  # than our classic
_CIPHERTEXTS = 3000  # of a classic run
LONG, LONG_SECONDS, LONG_SIZE = 1000, 3.0, (3, 15)
_ABOUT = """Each participant is a process on loopback; on shares there are two
computing parties, with DO and DC beside them. Times are means over pulls, without the start of processes,
the keys and the tables. Material is dealt beforehand; 'with dealing' adds the dealer's time to ours."""
_TIMES = (
    ("d", "d"), ("K", "d"), ("key bits", "d"), ("classic, ms", ".2f"), ("goal, below", ".1f"),
    ("arms shown, ms", ".2f"), ("times faster", ".0f"), ("with dealing", ".0f"),
    ("arms hidden, ms", ".2f"), ("times faster", ".0f"), ("with dealing", ".0f"),
)  # fmt: skip
_COSTS = (
    ("d", "d"), ("K", "d"), ("arms", "s"), ("rounds", ".2f"), ("bytes to each peer", ",.0f"),
    ("offline, bytes", ","), ("offline, ms", ".2f"),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One size; milliseconds are of one pull.  shown: arms known to the computing parties.  hidden: to nobody."""

    dim: int
    arms: int
    bits: int
    pulls: int
    classic: float
    shown: float
    shown_rounds: float
    shown_bytes: float
    shown_offline: float
    shown_offline_bytes: int
    hidden: float
    hidden_rounds: float
    hidden_bytes: float
    hidden_offline: float
    hidden_offline_bytes: int


@dataclass(frozen=True)
class LongRun:
    """A run from its command to its result, with a dealer beside it: seconds in all."""

    dim: int
    arms: int
    pulls: int
    seconds: float


def bench(options: argparse.Namespace) -> Page:
    """Measure all sizes."""
    rows, long = measure(quick=options.quick)
    return Page(as_json(rows, long), as_markdown(rows, long), missed(rows, long))


def measure(*, quick: bool) -> tuple[list[Row], LongRun]:
    """All sizes, and a long run."""
    rows = []
    for dim, arms, bits in GOALS:
        say(f"d = {dim}, K = {arms}, keys of {bits} bits")
        rows.append(_row(dim, arms, bits, quick=quick))
    pulls = 50 if quick else LONG
    say(f"d = {LONG_SIZE[0]}, K = {LONG_SIZE[1]}, {pulls:,} pulls")
    problem = problem_of(*LONG_SIZE)
    started = time.perf_counter()
    launch(Outsourced(Settings.of(problem, pulls), PARTIES, 1, problem), Processes())
    return rows, LongRun(*LONG_SIZE, pulls, time.perf_counter() - started)


def problem_of(dim: int, arms: int) -> LinearProblem:
    """Normal arms and theta of about norm 1."""
    rng = np.random.default_rng(1)
    x, theta = rng.normal(size=(arms, dim)) / np.sqrt(dim), rng.normal(size=dim) / np.sqrt(dim)
    return LinearProblem(x, theta, Confidence.of(x, theta))


def _row(dim: int, arms: int, bits: int, *, quick: bool) -> Row:
    problem = problem_of(dim, arms)
    classic = play_classic(problem, 5 if quick else _CIPHERTEXTS // arms, seed=1, bits=bits, processes=True)
    pulls = 20 if quick else 200
    shown, shown_dealing = on_shares(problem, Settings.of(problem, pulls))
    hidden, hidden_dealing = on_shares(problem, Settings.of(problem, pulls, hide=True))
    own = [
        (
            1e3 * run.seconds / pulls, run.cost.rounds / pulls, run.cost.opened_bytes / pulls, dealing / 1e3,
            run.offline_bytes // Outsourced(run.settings, PARTIES, 1).draws(),
        )
        for run, dealing in ((shown, shown_dealing), (hidden, hidden_dealing))
    ]  # fmt: skip
    return Row(dim, arms, bits, pulls, 1e3 * classic.seconds_per_step, *own[0], *own[1])


def on_shares(problem: LinearProblem, settings: Settings) -> tuple[Run, float]:
    """A launched run from material dealt before, and the dealer's microseconds a pull."""
    program = Outsourced(settings, PARTIES, 1, problem)
    plan = rehearse(program).plan
    with dealt(plan, program.draws()) as folder:
        return launch(program, Processes(material=folder / "material")), time_dealing(plan)


def as_json(rows: list[Row], long: LongRun) -> str:
    """One document."""
    return json.dumps({"rows": [asdict(row) for row in rows], "long": asdict(long)}, indent=1)


def as_markdown(rows: list[Row], long: LongRun) -> str:
    """A page for a reader."""
    times = [
        (row.dim, row.arms, row.bits, row.classic, GOALS[row.dim, row.arms, row.bits],
         row.shown, row.classic / row.shown, row.classic / (row.shown + row.shown_offline),
         row.hidden, row.classic / row.hidden, row.classic / (row.hidden + row.hidden_offline))
        for row in rows
    ]  # fmt: skip
    costs = [
        cost
        for row in rows
        for cost in (
            (row.dim, row.arms, "shown", row.shown_rounds, row.shown_bytes, row.shown_offline_bytes, row.shown_offline),
            (row.dim, row.arms, "hidden", row.hidden_rounds, row.hidden_bytes, row.hidden_offline_bytes,
             row.hidden_offline),
        )
    ]  # fmt: skip
    return "\n".join([
        *head("A pull of the outsourced linear bandit", "linucb", _ABOUT),
        *markdown(_TIMES, times),
        "",
        *markdown(_COSTS, costs),
        "",
        f"{long.pulls:,} pulls at d = {long.dim}, K = {long.arms}, arms shown, from the start of the processes to the "
        f"result, with a dealer process beside them: {long.seconds:.2f} s.",
    ]) + "\n"  # fmt: skip


def missed(rows: list[Row], long: LongRun) -> list[str]:
    """The goals that this run did not reach."""
    out = []
    for row in rows:
        size = row.dim, row.arms, row.bits
        if row.classic > GOALS[size]:
            out.append(f"classic at {size}: {row.classic:.1f} ms a pull, the goal is below {GOALS[size]:.1f}")
        if size == AT and row.classic / row.shown < FASTER:
            out.append(
                f"on shares at {size}: {row.classic / row.shown:.0f} times faster than classic, the goal is {FASTER:g}"
            )
    if long.seconds > LONG_SECONDS:
        out.append(f"{long.pulls:,} pulls took {long.seconds:.1f} s, the goal is {LONG_SECONDS:g}")
    return out

"""`masked attack linucb-ds` and `spectralucb-ds`: what the two halves of the cloud and DC find out, mode by mode."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits.linear_problem import ProblemError
from mpc.errors import ConfigError
from mpc.tables import plain

from ..linucb_ds.attacks import (
    SMALL,
    Attacked,
    CompFound,
    DCFound,
    classic,
    dc_on_shares,
    dc_published,
    hidden,
    shown,
)
from ..linucb_ds.problems import LINUCB, SPECTRAL, made_up
from ..run.progress import Progress
from .answer import answer
from .attack import add_kind

_FEWEST_ARMS = 4
_EXAMPLES = """examples:
  masked attack linucb-ds                           10 runs with normal arms
  masked attack linucb-ds --runs 40 --data-dir DIR  movies as arms, a user for each run
  masked attack spectralucb-ds --arms 10 --json
"""
_HEADS = ("as published", "arms shown", "arms hidden", "from nothing")
_ROWS = (
    ("Comp: pulled arms", "comp_arms"), ("Comp: places in its lists", "comp_places"),
    ("Comp: runs with all arms right", "comp_whole_runs"), ("Comp: worst reward of a run", "comp_reward_error"),
    ("Comp: theta by regression", "comp_theta_error"), ("Comp: theta from signs", "comp_theta_error_by_signs"),
    ("P: cosine with theta", "p_cosine"), ("DC: thetas there are", "dc_all"),
    ("DC: left by one sum", "dc_one"), ("DC: left by two", "dc_two"),
)  # fmt: skip
_MEANING = """arms and places  share that is right, +- two standard errors over runs
reward, theta    error, theta's relative to its norm; median over runs
cosine           mean +- two standard errors; 1 is theta's direction
thetas           words that theta can be, and that sums leave, of two orders of it; median over runs with
                 d = {}, {} arms, {} pulls
from nothing     the same attackers with random numbers for their view: what public data alone are worth
-                there is nothing to start from""".format(*SMALL)  # fmt: skip
_SECOND_ORDER = 1 << 20  # its seed, beside the first's


def register(group: Any) -> None:
    """Add both programs."""
    for program in (LINUCB, SPECTRAL):
        parser = add_kind(
            group, program, partial(_attack, program), examples=_EXAMPLES,
            help_="Comp recovers arms, rewards and theta, P theta's direction, DC theta; on shares, nobody",
            runs=(10, "problems to attack"), seeds="the first problem and its coins", mistakes=ProblemError,
        )  # fmt: skip
        parser.add_argument("--arms", type=int, default=15, help="how many arms (15)")
        parser.add_argument("--dim", type=int, default=3, help="dimensions of an arm; of movies before the graph (3)")
        parser.add_argument("--budget", type=int, default=100, help="N, pulls of a run (100)")
        parser.add_argument("--data-dir", type=Path, help="the folder with u.data of MovieLens 100K (normal arms)")


def _attack(program: str, options: argparse.Namespace) -> None:
    if options.arms < _FEWEST_ARMS or options.dim < 1 or options.budget < 3 or options.runs < 1:
        raise ConfigError(f"an attack takes at least {_FEWEST_ARMS} arms, 1 dimension, 3 pulls and 1 run")
    runs: list[tuple[Attacked, ...]] = []
    by_dc: list[tuple[DCFound, ...]] = []
    progress = Progress(options.runs, "run")
    for seed in range(options.seed, options.seed + options.runs):
        problem = made_up(program, arms=options.arms, dim=options.dim, seed=seed, folder=options.data_dir)
        published, arms_shown = classic(problem, options.budget, seed), shown(problem, options.budget, seed)
        runs.append((published, arms_shown, *hidden(problem, options.budget, seed)))
        if program == LINUCB:
            by_dc.append(_by_dc(seed))
        progress(len(runs))
    progress.end()
    facts = {
        "program": program, "arms": options.arms, "dim": options.dim, "budget": options.budget, "runs": options.runs,
        "seed": options.seed, "data": "movielens" if options.data_dir is not None else "normal",
        **{head: _summary(found) for head, found in zip(_HEADS, zip(*runs), strict=True)},
    }  # fmt: skip
    for head, left in zip(_HEADS, zip(*by_dc)):
        medians = np.median([[found.all, found.one, found.two] for found in left], axis=0).tolist()
        facts[head] |= dict(zip(("dc_all", "dc_one", "dc_two"), medians))
    answer(options, facts, _text(facts))


def _by_dc(seed: int) -> tuple[DCFound, ...]:
    """As published, and on shares with arms shown and hidden."""
    dim, arms, _ = SMALL
    problem, seeds = made_up(LINUCB, arms=arms, dim=dim, seed=seed), (seed, seed + _SECOND_ORDER)
    return dc_published(problem, seeds), *(dc_on_shares(problem, seeds, hide=hide) for hide in (False, True))


def _summary(runs: Sequence[Attacked]) -> dict[str, Any]:
    """Shares and cosines are means, with two standard errors; errors are medians."""
    comps = [run.comp for run in runs if run.comp is not None]
    summary: dict[str, Any] = {"p_cosine": _mean([run.p for run in runs])}
    if comps:
        summary |= {
            "comp_arms": _mean([comp.arms for comp in comps]),
            "comp_places": _mean([comp.orders for comp in comps]),
            "comp_whole_runs": sum(comp.arms == 1.0 for comp in comps),
            "comp_reward_error": float(np.median([comp.reward for comp in comps])),
            "comp_theta_error": float(np.median([comp.theta for comp in comps])),
            "comp_theta_error_by_signs": _exact(comps),
        }
    return summary


def _exact(comps: Sequence[CompFound]) -> float | None:
    """Where at least half of the runs had it."""
    exact = [comp.exact for comp in comps if comp.exact is not None]
    return float(np.median(exact)) if 2 * len(exact) >= len(comps) else None


def _mean(shares: Sequence[float]) -> dict[str, float]:
    spread = 2.0 * float(np.std(shares)) / max(1, len(shares) - 1) ** 0.5
    return {"mean": float(np.mean(shares)), "two_standard_errors": spread}


def _text(facts: dict[str, Any]) -> str:
    kind = "movies" if facts["data"] == "movielens" else "normal arms"
    rows = [(name, *(_cell(key, facts[head].get(key)) for head in _HEADS)) for name, key in _ROWS]
    return "\n".join([
        f"{facts['runs']} runs of {facts['budget']} pulls, {facts['arms']} {kind}, d = {facts['dim']}",
        "",
        *plain([("", "s"), *((head, ">") for head in _HEADS)], rows),
        "",
        _MEANING,
    ])  # fmt: skip


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        mean, spread = value["mean"], value["two_standard_errors"]
        return f"{mean:.4f} +- {spread:.4f}" if key == "p_cosine" else f"{100 * mean:.1f} +- {100 * spread:.1f} %"
    if key.startswith("dc_"):
        return f"2^{value:.1f}"
    return f"{value:d}" if isinstance(value, int) else f"{value:.2g}" if value < 0.1 or value > 10 else f"{value:.3f}"

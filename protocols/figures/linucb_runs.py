"""Rows of the LinUCB-DS paper's figures: what takes time in a run as published, on so many cores."""

from __future__ import annotations

from ..linucb_ds.problems import PAPER, as_published
from .linucb_modes import Policy, classic, problem_of
from .size import Size
from .units import Rows


def times(size: Size, policy: Policy, pulls: int, dim: int, arms: int, cores: int, bits: int, run: int) -> Rows:
    """Seconds on the clock of a run's pulls, by what takes them; keys, tables and the sum apart."""
    problem = as_published(problem_of(size, policy, dim=dim, arms=arms, constants=PAPER))
    done = classic(size, problem, pulls, processes=False, cores=cores, bits=bits)
    spent = done.costly
    spent["the rest"] = done.seconds_per_step * (pulls - 1) - sum(spent.values())
    row = {
        "policy": policy.value,
        "N": pulls,
        "d": problem.dim,
        "K": arms,
        "bits": done.bits,
        "cores": cores,
        "run": run,
    }
    return [{**row, "part": part, "seconds": round(seconds, 6)} for part, seconds in spent.items()]

"""A run as one document, as text and as a picture.  Knows results; no protocol."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..run.program import Program
from ..run.report import Report, plain_report
from .program import ROUNDS_TO_ARM
from .run import NEAR, Run


def report(program: Program[Any], run: Run) -> Report:
    """Costs and the ledger behind what is HELBA's own."""
    given, smallest = run.settings, float(run.twin.gaps.min())
    facts = {
        "mode": "mpc",
        "batches": given.batches.value,
        "arms": given.arms,
        "dim": given.constants.dim,
        "regret": run.regret,
        "twin_regret": run.twin.regret,
        "arms_equal_twin": run.first_difference is None,
        "first_difference": _difference(run),
        "updates": None if run.ends is None else int(run.ends.sum()),
        "updates_equal_twin": run.ends_equal,
        "near_ties": int((run.twin.gaps <= NEAR).sum()),
        "smallest_gap": smallest if math.isfinite(smallest) else None,
        "rounds_to_arm": ROUNDS_TO_ARM,
    }
    plain = plain_report(program, facts, _said(run), run.ended)
    return replace(plain, picture=lambda path: _regret(run, path))


def _difference(run: Run) -> dict[str, Any] | None:
    at = run.first_difference
    return None if at is None else {"step": at, "gap": float(run.twin.gaps[at])}


def _said(run: Run) -> list[str]:
    given = run.settings
    ended = "nobody knows how many batches" if run.ends is None else f"{int(run.ends.sum()):,} batches"
    head = (
        f"{given.steps:,} steps, {given.arms} arms, {given.constants.dim} dimensions, {ended} ({given.batches.value}): "
        f"regret {run.regret:.4f}, in the clear {run.twin.regret:.4f}"
    )
    if (apart := _difference(run)) is not None:
        gap = f"where the two best indices were {apart['gap']:.2g} apart"
        return [head, f"it first pulled another arm than the policy in the clear at step {apart['step']}, {gap}"]
    alike = {
        None: "the same arms as",
        True: "the same arms and batch ends as",
        False: "the same arms, NOT the ends, of",
    }
    closest = f"whose two best indices were never closer than {run.twin.gaps.min():.1g}"
    return [head, f"{alike[run.ends_equal]} the policy in the clear, {closest}"]


def _regret(run: Run, path: Path) -> None:
    from ..run.plots import curves

    rows = [(np.cumsum(run.problem.lost(run.twin.arms)), "in the clear", "C0--")]
    rows.append((np.cumsum(run.problem.lost(run.arms)), "on shares", "C1-"))
    title = f"HELBA, {run.settings.arms} arms, d = {run.settings.constants.dim}, batches {run.settings.batches.value}"
    curves(rows, x="step", y="cumulative regret", title=title, path=path)

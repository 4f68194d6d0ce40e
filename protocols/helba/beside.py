"""A run beside the policy in the clear, however it was played.  Knows arms and batch ends; no protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bandits.helba import Played, Problem

from .game import Game


@dataclass(frozen=True)
class Beside:
    """arms and ends: by step; ends None where nobody knows them.  twin: of the policy in the clear.

    mode, where: how the run was played.  near: how far apart indices can be that its roundings may order otherwise.
    """

    mode: ClassVar[str]
    where: ClassVar[str]
    near: ClassVar[float]

    settings: Game
    problem: Problem
    arms: np.ndarray
    ends: np.ndarray | None
    twin: Played

    @property
    def regret(self) -> float:
        """Of the arms that were pulled."""
        return float(self.problem.lost(self.arms).sum())

    @property
    def first_difference(self) -> int | None:
        """The first step at which another arm was pulled than in the clear."""
        apart = np.nonzero(self.arms != self.twin.arms)[0]
        return int(apart[0]) if apart.size else None

    @property
    def ends_equal(self) -> bool | None:
        """Whether batches ended behind the same steps."""
        return None if self.ends is None else bool((self.ends == self.twin.ends).all())


def facts(run: Beside) -> dict[str, Any]:
    """For a document."""
    given, smallest = run.settings, float(run.twin.gaps.min())
    return {
        "mode": run.mode,
        "batches": given.batches.value,
        "arms": given.arms,
        "dim": given.constants.dim,
        "regret": run.regret,
        "twin_regret": run.twin.regret,
        "arms_equal_twin": run.first_difference is None,
        "first_difference": _difference(run),
        "updates": None if run.ends is None else int(run.ends.sum()),
        "updates_equal_twin": run.ends_equal,
        "near_ties": int((run.twin.gaps <= run.near).sum()),
        "smallest_gap": smallest if math.isfinite(smallest) else None,
    }


def said(run: Beside) -> list[str]:
    """For a person."""
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


def picture(run: Beside, path: Path) -> None:
    """Cumulative regret."""
    from ..run.plots import curves

    pulled: Sequence[tuple[np.ndarray, str, str]] = (
        (run.twin.arms, "in the clear", "C0--"),
        (run.arms, run.where, "C1-"),
    )
    rows = [(np.cumsum(run.problem.lost(arms)), name, style) for arms, name, style in pulled]
    title = f"HELBA, {run.settings.arms} arms, d = {run.settings.constants.dim}, batches {run.settings.batches.value}"
    curves(rows, x="step", y="cumulative regret", title=title, path=path)


def _difference(run: Beside) -> dict[str, Any] | None:
    at = run.first_difference
    return None if at is None else {"step": at, "gap": float(run.twin.gaps[at])}

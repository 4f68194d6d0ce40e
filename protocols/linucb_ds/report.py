"""A run as one document, and as text, of either mode.  Knows results; no protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mpc.ledger import EVERYONE, Entry

from .classic.run import ClassicRun
from .mpc.run import Run

PARTIES = "computing parties"


def document(run: Run, *, seed: int) -> dict[str, Any]:
    """The run as other tools read it.

    arms: null where they are hidden.  first_difference: from the reference, where the one who asks may know it.
    """
    settings = run.settings
    difference = run.difference if not settings.hide else None
    return {
        "mode": "mpc",
        "reveal": "nothing" if settings.hide else "arms",
        "budget": settings.budget,
        "seed": seed,
        "parties": run.parties,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": None if run.reference is None else run.reference.total,
        "arms": run.arms,
        "first_difference": None if difference is None else asdict(difference),
        "fraction_bits": asdict(settings.scales),
        "seconds_per_step": run.seconds / settings.budget,
        "offline_seconds_per_step": run.offline_seconds / settings.budget,
        "operations": run.operations,
        "ledger": [{**asdict(entry), "role": _who(entry)} for entry in run.ledger],
    }


def classic_document(run: ClassicRun, *, seed: int) -> dict[str, Any]:
    """The same of a run with Paillier; P may know the arms."""
    counts = asdict(run.counts)
    return {
        "mode": "classic",
        "reveal": "arms",
        "budget": len(run.arms),
        "seed": seed,
        "bits": run.bits,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": run.reference.cumulative_reward,
        "arms": run.arms,
        "first_difference": next(iter(_differences(run)), None),
        "fraction_bits": asdict(run.scales),
        "seconds_per_step": run.seconds_per_step,
        "operations": counts,
        "ledger": [asdict(entry) for entry in run.ledger],
    }


def _who(entry: Entry) -> str:
    """A session's 'everyone' is its computing parties; clients and observers are not among them."""
    return PARTIES if entry.role == EVERYONE else entry.role


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    settings, cost = run.settings, run.cost
    each = 1e3 / settings.budget
    rows = [(_who(entry), f"{entry.count:,} x {entry.what}", entry.why) for entry in run.ledger]
    if settings.hide:
        rows.append((PARTIES, "nothing", "arms and constants are public"))
    rows.append(("DO", "nothing", "theta is its own"))
    lines = [
        f"{settings.budget:,} pulls of {settings.count} arms in {settings.dim} dimensions, {run.parties} computing "
        f"parties: cumulative reward {run.cumulative_reward:.6f}",
        _beside(run),
        "",
        f"a pull took {cost.rounds / settings.budget:g} rounds, {cost.opened_bytes / settings.budget:,.0f} bytes from "
        f"each party to each other, {each * run.seconds:.2f} ms;",
        f"dealt beforehand: {run.offline_bytes / settings.budget:,.0f} bytes, {each * run.offline_seconds:.2f} ms of "
        "the dealer's time",
        "",
        *_learned(rows),
    ]
    return "\n".join(lines)


def classic_text(run: ClassicRun) -> str:
    """What a person wants to know at the end."""
    reference = run.reference.cumulative_reward
    counts = ", ".join(f"{count:,} {name}" for name, count in asdict(run.counts).items())
    rows = [(entry.role, f"{entry.count:,} x {entry.what}", entry.why) for entry in run.ledger]
    rows.append(("DO", "nothing", "theta is its own"))
    lines = [
        f"{len(run.arms):,} pulls with keys of {run.bits} bits: cumulative reward {run.cumulative_reward:.6f}",
        "the same arms and the same integer as the fixed-point reference"
        if run.exact
        else f"not the fixed-point reference's, whose cumulative reward is {reference:.6f}",
        "",
        f"a pull took {1e3 * run.seconds_per_step:.2f} ms; in all {counts}",
        "",
        *_learned(rows),
    ]
    return "\n".join(lines)


def _differences(run: ClassicRun) -> Iterator[dict[str, Any]]:
    for step, (arm, pull) in enumerate(zip(run.arms, run.reference.pulls)):
        if arm != pull.arm:
            yield {"step": step, "gap": pull.gap}


def _learned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return [
        "who learned what",
        *(f"  {role.ljust(widths[0])}  {what.ljust(widths[1])}  {why}" for role, what, why in rows),
    ]


def _beside(run: Run) -> str:
    reference = run.reference
    if reference is None:
        return "the coins of this material are the dealer's alone, so no reference was played"
    if run.settings.hide:
        apart, precision = abs(run.cumulative_reward - reference.total), run.settings.ranges.precision
        return f"the reference in float64, with the same coins: {reference.total:.6f}" + (
            f"; {apart:.2g} apart: of indices closer than {2 * precision:.1g} another may be the best"
            if apart > 1e-6
            else ""
        )
    if run.difference is None and run.word == reference.word:
        return "the same arms and the same integer as the fixed-point reference"
    where = "" if run.difference is None else f", first at step {run.difference.step}, gap {run.difference.gap:.2g}"
    return f"not the fixed-point reference's, whose cumulative reward is {reference.total:.6f}{where}"

"""A run as one document, and as text, of either mode.  Knows results; no protocol."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mpc.ledger import EVERYONE, Entry
from mpc.tables import plain

from ..published.paillier import Counts
from ..run.report import cost_text, costs, learned, ledger_json
from .classic.run import ClassicRun
from .mpc.run import Run

PARTIES = "computing parties"
_OWNER_LEARNED = ("DO", "nothing", "theta is its own")


def document(run: Run) -> dict[str, Any]:
    """The run as other tools read it.

    arms: null where they are hidden.  first_difference: from the reference, where arms may be known.
    """
    settings = run.settings
    difference = None if settings.hide else run.difference
    return {
        "reveal": "nothing" if settings.hide else "arms",
        "budget": settings.budget,
        "parties": run.parties,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": run.reference_reward,
        "sum_unit": settings.unit,
        "arms": run.arms,
        "first_difference": None if difference is None else asdict(difference),
        "fraction_bits": asdict(settings.scales),
        **costs(run.ended, settings.budget),
        "operations": run.operations,
        "ledger": [{**row, "role": _who(row["role"])} for row in ledger_json(run.ledger)],
    }


def classic_document(run: ClassicRun) -> dict[str, Any]:
    """The same of a run with Paillier; P may know the arms."""
    where = next(
        ({"step": at, "gap": pull.gap} for at, pull in enumerate(run.reference.pulls) if pull.arm != run.arms[at]), None
    )
    return {
        "reveal": "arms",
        "budget": len(run.arms),
        "bits": run.bits,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": run.reference.cumulative_reward,
        "arms": run.arms,
        "first_difference": where,
        "fraction_bits": asdict(run.scales),
        "seconds_per_step": run.seconds_per_step,
        "cores": run.cores,
        "operations": asdict(run.counts),
        "operations_by_phase": {phase: asdict(counts) for phase, counts in run.phases.items()},
        "paper_operations_by_phase": {phase: asdict(counts) for phase, counts in run.paper_phases.items()},
        "ledger": ledger_json(run.ledger),
    }


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    settings = run.settings
    entries: list[Entry | tuple[str, str, str]] = [
        Entry(_who(entry.role), entry.what, entry.count, entry.why) for entry in run.ledger
    ]
    if settings.hide:
        entries.append((PARTIES, "nothing", "arms and constants are public"))
    lines = [
        f"{settings.budget:,} pulls of {settings.count} arms in {settings.dim} dimensions, {run.parties} computing "
        f"parties: cumulative reward {run.cumulative_reward:.10g}, to the nearest {settings.unit:g}",
        _beside(run),
        "",
        *cost_text(costs(run.ended, settings.budget), "pull"),
        "",
        *learned([*entries, _OWNER_LEARNED]),
    ]
    return "\n".join(lines)


def classic_text(run: ClassicRun) -> str:
    """What a person wants to know at the end."""
    reference = run.reference.cumulative_reward
    lines = [
        f"{len(run.arms):,} pulls with keys of {run.bits} bits: cumulative reward {run.cumulative_reward:.6f}",
        "the same arms and the same integer as the fixed-point reference"
        if run.exact
        else f"not the fixed-point reference's, whose cumulative reward is {reference:.6f}",
        "",
        f"a pull took {1e3 * run.seconds_per_step:.2f} ms, on {run.cores} core(s)",
        "",
        "operations on ciphertexts, counted here and as the paper's Figure 5 has them:",
        "",
        *_operations(run),
        "",
        *learned([*run.ledger, _OWNER_LEARNED]),
    ]
    return "\n".join(lines)


def _operations(run: ClassicRun) -> list[str]:
    """A line for each phase, and for what the paper says of it."""
    columns = [("phase", "s"), ("by", "s"), *((name, ",") for name in asdict(Counts()))]
    return plain(columns, [
        (phase, by, *asdict(counts).values())
        for phase, here in run.phases.items()
        for by, counts in (("here", here), ("the paper", run.paper_phases[phase]))
    ])  # fmt: skip


def _who(role: str) -> str:
    """A session's 'everyone' is its computing parties; clients and observers are not among them."""
    return PARTIES if role == EVERYONE else role


def _beside(run: Run) -> str:
    reference = run.reference
    if reference is None:
        return "the coins of this material are the dealer's alone, so no reference was played"
    if run.settings.hide:
        precision = run.settings.ranges.precision
        return f"the reference in float64, with the same coins: {run.reference_reward:.10g}" + (
            "" if run.word == reference.word
            else f": of indices closer than {2 * precision:.1g} another may be the best"
        )  # fmt: skip
    if run.difference is None and run.word == reference.word:
        return "the same arms and the same sum as the fixed-point reference"
    where = "" if run.difference is None else f", first at step {run.difference.step}, gap {run.difference.gap:.2g}"
    return f"not the fixed-point reference's, whose cumulative reward is {run.reference_reward:.10g}{where}"

"""A run as one document, and as text, of either mode.  Knows results; no protocol.

A step is one that chooses an arm: rounds and seconds are means over these N - K steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from mpc.ledger import Entry

from ..run.report import cost_text, costs, learned, ledger_json
from .classic.run import ClassicRun
from .mpc.run import Run
from .mpc.settings import Settings

_HOPS = 4  # of a classic iteration: to the Controller, to Comp, back, and back


def document(run: Run) -> dict[str, Any]:
    """The run as other tools read it; the ledger has a row for each owner."""
    settings = run.settings
    return {
        "policy": settings.policy,
        "mode": "mpc",
        "arms": settings.arms,
        "budget": settings.budget,
        "parties": run.parties,
        "hosts": settings.hosts,
        "cumulative_reward": run.total,
        "reference_cumulative_reward": None if run.reference is None else run.reference.total,
        "pulls_equal_reference": run.equal,
        **costs(run.ended, max(1, settings.steps)),
        "ledger": ledger_json(by_owner(run.ledger, settings)),
    }


def classic_document(run: ClassicRun) -> dict[str, Any]:
    """The same of the published protocol."""
    return {
        "policy": run.spec.name,
        "mode": "classic",
        "arms": len(run.game.pulls),
        "budget": run.budget,
        "bits": run.bits,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": None if run.reference is None else run.reference.total,
        "pulls_equal_reference": run.pulls_equal_reference,
        "seconds_per_step": run.seconds_per_step,
        "rounds_per_step": float(_HOPS * run.spec.policy().iterations) if run.budget > len(run.game.pulls) else 0.0,
        "seconds_by_participant": run.seconds,
        "operations": asdict(run.counts),
        "ledger": ledger_json(run.ledger),
    }


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    settings = run.settings
    rows = _rows(by_owner(run.ledger, settings), settings.arms)
    nothing = [
        (f"parties 0 to {run.parties - 1}", "nothing", "they hold shares, and open masks"),
        ("an observer", "nothing", "it sees shares and masks"),
    ]
    if 1 < settings.hosts < settings.arms:
        nothing.insert(0, ("a host", "what its owners learn", "it plays them"))
    hosted = f", owners in {settings.hosts} processes" if settings.hosts > 1 else ""
    return "\n".join([
        f"{settings.policy}: {settings.budget:,} pulls of {settings.arms} arms, {run.parties} computing parties"
        f"{hosted}: cumulative reward {run.total:,}",
        _beside(run),
        "",
        *cost_text(costs(run.ended, max(1, settings.steps)), "step"),
        "",
        *learned([*rows, *nothing]),
    ])  # fmt: skip


def classic_text(run: ClassicRun) -> str:
    """What a person wants to know at the end."""
    shares = {name: seconds for name, seconds in run.seconds.items() if seconds > 0}
    whole = sum(shares.values())
    same = {
        None: "no reference was played",
        True: "every pull, every (s_i, n_i) and the sum are those of the plaintext policy with the same coins",
        False: "NOT what the plaintext policy pulled with the same coins",
    }[run.pulls_equal_reference]
    return "\n".join([
        f"{run.spec.name}: {run.budget:,} pulls of {len(run.game.pulls)} arms as published, Paillier keys of "
        f"{run.bits} bits: cumulative reward {run.cumulative_reward:,}",
        same,
        "",
        f"a step took {1e3 * run.seconds_per_step:.2f} ms; of all computing "
        + ", ".join(f"{name} {100 * seconds / whole:.0f}%" for name, seconds in shares.items()),
        "",
        *learned(_rows(run.ledger, len(run.game.pulls))),
    ])  # fmt: skip


def by_owner(ledger: Iterable[Entry], settings: Settings) -> Iterator[Entry]:
    """The ledger with a row for each owner where a host's row is about all of its owners alike."""
    blocks = dict(zip(settings.roles, settings.blocks))
    for entry in ledger:
        block = blocks.get(entry.role, range(0))
        if len(block) < 2 or entry.count % len(block):
            yield entry
            continue
        for owner in block:
            yield Entry(f"owner {owner}", entry.what, entry.count // len(block), entry.why)


def _rows(ledger: Iterable[Entry], arms: int) -> list[tuple[str, str, str]]:
    """Role, what and why, with one row for all owners where all learned the same."""
    entries = list(ledger)
    owners = {f"owner {owner}" for owner in range(arms)}
    rows = []
    for entry in entries:
        alike = {
            other.role
            for other in entries
            if (other.what, other.count, other.why) == (entry.what, entry.count, entry.why)
        }
        role = "each owner" if alike == owners and arms > 1 else entry.role
        rows.append((role, f"{entry.count:,} x {entry.what}", entry.why))
    return [*dict.fromkeys(rows), ("each owner", "its own pulls and rewards", "its arm")]


def _beside(run: Run) -> str:
    if run.reference is None:
        return "the coins of this material are the dealer's alone, so no reference was played"
    if run.equal:
        return "every pull, every (s_i, n_i) and the sum are those of the plaintext policy with the same coins"
    return f"NOT what the plaintext policy pulled with the same coins; its cumulative reward is {run.reference.total:,}"

"""A run as one document, and as text, of either mode.  Knows results; no protocol.

A step is one that chooses an arm: rounds and seconds are means over these N - K steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mpc.ledger import Entry

from .classic.run import ClassicRun
from .mpc.run import Run
from .mpc.settings import Settings

_HOPS = 4  # of a classic iteration: to the Controller, to Comp, back, and back


def document(run: Run, *, seed: int) -> dict[str, Any]:
    """The run as other tools read it; the ledger has a row for each owner."""
    settings, steps = run.settings, max(1, run.settings.steps)
    return {
        "policy": settings.policy,
        "mode": "mpc",
        "arms": settings.arms,
        "budget": settings.budget,
        "seed": seed,
        "parties": run.parties,
        "hosts": settings.hosts,
        "cumulative_reward": run.total,
        "reference_cumulative_reward": None if run.reference is None else run.reference.total,
        "pulls_equal_reference": run.equal,
        "seconds_per_step": run.seconds / steps,
        "rounds_per_step": run.cost.rounds / steps,
        "client_messages_per_step": run.cost.client_hops / steps,
        "bytes_per_step_per_party": run.cost.opened_bytes / steps,
        "offline_seconds_per_step": run.offline_seconds / steps,
        "offline_bytes_per_step": run.offline_bytes / steps,
        "ledger": [asdict(entry) for entry in by_owner(run.ledger, settings)],
    }


def classic_document(run: ClassicRun, *, seed: int) -> dict[str, Any]:
    """The same of the published protocol."""
    return {
        "policy": run.spec.name,
        "mode": "classic",
        "arms": len(run.pulls),
        "budget": run.budget,
        "seed": seed,
        "bits": run.bits,
        "cumulative_reward": run.cumulative_reward,
        "reference_cumulative_reward": None if run.reference is None else run.reference.total,
        "pulls_equal_reference": run.pulls_equal_reference,
        "seconds_per_step": run.seconds_per_step,
        "rounds_per_step": float(_HOPS * run.spec.policy().iterations) if run.budget > len(run.pulls) else 0.0,
        "seconds_by_participant": run.seconds,
        "operations": asdict(run.counts),
        "ledger": [asdict(entry) for entry in run.ledger],
    }


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    settings, facts = run.settings, document(run, seed=0)
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
        f"a step took {facts['rounds_per_step']:g} rounds, {facts['bytes_per_step_per_party']:,.0f} bytes from each "
        f"party to each other, {1e3 * facts['seconds_per_step']:.2f} ms;",
        f"dealt beforehand: {facts['offline_bytes_per_step']:,.0f} bytes, "
        f"{1e3 * facts['offline_seconds_per_step']:.2f} ms of the dealer's time",
        "",
        *_learned([*rows, *nothing]),
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
        f"{run.spec.name}: {run.budget:,} pulls of {len(run.pulls)} arms as published, Paillier keys of {run.bits} "
        f"bits: cumulative reward {run.cumulative_reward:,}",
        same,
        "",
        f"a step took {1e3 * run.seconds_per_step:.2f} ms; of all computing "
        + ", ".join(f"{name} {100 * seconds / whole:.0f}%" for name, seconds in shares.items()),
        "",
        *_learned(_rows(run.ledger, len(run.pulls))),
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


def _learned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return [
        "who learned what",
        *(f"  {role.ljust(widths[0])}  {what.ljust(widths[1])}  {why}" for role, what, why in rows),
    ]


def _beside(run: Run) -> str:
    if run.reference is None:
        return "the coins of this material are the dealer's alone, so no reference was played"
    if run.equal:
        return "every pull, every (s_i, n_i) and the sum are those of the plaintext policy with the same coins"
    return f"NOT what the plaintext policy pulled with the same coins; its cumulative reward is {run.reference.total:,}"

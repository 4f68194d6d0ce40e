"""What a participant of classic SAMBA ends with.  Knows counts and disclosures; no message."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from mpc.ledger import Ledger

from ...published.paillier import Counts


@dataclass
class Operations:
    """seals, opens: of AES-GCM.  masks: products of a word and a mask.  permutations: of a list, there or back."""

    seals: int = 0
    opens: int = 0
    masks: int = 0
    permutations: int = 0
    paillier: Counts = field(default_factory=Counts)

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            self.seals + other.seals, self.opens + other.opens, self.masks + other.masks,
            self.permutations + other.permutations, self.paillier + other.paillier,
        )  # fmt: skip


@dataclass
class Outcome:
    """done: steps.  pulls, sums, steps in which each pulled: of owners, by row.  total: DC's.

    wall_seconds, cpu_seconds: the Controller's, and its process's, from the first choice to the last.
    """

    name: str
    counts: Operations = field(default_factory=Operations)
    ledger: Ledger = field(default_factory=Ledger)
    done: int = 0
    pulls: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    steps: list[list[int]] = field(default_factory=list)
    total: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    def learned(self, what: str, count: int, why: str, role: str = "") -> None:
        """A line of the ledger, where there is anything to it."""
        if count:
            self.ledger.record(role or self.name, what, count, why)

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        given = {name: getattr(self, name) for name in _PLAIN}
        return {**given, "counts": asdict(self.counts), "ledger": [asdict(entry) for entry in self.ledger]}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Outcome:
        """What `as_json` gave."""
        counts = dict(given["counts"])
        done = cls(**{name: given[name] for name in _PLAIN})
        done.counts = Operations(**{**counts, "paillier": Counts(**counts["paillier"])})
        for entry in given["ledger"]:
            done.ledger.record(**entry)
        return done


_PLAIN = ("name", "done", "pulls", "sums", "steps", "total", "wall_seconds", "cpu_seconds")

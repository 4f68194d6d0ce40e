"""What a participant ends with, and how that comes from its process.  Knows a name and disclosures; no message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from mpc.ledger import Ledger

O = TypeVar("O", bound="Outcome")  # noqa: E741


@dataclass
class Outcome:
    """What all have; a protocol adds what its participants count and find."""

    name: str
    ledger: Ledger = field(default_factory=Ledger)

    def learned(self, what: str, count: int, why: str, role: str = "") -> None:
        """A line of the ledger, where there is anything to it."""
        if count:
            self.ledger.record(role or self.name, what, count, why)

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        return {**asdict(self), "ledger": [asdict(entry) for entry in self.ledger]}

    @classmethod
    def from_json(cls: type[O], given: dict[str, Any]) -> O:
        """What `as_json` gave."""
        done = cls(**{**given, "ledger": Ledger()})
        for entry in given["ledger"]:
            done.ledger.record(**entry)
        return done


def whole_ledger(outcomes: Iterable[Outcome]) -> Ledger:
    """Of several participants."""
    whole = Ledger()
    for outcome in outcomes:
        for entry in outcome.ledger:
            whole.record(entry.role, entry.what, entry.count, entry.why)
    return whole

"""What clients of a service know that is killed, and what they see that is wrong.  Knows answers; no service."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """What clients know.  told: by decision, its arm.  paid: answered with 200.  sent: rewards that may be learned.

    keyed: what was asked with a key, and the answer, None until there was one.
    """

    told: dict[int, Any] = field(default_factory=dict)
    paid: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    keyed: dict[str, tuple[str, Any, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def decided(self, answer: Any) -> int:
        """A decision was told for the first time."""
        number = int(answer["decision_id"])
        with self.lock:
            if number in self.told:
                self.wrong.append(f"number {number} was given twice")
            self.told[number] = answer["arm"]
        return number

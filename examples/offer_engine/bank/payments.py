"""The bank's books: `payments.csv`, beside this file, has a line for each offer that was used or is void.

    decision,1      paid with in time
    decision,0      void

Lines come late and in any order; `came` waits for that of one decision.  In a role's file:

    [world]
    hear = "payments:came"
"""

from __future__ import annotations

import time
from pathlib import Path

BOOK = Path(__file__).with_name("payments.csv")
PATIENCE = 600.0  # seconds: rather an error than a role that waits for ever


def came(decision: int) -> float:
    """1 where the offer of this decision was used, 0 where it is void."""
    until = time.monotonic() + PATIENCE
    while decision not in (known := book()):
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.02)
    return known[decision]


def book() -> dict[int, float]:
    """All that is known by now; a line that is being written is not."""
    whole = BOOK.read_text().rpartition("\n")[0].splitlines() if BOOK.exists() else []
    lines = (line.partition(",") for line in whole)
    return {int(number): float(used) for number, _, used in lines}

"""Who learned what.  Knows every disclosure of a session; no value that was disclosed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .tables import aligned

EVERYONE = "everyone"


@dataclass(frozen=True)
class Entry:
    """`role` learned `count` values called `what`, because `why`."""

    role: str
    what: str
    count: int
    why: str


class Ledger:
    """Disclosures added up by (role, what, why), in order of first appearance."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._watch: Callable[[], None] = lambda: None

    def record(self, role: str, what: str, count: int, why: str) -> None:
        """Add `count` values to what `role` has learned."""
        self.record_all([(role, what, count, why)])

    def record_all(self, disclosures: Iterable[tuple[str, str, int, str]]) -> None:
        """What leaves together, each as `record`."""
        for role, what, count, why in disclosures:
            key = (role, what, why)
            self._counts[key] = self._counts.get(key, 0) + count
        self._watch()

    @contextlib.contextmanager
    def watched(self, watch: Callable[[], None]) -> Iterator[None]:
        """Until the block is left, call `watch` when disclosures were counted, before they leave."""
        self._watch, before = watch, self._watch
        try:
            yield
        finally:
            self._watch = before

    def __iter__(self) -> Iterator[Entry]:
        counts = list(self._counts.items())  # another thread may be adding
        return (Entry(role, what, count, why) for (role, what, why), count in counts)

    def __len__(self) -> int:
        return len(self._counts)

    def table(self) -> str:
        """The ledger as aligned text."""
        rows = [("role", "what", "count", "why")] + [(e.role, e.what, str(e.count), e.why) for e in self]
        if len(rows) == 1:
            return "nobody learned anything"
        rule = tuple("-" * max(map(len, column)) for column in zip(*rows, strict=True))
        return "\n".join(aligned([rows[0], rule, *rows[1:]]))

    def __repr__(self) -> str:
        return f"Ledger({len(self)} entries)"

"""Parts of contexts, which owners send one by one, until a decision is asked for.  Knows numbers; no share, no request.

They are kept in memory alone: after a crash owners send theirs again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mpc.errors import RangeError
from mpc.net.requests import Refused

from ..library.arguments import contexts_of


class _Parts(NamedTuple):
    since: float
    blocks: dict[int, np.ndarray]

    def __repr__(self) -> str:
        return f"_Parts(since={self.since!r}, hidden)"


@dataclass(frozen=True)
class Taken:
    """Contexts that wait no longer.  rows: (contexts, dim).  put_back: they wait again, as if they had just come."""

    rows: np.ndarray = field(repr=False)
    put_back: Callable[[], None] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)


class Waiting:
    """Any thread may call it.

    blocks: whose the features are, of owners that have any.  bound, bits: of their norms, as `contexts_of` has them.
    most: contexts; longest: seconds that one waits.
    """

    def __init__(
        self, blocks: dict[int, slice], bound: float, *, bits: int = 20, most: int = 10_000, longest: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._blocks, self._bound, self._bits, self._clock = blocks, bound, bits, clock
        self._most, self._longest = most, longest
        self._dim = max(block.stop for block in blocks.values())
        self._found: dict[str, _Parts] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def put(self, owner: int, names: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
        """One owner's features of some contexts: all of them, or none and `Refused`."""
        block = self._blocks.get(owner)
        if block is None:
            raise Refused(422, f"owner {owner} has no features: there is nothing to send")
        width = block.stop - block.start
        if any(len(row) != width for row in rows):
            raise Refused(422, f"owner {owner} has {width} features of each context: send as many")
        try:
            found, _ = contexts_of(
                np.array(rows, np.float64), {owner: slice(0, width)}, bound=self._bound, bits=self._bits
            )
        except RangeError as error:
            raise Refused(422, error.told) from None
        with self._lock:
            self._drop_old()
            self._check_new(owner, names, found)
            now = self._clock()
            for name, row in zip(names, found):
                self._found.setdefault(name, _Parts(now, {})).blocks[owner] = row

    def look(self, name: str) -> np.ndarray | None:
        """One owner's features of a context, which waits on; None where there are none."""
        with self._lock:
            self._drop_old()
            parts = self._found.get(name)
        return None if parts is None else next(iter(parts.blocks.values()))

    def drop(self, names: Sequence[str]) -> None:
        """Those of them that are there wait no longer."""
        with self._lock:
            for name in names:
                self._found.pop(name, None)

    def take(self, names: Sequence[str]) -> Taken:
        """All of them, or none and `Refused`."""
        with self._lock:
            self._drop_old()
            for name in names:
                self._check_whole(name)
            parts = {name: self._found.pop(name).blocks for name in names}
        rows = np.zeros((len(names), self._dim))
        for row, blocks in zip(rows, parts.values()):
            for owner, part in blocks.items():
                row[self._blocks[owner]] = part
        return Taken(rows, lambda: self._put_back(parts))

    def _put_back(self, parts: dict[str, dict[int, np.ndarray]]) -> None:
        """Beside what owners sent of them meanwhile."""
        with self._lock:
            now = self._clock()
            for name, blocks in parts.items():
                found = self._found.setdefault(name, _Parts(now, {})).blocks
                found.update({owner: part for owner, part in blocks.items() if owner not in found})

    def _check_new(self, owner: int, names: Sequence[str], rows: np.ndarray) -> None:
        for name, row in zip(names, rows):
            if (parts := self._found.get(name)) and owner in parts.blocks and (parts.blocks[owner] != row).any():
                raise Refused(409, f"owner {owner} sent other features of one of these ids before: choose new ids")
        fresh = [name for name in names if name not in self._found]
        if len(self._found) + len(fresh) > self._most:
            raise Refused(429, f"{self._most:,} contexts wait for a decision: ask for some first", retry=5)

    def _check_whole(self, name: str) -> None:
        parts = self._found.get(name)
        lacking = [owner for owner in self._blocks if parts is None or owner not in parts.blocks]
        if lacking:
            owners = " and ".join(f"owner {owner}" for owner in lacking)
            raise Refused(
                404,
                f"context {name!r} lacks the part of {owners}: it was not sent, waited longer than "
                f"{self._longest:g} s, or was decided on: send it to /context",
            )

    def _drop_old(self) -> None:
        """Those whose decision nobody asked for; they stand in the order in which they came."""
        before = self._clock() - self._longest
        while self._found:
            oldest = next(iter(self._found))
            if self._found[oldest].since > before:
                return
            del self._found[oldest]

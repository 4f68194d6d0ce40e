"""One party's items in the order of a plan, block by block, from wherever.  Knows no file and no socket.

A block is a number of steps.  Who draws must draw what the plan says, in its order: masks are made for one purpose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from mpc.correlations import Correlation, layout
from mpc.errors import OutOfMaterial

from .dealer import Expander
from .plan import Plan, describe

Used = Callable[[int, int], None]
"""For tests: told (block, index) of each item before it is used."""


class Material(ABC):
    """Hands one party the items of a plan."""

    def __init__(self, plan: Plan, expander: Expander, block_steps: int, *, used: Used | None = None) -> None:
        self.plan = plan
        self.party = expander.party
        self.block_steps = block_steps
        self._expander = expander
        self._used = used
        self._block = -1
        self._index = self._block_items = len(plan.items) * block_steps
        self._corrections: np.ndarray | None = None
        self._offset = 0

    @abstractmethod
    def _next_block(self) -> tuple[int, np.ndarray | None]:
        """The number of the next block, never given before, and party 0's corrections; OutOfMaterial at the end."""

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The next item, which must be the one the plan has next."""
        if self._index == self._block_items:
            self._enter()
        planned = self.plan.items[self._index % len(self.plan.items)]
        if item is not planned and item != planned:
            raise OutOfMaterial(
                f"the program draws {describe(item)} where the plan of {self.plan.program!r} has {describe(planned)}: "
                "make the plan with the arguments of this run, and deal again"
            )
        if self._used is not None:
            self._used(self._block, self._index)
        self._index += 1
        if self._corrections is None:
            return self._expander.fields(item, None)
        start, self._offset = self._offset, self._offset + layout(item).dealt_bytes
        return self._expander.fields(item, self._corrections[start : self._offset])

    def _enter(self) -> None:
        block, corrections = self._next_block()
        self._block, self._corrections = block, corrections
        self._index = self._offset = 0
        self._expander.enter(block)

    def _exhausted(self, steps: int, cure: str) -> OutOfMaterial:
        wanted, count, _ = self.plan.summary()[0]
        return OutOfMaterial(
            f"party {self.party}: all {steps} steps of {self.plan.program!r} are used up; the next step wants "
            f"{len(self.plan.items)} items, among them {count} x {wanted}: {cure}"
        )

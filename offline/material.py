"""One party's items in the order of a plan, block by block, from wherever.  Knows no file and no socket.

A block is a number of steps.  Who draws must draw what the plan says, in its order: masks are made for one purpose.

Before a session's first round the parties compare where they stand.  A session that starts where another left off,
at the same step for all, goes on there; otherwise the rest of the open block is skipped, for everyone.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, NoReturn

import numpy as np

from mpc.correlations import Correlation, layout
from mpc.errors import ConfigError, MaskedError, OutOfMaterial

from .dealer import Expander
from .plan import Plan, describe

Used = Callable[[int, int], None]
"""For tests: told (block, index) of each item before it is used."""

_STANDING = struct.Struct("<8s16s16sQQH?")


class Kind(NamedTuple):
    """How a kind of source signs its statement, what it is called, and what it raises at one that does not fit."""

    magic: bytes
    name: str
    refusal: type[MaskedError]


class Standing(NamedTuple):
    """What a party states: kind of source, deal, plan, next block, items drawn of the open one, whose they are."""

    magic: bytes
    deal: bytes
    plan: bytes
    cursor: int
    drawn: int
    party: int
    copied: bool


class Material(ABC):
    """Hands one party the items of a plan."""

    kind: ClassVar[Kind]

    def __init__(
        self,
        plan: Plan,
        expander: Expander,
        block_steps: int,
        *,
        deal: bytes,
        report: Callable[[str], None] | None = None,
        used: Used | None = None,
    ) -> None:
        if not plan.items:
            raise ConfigError(f"a step of {plan.program!r} draws nothing: it needs no material")
        self.plan = plan
        self.party = expander.party
        self.block_steps = block_steps
        self._items = plan.items
        self._layouts = [layout(item) for item in plan.items]
        self._expander = expander
        self._deal = deal
        self._report = report or (lambda _: None)
        self._used = used
        self._block = -1
        self._index = self._block_items = len(plan.items) * block_steps
        self._corrections: np.ndarray | None = None
        self._offset = 0

    @abstractmethod
    def _next_block(self) -> tuple[int, np.ndarray | None]:
        """The number of the next block, never given before, and party 0's corrections; OutOfMaterial at the end."""

    @abstractmethod
    def _standing(self) -> Standing:
        """Where this party stands."""

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The next item, which must be the one the plan has next; another is refused, and none is used up."""
        at = self._index % len(self._items)
        planned = self._items[at]
        if item is not planned and item != planned:
            raise OutOfMaterial(
                f"the program draws {describe(item)} where the plan of {self.plan.program!r} has {describe(planned)}: "
                "make the plan with the arguments of this run, and deal again"
            )
        if self._index == self._block_items:
            self._enter()
        if self._used is not None:
            self._used(self._block, self._index)
        self._index += 1
        place = self._layouts[at]
        if self._corrections is None:
            return self._expander.fields(place, None)
        start, self._offset = self._offset, self._offset + place.dealt_bytes
        return self._expander.fields(place, self._corrections[start : self._offset])

    @abstractmethod
    def want(self, steps: int) -> None:
        """OutOfMaterial, before anything is used, where fewer than `steps` steps are left."""

    def statement(self) -> bytes:
        """Where this party stands, as the other parties hear it."""
        return _STANDING.pack(*self._standing())

    def _stand(self, cursor: int, copied: bool) -> Standing:
        drawn = 0 if self._at_block_end() else self._index
        return Standing(self.kind.magic, self._deal, self.plan.digest, cursor, drawn, self.party, copied)

    def _read(self, statements: list[bytes]) -> list[Standing]:
        """All parties' standings, checked: the same kind of source, one deal, one plan, and each party its own."""
        refusal = self.kind.refusal
        if len(statements) != self.plan.parties:
            raise refusal(f"the material is for {self.plan.parties} parties, this session has {len(statements)}")
        standings = [Standing(*_STANDING.unpack_from(statement)) for statement in statements]
        for party, other in enumerate(standings):
            if other.magic != self.kind.magic:
                raise refusal(
                    f"party {party} does not draw from a {self.kind.name} as this party does: start all the same way"
                )
            if other.plan != self.plan.digest:
                raise refusal(f"party {party}'s material follows another plan than this party's: use one deal for all")
            if other.deal != self._deal:
                raise refusal(f"party {party}'s material is of another deal than this party's: use one deal for all")
            if other.party != party:
                raise refusal(
                    f"party {party} draws the material of party {other.party}: give each process its own party's, and "
                    "a process that hosts all parties an InProcessDealer"
                )
        return standings

    def _continues(self, standings: list[Standing]) -> bool:
        """Go on in the open block if all parties stand at the same start of a step in it; else leave it."""
        first = standings[0]
        same = all((other.cursor, other.drawn) == (first.cursor, first.drawn) for other in standings)
        if same and first.drawn and first.drawn % len(self._items) == 0:
            return True
        self._abandon()
        return False

    def _abandon(self) -> None:
        """Skip what is left of the open block."""
        self._index = self._block_items
        self._corrections = None

    @property
    def block(self) -> int:
        """The one that is open; all parties draw from the same."""
        return self._block

    def _at_block_end(self) -> bool:
        return self._index == self._block_items

    def _used_up(self) -> bool:
        """Whether a block was opened here and nothing of it is left."""
        return self._block >= 0 and self._at_block_end()

    def _enter(self) -> None:
        self._expander.require_own()
        block, corrections = self._next_block()
        self._expander.enter(block)
        self._block, self._corrections = block, corrections
        self._index = self._offset = 0

    def _exhausted(self, wanted: int, left: int, cure: str) -> OutOfMaterial:
        largest, count, _ = self.plan.summary()[0]
        name = repr(self.plan.program)
        have = f"{left} steps of {name} are left, {wanted} wanted" if left else f"all steps of {name} are used up"
        items = f"{len(self.plan.items)} items, among them {count} x {largest}"
        return OutOfMaterial(f"party {self.party}: {have}; a step draws {items}: {cure}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("material holds a key and is never pickled")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(party={self.party}, program={self.plan.program!r})"

"""Material in files, each item used at most once, across crashes too.

A claim is written and flushed before its block is used, so a crash at any point loses the rest of a block and never
gives an item twice.  At the start the parties compare cursors and all move to the furthest: one whose directory came
back from a backup moves forward.  If *every* party's directory is a copy of one already used, nobody can vouch
for the cursor, and the store is refused.

Threads that draw from one open store, each by a source of its own, take turns, so that no block is claimed twice.  Who
gets which block is chance, so sessions that run at once want a store each: where two parties gave theirs in another
order, the next round is a Desync.

What no store can see by itself: all parties copied before the first use, or all rolled back within their own files.
The list is in SECURITY.md.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpc.errors import ConfigError, StoreRefused
from mpc.files import append
from mpc.turns import Turn, in_turn

from .directory import Directory, Manifest, deal
from .material import Kind, Material, Standing, Used
from .plan import Plan

__all__ = ["Inspection", "Manifest", "Store", "StoreSource", "deal", "inspect"]


@dataclass(frozen=True)
class Inspection:
    """What a store is and where it stands; `moved`: it is a copy of one that was in use elsewhere."""

    manifest: Manifest
    plan: Plan
    cursor: int
    finished: bool
    moved: bool

    @property
    def steps_left(self) -> int:
        """Steps whose blocks are not claimed."""
        return (self.manifest.blocks - self.cursor) * self.manifest.block_steps


def inspect(home: Path, *, whole: bool = False) -> Inspection:
    """Look at a store without locking or changing it, also while a run draws from it.

    whole: read the blocks that are left, too; one that was damaged on its way is refused before a run comes to it.
    """
    directory = Directory(home)
    cursor, finished, _ = directory.read_claims()
    for block in range(cursor, directory.manifest.blocks) if whole and not directory.manifest.party else ():
        directory.corrections(block)
    return Inspection(directory.manifest, directory.plan, cursor, finished, directory.has_moved(cursor))


class Store(Directory):
    """A store's directory, opened and locked: one process at a time."""

    def __init__(self, home: Path) -> None:
        self._log, self.turn = -1, Turn()
        super().__init__(home)
        try:
            self._log = os.open(home / "cursor", os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise self._refused(f"its cursor cannot be opened ({error.strerror})") from error
        try:
            self._lock()
            self.cursor, self.finished, whole = self.read_claims()
            if whole < os.fstat(self._log).st_size:
                os.ftruncate(self._log, whole)
            self.moved = self.has_moved(self.cursor)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreRefused(f"the store {self.home} is in use by another process: end that one first") from error
        except OSError as error:
            raise StoreRefused(
                f"the store {self.home} cannot be locked ({error.strerror}): move it to a local disk"
            ) from error

    @property
    def steps_left(self) -> int:
        """Steps whose blocks are not claimed."""
        return (self.manifest.blocks - self.cursor) * self.manifest.block_steps

    @in_turn
    def claim(self, block: int, *, finished: bool) -> None:
        """Make durable that all blocks before `block` are spent; forward only.

        After a failed write nobody knows what the disk holds, so the store is closed: only opening it anew tells.
        """
        self.require_open()
        if not self.cursor <= block <= self.manifest.blocks:
            raise self._refused(f"its cursor would move from block {self.cursor} to {block} of {self.manifest.blocks}")
        if not os.fstat(self._log).st_nlink:
            raise self._refused("its cursor was deleted or replaced while it was in use")
        record = self.claim_record(block, finished=finished)
        try:
            append(self._log, record)
        except OSError as error:
            self.close()
            raise StoreRefused(
                f"the store {self.home} cannot note durably that block {block - 1} is spent ({error.strerror}), so "
                "nothing of it is used: make room on the disk and start again"
            ) from error
        self.cursor, self.finished = block, finished

    @in_turn
    def settle(self) -> None:
        """Note that this directory is the original from now on."""
        if not self.moved and (self.home / "home").exists():
            return
        try:
            self._note_home()
        except OSError as error:
            raise StoreRefused(
                f"the store {self.home} cannot be written ({error.strerror}): make room on the disk and start again"
            ) from error
        self.moved = False

    @property
    def is_open(self) -> bool:
        """Whether this process holds the lock."""
        return self._log >= 0

    def require_open(self) -> None:
        """Refuse a store that is closed, or that came into this process by a fork: its other half has it too."""
        if self._log < 0:
            raise ConfigError(f"the store {self.home} is closed: open it again")
        self.require_own()

    @in_turn
    def close(self) -> None:
        """Unlock."""
        log, self._log = self._log, -1
        if log >= 0:
            os.close(log)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class StoreSource(Material):
    """Draws from a store, block after block."""

    kind = Kind(b"mb-store", "file store", StoreRefused)

    def __init__(
        self,
        store: Store,
        *,
        party: int | None = None,
        session: str | None = None,
        report: Callable[[str], None] | None = None,
        used: Used | None = None,
    ) -> None:
        self.store = store
        what = store.manifest
        if party is not None and what.party != party:
            raise StoreRefused(f"{store.home} is the store of party {what.party}, this is party {party}: use its own")
        if session is not None and what.session != session:
            raise StoreRefused(
                f"{store.home} was dealt for session {what.session!r}, this is {session!r}: use this session's store"
            )
        super().__init__(
            store.plan, store.expander(), what.block_steps, deal=bytes.fromhex(what.store), report=report, used=used
        )
        self._agreed = False

    def _standing(self) -> Standing:
        return self._stand(self.store.cursor, self.store.moved)

    def agree(self, statements: list[bytes]) -> None:
        """Compare with the other parties and move to the furthest cursor."""
        self.store.require_open()
        standings = self._read(statements)
        copies = [party for party, standing in enumerate(standings) if standing.copied]
        if len(copies) == self.plan.parties:
            raise StoreRefused(
                "every party's store is a copy of one that was in use, and nobody knows what was spent since: "
                "deal a new one with 'masked offline deal'"
            )
        furthest = max(standing.cursor for standing in standings)
        if furthest > self.store.manifest.blocks:
            blocks = self.store.manifest.blocks
            raise StoreRefused(f"a party's store stands at block {furthest} of {blocks}: it is damaged")
        with self.store.turn:
            self._move(standings, furthest)
        self._agreed = True

    def _move(self, standings: list[Standing], furthest: int) -> None:
        """To where the furthest party stands; what is skipped is said."""
        steps = self.store.manifest.block_steps
        if self.store.moved:
            self._report("this store is a copy of one that was in use: the other parties vouch for its cursor")
        interrupted = not self.store.finished and not self._used_up()
        if not self._continues(standings) and interrupted:
            last = self.store.cursor - 1
            self._report(f"block {last} was not used to its end: the rest of its {steps} steps is skipped")
        if furthest > self.store.cursor:
            behind = (furthest - self.store.cursor) * steps
            self._report(f"this store was behind the other parties': {behind} steps are skipped")
            self.store.claim(furthest, finished=True)
        self.store.settle()

    @property
    def steps_left(self) -> int:
        """Whole steps that are left of the open block, and of those that are not claimed."""
        return self.store.steps_left + (self._block_items - self._index) // len(self._items)

    def want(self, steps: int) -> None:
        """Refuse a run that would be longer than the material."""
        if self.store.steps_left < steps:
            raise self._exhausted(steps, self.store.steps_left, self._cure(steps))

    def _cure(self, steps: int) -> str:
        """A party never deals for itself and others: whoever dealt this deals more."""
        what = self.store.manifest
        return (
            f"have the dealer of store {what.store[:8]} deal its plan again: 'masked offline deal plan.json --steps "
            f"{steps} --session {shlex.quote(what.session)} --out DIR'"
        )

    def _next_block(self) -> tuple[int, np.ndarray | None]:
        self.store.require_open()
        if not self._agreed:
            raise ConfigError("a store is drawn from inside a session, which compares the parties' cursors first")
        what = self.store.manifest
        with self.store.turn:  # between the look at the cursor and the claim another thread would find the same block
            if (block := self.store.cursor) >= what.blocks:
                raise self._exhausted(1, 0, self._cure(what.steps))
            corrections = self.store.corrections(block) if what.party == 0 else None
            self.store.claim(block + 1, finished=False)
        return block, corrections

    def close(self) -> None:
        """Note a block that was used to its end, and unlock the store."""
        with self.store.turn:
            try:
                if self._used_up() and not self.store.finished and self.store.is_open:
                    self.store.claim(self.store.cursor, finished=True)
            finally:
                self._abandon()
                self.store.close()

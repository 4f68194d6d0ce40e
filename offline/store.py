"""Material in files, one directory per party, each item used at most once, across crashes too.

    party-0/
      manifest.json     what this store is; authenticated by the party's key
      plan.json         what one step draws
      key               the party's PRG key
      corrections       party 0 only: blocks of equal size, each authenticated with its number
      cursor            a log of claims: block numbers, each durable before the block is used

A claim is written and flushed before its block is used, so a crash at any point loses the rest of a block and never
gives an item twice.  At the start the parties compare cursors and all move to the furthest: one whose directory came
back from a backup moves forward.  If *every* party's directory is a copy of one already used, nobody can vouch
for the cursor, and the store is refused.

The authentication finds damage, mix-ups and edits by others; whoever can read the directory has the key itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import stat
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mpc.errors import ConfigError, MaskedError, StoreRefused
from mpc.prg import KEY_BYTES

from .dealer import Expander, TrustedDealer
from .material import Material, Used
from .plan import Plan

_FORMAT = "masked-bandits store 1"
_MAC_BYTES = 32
_CLAIM = struct.Struct("<QQ16s")  # next free block, 1 if the block before it was finished, MAC
_STATEMENT = struct.Struct("<8s16s16sQ?")
_MAGIC = b"mb-store"


@dataclass(frozen=True)
class Manifest:
    """What a store is."""

    store: str
    session: str
    program: str
    party: int
    parties: int
    plan: str
    blocks: int
    block_steps: int
    block_bytes: int
    format: str = _FORMAT

    @property
    def steps(self) -> int:
        return self.blocks * self.block_steps


def deal(
    plan: Plan,
    steps: int,
    directory: Path,
    *,
    session: str = "local",
    block_steps: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Make material for `steps` steps, a directory for each party.  Hand each its own and delete the rest.

    block_steps: what a crash loses at most, and what one flush of the cursor pays for; 0 picks about a 16th of all.
    """
    if steps < 1:
        raise ConfigError(f"material is dealt for at least 1 step, not {steps}")
    size = block_steps or max(1, min(64, steps // 16))
    if size < 1:
        raise ConfigError(f"a block has at least 1 step, not {size}")
    homes = [directory / f"party-{party}" for party in range(plan.parties)]
    if taken := [home for home in homes if home.exists()]:
        raise ConfigError(f"{taken[0]} exists: material is never dealt over another; choose an empty directory")
    blocks = -(-steps // size)
    dealer = TrustedDealer(plan.parties)
    store_id = secrets.token_hex(16)
    for party, home in enumerate(homes):
        home.mkdir(parents=True, mode=0o700)
        _write(home / "key", dealer.keys[party])
        _write(home / "plan.json", plan.text().encode())
        _write(home / "cursor", b"")
    with _private(homes[0] / "corrections") as out:
        for block in range(blocks):
            dealer.enter(block)
            data = b"".join(dealer.corrections(item).tobytes() for _ in range(size) for item in plan.items)
            out.write(data + _mac(dealer.keys[0], "block", store_id, str(block), data))
            if progress is not None:
                progress(block + 1, blocks)
        out.flush()
        os.fsync(out.fileno())
    for party, home in enumerate(homes):
        manifest = Manifest(
            store_id, session, plan.program, party, plan.parties, plan.digest.hex(), blocks, size,
            size * plan.step_bytes,
        )  # fmt: skip
        body = json.dumps(asdict(manifest), indent=1, sort_keys=True)
        _write(home / "manifest.json", (body + "\n" + _mac(dealer.keys[party], "manifest", body).hex() + "\n").encode())
    return homes


class Store:
    """A store's directory, opened and locked: one process at a time."""

    def __init__(self, home: Path) -> None:
        self.home = home
        if not home.is_dir():
            raise ConfigError(f"there is no store at {home}: deal one with 'masked offline deal'")
        _check_private(home)
        self._key = self._bytes("key")
        if len(self._key) != KEY_BYTES:
            raise self._refused("its key is damaged")
        self.manifest = self._read_manifest()
        self.plan = Plan.parse(self._bytes("plan.json").decode(errors="replace"), str(home / "plan.json"))
        if self.plan.digest.hex() != self.manifest.plan:
            raise self._refused("its plan is not the one it was dealt for")
        expected = self.manifest.blocks * (self.manifest.block_bytes + _MAC_BYTES)
        if self.manifest.party == 0 and (found := self._size("corrections")) != expected:
            raise self._refused(
                f"its corrections have {found} bytes instead of {expected}: it was truncated or extended"
            )
        self._log = os.open(home / "cursor", os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(self._log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._log)
            raise StoreRefused(f"the store {home} is in use by another process: end that one first") from error
        try:
            self.cursor, self.finished = self._read_log()
            self.moved = self._has_moved()
        except MaskedError:
            self.close()
            raise

    @property
    def steps_left(self) -> int:
        """Steps whose blocks are not claimed."""
        return (self.manifest.blocks - self.cursor) * self.manifest.block_steps

    def claim(self, block: int, *, finished: bool) -> None:
        """Make durable that all blocks before `block` are spent; forward only."""
        if block < self.cursor:
            raise self._refused("its cursor would move back")
        tag = _mac(self._key, "claim", self.manifest.store, str(block), str(int(finished)))[:16]
        os.write(self._log, _CLAIM.pack(block, finished, tag))
        os.fdatasync(self._log)
        self.cursor, self.finished = block, finished

    def settle(self) -> None:
        """Note that this directory is the original from now on."""
        info = os.fstat(self._log)
        _write(self.home / "home", f"{info.st_dev} {info.st_ino}\n".encode(), replace=True)
        self.moved = False

    def corrections(self, block: int) -> np.ndarray:
        """Party 0's corrections of a block, authenticated."""
        size = self.manifest.block_bytes + _MAC_BYTES
        with (self.home / "corrections").open("rb") as file:
            file.seek(block * size)
            raw = file.read(size)
        data, tag = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if not hmac.compare_digest(tag, _mac(self._key, "block", self.manifest.store, str(block), data)):
            raise self._refused(f"block {block} of its corrections was edited or moved")
        return np.frombuffer(data, np.uint8)

    def expander(self) -> Expander:
        """The party's own end of the randomness."""
        return Expander(self._key, party=self.manifest.party)

    def close(self) -> None:
        """Unlock."""
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    def _read_manifest(self) -> Manifest:
        body, _, tag = self._bytes("manifest.json").decode(errors="replace").rstrip("\n").rpartition("\n")
        if not hmac.compare_digest(tag, _mac(self._key, "manifest", body).hex()):
            raise self._refused("its manifest was edited, or its key belongs to another store")
        content = json.loads(body)
        if content.get("format") != _FORMAT:
            raise self._refused("it was dealt by another release")
        return Manifest(**content)

    def _read_log(self) -> tuple[int, bool]:
        raw = self._bytes("cursor")
        whole = len(raw) // _CLAIM.size * _CLAIM.size
        if whole < len(raw):  # a claim that a crash cut short was never used
            os.ftruncate(self._log, whole)
        block, finished = 0, True
        for at in range(0, whole, _CLAIM.size):
            new, done, tag = _CLAIM.unpack_from(raw, at)
            good = _mac(self._key, "claim", self.manifest.store, str(new), str(int(done)))[:16]
            if not hmac.compare_digest(tag, good) or new < block or new > self.manifest.blocks:
                raise self._refused("its cursor was edited")
            block, finished = new, bool(done)
        return block, finished

    def _has_moved(self) -> bool:
        """Whether this is a copy of a directory that was in use elsewhere."""
        note = self.home / "home"
        info = os.fstat(self._log)
        if not note.exists():
            return self.cursor > 0
        return note.read_text().split() != [str(info.st_dev), str(info.st_ino)]

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.home / name).read_bytes()
        except OSError as error:
            raise self._refused(f"its {name} cannot be read ({error.strerror})") from error

    def _size(self, name: str) -> int:
        try:
            return (self.home / name).stat().st_size
        except OSError as error:
            raise self._refused(f"its {name} is missing") from error

    def _refused(self, reason: str) -> StoreRefused:
        return StoreRefused(f"the store {self.home} is refused: {reason}; deal a new one with 'masked offline deal'")


class StoreSource(Material):
    """Draws from a store, block after block."""

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
            raise StoreRefused(f"{store.home} was dealt for session {what.session!r}, this is {session!r}")
        super().__init__(store.plan, store.expander(), what.block_steps, used=used)
        self._report = report or (lambda _: None)
        self._agreed = False

    def statement(self) -> bytes:
        """Store, plan, cursor, and whether this is a copy."""
        what = self.store.manifest
        return _STATEMENT.pack(
            _MAGIC, bytes.fromhex(what.store), bytes.fromhex(what.plan), self.store.cursor, self.store.moved
        )

    def agree(self, statements: list[bytes]) -> None:
        """Compare with the other parties and move to the furthest cursor."""
        what = self.store.manifest
        if len(statements) != what.parties:
            raise StoreRefused(
                f"{self.store.home} was dealt for {what.parties} parties, this session has {len(statements)}"
            )
        cursors, copies = [], []
        for party, statement in enumerate(statements):
            magic, store, plan, cursor, moved = _STATEMENT.unpack_from(statement)
            if magic != _MAGIC:
                raise StoreRefused(f"party {party} draws from no file store, this party does: start all the same way")
            if store != bytes.fromhex(what.store) or plan != bytes.fromhex(what.plan):
                raise StoreRefused(
                    f"party {party}'s store is of another deal than {self.store.home}: use one deal for all"
                )
            cursors.append(cursor)
            copies.append(moved)
        if all(copies):
            raise StoreRefused(
                "every party's store is a copy of one that was in use, and nobody knows what was spent since: "
                "deal a new one"
            )
        furthest = max(cursors)
        if not self.store.finished:
            self._report(
                f"block {self.store.cursor - 1} was interrupted: the rest of its {what.block_steps} steps is skipped"
            )
        if furthest > self.store.cursor:
            behind = (furthest - self.store.cursor) * what.block_steps
            self._report(f"this store was behind the other parties': {behind} steps are skipped")
            self.store.claim(furthest, finished=True)
        self.store.settle()
        self._agreed = True

    def _next_block(self) -> tuple[int, np.ndarray | None]:
        if not self._agreed:
            raise ConfigError("a store is drawn from inside a session, which compares the parties' cursors first")
        what, block = self.store.manifest, self.store.cursor
        if block >= what.blocks:
            cure = f"deal more with 'masked offline deal {self.store.home}/plan.json --steps {what.steps} --out DIR'"
            raise self._exhausted(what.steps, cure)
        self.store.claim(block + 1, finished=False)
        return block, self.store.corrections(block) if what.party == 0 else None

    def close(self) -> None:
        """Note a block that was used to its end, and unlock the store."""
        if self._index == self._block_items and not self.store.finished:
            self.store.claim(self.store.cursor, finished=True)
        self.store.close()


def _mac(key: bytes, *parts: str | bytes) -> bytes:
    tag = hashlib.blake2b(key=key, digest_size=_MAC_BYTES, person=b"mb-store-mac")
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        tag.update(len(raw).to_bytes(8, "little"))
        tag.update(raw)
    return tag.digest()


def _private(path: Path, *, replace: bool = False) -> BinaryIO:
    """A file that only its owner can read."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _write(path: Path, content: bytes, *, replace: bool = False) -> None:
    with _private(path, replace=replace) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _check_private(home: Path) -> None:
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        raise StoreRefused(f"others may read {home}, so its masks are no secret: chmod -R go= {home}")

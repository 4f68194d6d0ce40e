"""A party's directory on disk: how it is made, what lies in it, and how it is checked.  Knows no lock and no session.

    party-0/
      manifest.json     what this store is; authenticated by the party's key
      plan.json         what one step draws
      key               the party's PRG key
      corrections       party 0 only: blocks of equal size, each with a tag over it and its number
      cursor            a log of claims: block numbers, each durable before the block is used
      home              which directory this was when it was last used; a copy of it is another one

The manifest is written last: a directory without one was never dealt to its end.

The authentication finds damage, mix-ups and edits by others; whoever can read the directory has the key itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import os
import secrets
import shutil
import stat
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mpc.errors import ConfigError, StoreRefused
from mpc.files import flush_folder, mac, new_file, write_new, write_whole
from mpc.prg import KEY_BYTES, Unshared

from .dealer import Expander, TrustedDealer
from .plan import Plan, digest_of

MAC_BYTES = 16  # of a block of corrections
_PIECE = 1 << 28  # bytes under one tag; GCM takes less than 2^31
_BLOCK_BYTES = 1 << 28  # of a block whose size is not given: both ends hold one in memory
_FORMAT = "masked-bandits store 3"
_CLAIM = struct.Struct("<QQ16s")  # next free block, 1 if the block before it was used to its end, MAC
_GET_GENERATION = 0x8008_7601  # FS_IOC_GETVERSION: tells a file from a later one with the same inode number


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


class Claims(NamedTuple):
    """What a cursor's log says: next free block, whether the one before was used to its end, bytes that count."""

    cursor: int
    finished: bool
    whole: int


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

    block_steps: what a crash loses at most, and what one flush of the cursor pays for; 0 picks about a 16th of all,
    and fewer where they would take much memory.
    """
    if steps < 1:
        raise ConfigError(f"material is dealt for at least 1 step, not {steps}")
    if not plan.items:
        raise ConfigError(f"a step of {plan.program!r} draws nothing: it needs no material")
    size = block_steps or max(1, min(64, steps // 16, _BLOCK_BYTES // max(1, plan.step_bytes)))
    if size < 1:
        raise ConfigError(f"a block has at least 1 step, not {size}")
    homes = [directory / f"party-{party}" for party in range(plan.parties)]
    if taken := [home for home in homes if os.path.lexists(home)]:
        raise ConfigError(f"{taken[0]} exists: material is never dealt over another; choose an empty directory")
    blocks = -(-steps // size)
    _check_room(directory, blocks * (size * plan.step_bytes + MAC_BYTES))
    try:
        _deal(plan, blocks, size, homes, session, progress)
    except OSError as error:
        raise ConfigError(
            f"cannot deal into {directory} ({error.strerror}): make room there or choose another, and delete what "
            "was begun"
        ) from error
    return homes


def _check_room(directory: Path, wanted: int) -> None:
    there = next(place for place in (directory.absolute(), *directory.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if wanted > free:
        raise ConfigError(
            f"the material takes {wanted / 1e9:,.1f} GB, and {there} has {free / 1e9:,.1f} GB: deal fewer steps, or "
            "elsewhere"
        )


def _deal(
    plan: Plan, blocks: int, size: int, homes: list[Path], session: str, progress: Callable[[int, int], None] | None
) -> None:
    dealer = TrustedDealer(plan.parties)
    store_id = secrets.token_hex(16)
    for party, home in enumerate(homes):
        home.mkdir(parents=True, mode=0o700)
        write_new(home / "key", dealer.keys[party])
        write_new(home / "plan.json", plan.text().encode())
        write_new(home / "cursor", b"")
    with new_file(homes[0] / "corrections") as out:
        for block, made in enumerate(dealer.lots(plan.items, blocks, size)):
            data = made.tobytes()
            out.write(data + _block_mac(dealer.keys[0], store_id, block, data))
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
        tag = _mac(dealer.keys[party], "manifest", body).hex()
        write_new(home / "manifest.json", f"{body}\n{tag}\n".encode())
        flush_folder(home)
    flush_folder(homes[0].parent)


class Directory(Unshared):
    """A party's directory, read and checked."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.home = home
        if not home.is_dir():
            raise ConfigError(f"there is no store at {home}: deal one with 'masked offline deal'")
        if not _ever_dealt(home):
            raise ConfigError(f"{home} is not a store: name a folder party-p that 'masked offline deal' has made")
        if not (home / "manifest.json").exists():
            raise self._refused(
                "it has no manifest, so it was not dealt to its end, or not all of it was copied: delete it"
            )
        for path in (home, home / "key", home / "corrections"):
            if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise StoreRefused(f"others may read {path}, so its masks are no secret: chmod -R go= {home}")
        self._key = self._bytes("key")
        if len(self._key) != KEY_BYTES:
            raise self._refused("its key is damaged")
        self.manifest = self._read_manifest()
        plan = self._bytes("plan.json")
        if digest_of(plan).hex() != self.manifest.plan:
            raise self._refused("its plan was edited, or is not the one it was dealt for")
        self.plan = Plan.parse(plan.decode(), str(home / "plan.json"))
        expected = self.manifest.blocks * (self.manifest.block_bytes + MAC_BYTES)
        if self.manifest.party == 0 and (found := self._size("corrections")) != expected:
            raise self._refused(
                f"its corrections have {found} bytes instead of {expected}: it was truncated or extended"
            )

    def corrections(self, block: int) -> np.ndarray:
        """Party 0's corrections of a block, authenticated."""
        size = self.manifest.block_bytes + MAC_BYTES
        try:
            with (self.home / "corrections").open("rb") as file:
                file.seek(block * size)
                raw = file.read(size)
        except OSError as error:
            raise self._refused(f"its corrections cannot be read ({error.strerror})") from error
        data, tag = memoryview(raw)[:-MAC_BYTES], raw[-MAC_BYTES:]
        if not hmac.compare_digest(tag, _block_mac(self._key, self.manifest.store, block, data)):
            raise self._refused(f"block {block} of its corrections was edited or moved")
        return np.frombuffer(data, np.uint8)

    def expander(self) -> Expander:
        """The party's own end of the randomness."""
        return Expander(self._key, party=self.manifest.party)

    def claim_record(self, block: int, *, finished: bool) -> bytes:
        """A line of the cursor's log."""
        return _CLAIM.pack(block, finished, self._claim_tag(block, finished))

    def read_claims(self) -> Claims:
        """The cursor's log.  A record that a crash cut short, or left as zeros, was never used: it does not count."""
        raw = self._bytes("cursor")
        whole = len(raw) // _CLAIM.size * _CLAIM.size
        while whole and not any(raw[whole - _CLAIM.size : whole]):
            whole -= _CLAIM.size
        cursor, finished = 0, True
        for at in range(0, whole, _CLAIM.size):
            block, done, tag = _CLAIM.unpack_from(raw, at)
            good = done <= 1 and hmac.compare_digest(tag, self._claim_tag(block, bool(done)))
            if not good or not cursor <= block <= self.manifest.blocks:
                raise self._refused("its cursor was edited, re-ordered, or belongs to another store")
            cursor, finished = block, bool(done)
        return Claims(cursor, finished, whole)

    def has_moved(self, cursor: int) -> bool:
        """Whether this is a copy of a directory that was in use elsewhere."""
        try:
            return (self.home / "home").read_text() != self._identity()
        except (OSError, ValueError):
            return cursor > 0

    def _note_home(self) -> None:
        """From now on this directory is the original.  Replaced in one move: a crash leaves the old note or the new."""
        write_whole(self.home / "home", self._identity().encode())

    def _identity(self) -> str:
        """This very cursor file: file system, inode, and generation, which tells apart two users of one inode."""
        with (self.home / "cursor").open("rb") as file:
            generation = bytearray(8)
            with contextlib.suppress(OSError):  # not every file system has one
                fcntl.ioctl(file, _GET_GENERATION, generation)
            return f"{os.fstatvfs(file.fileno()).f_fsid} {os.fstat(file.fileno()).st_ino} {generation.hex()}\n"

    def _claim_tag(self, block: int, finished: bool) -> bytes:
        return _mac(self._key, "claim", self.manifest.store, str(block), str(int(finished)))[:16]

    def _read_manifest(self) -> Manifest:
        body, _, tag = self._bytes("manifest.json").rstrip(b"\n").rpartition(b"\n")
        if not hmac.compare_digest(tag, _mac(self._key, "manifest", body).hex().encode()):
            raise self._refused("its manifest was edited, or its key belongs to another store")
        content = json.loads(body)
        if content.get("format") != _FORMAT:
            raise self._refused("it was dealt by another release")
        return Manifest(**content)

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.home / name).read_bytes()
        except OSError as error:
            raise self._refused(f"its {name} cannot be read ({error.strerror})") from error

    def _size(self, name: str) -> int:
        try:
            return (self.home / name).stat().st_size
        except OSError as error:
            raise self._refused(f"its {name} cannot be read ({error.strerror})") from error

    def _refused(self, reason: str) -> StoreRefused:
        return StoreRefused(f"the store {self.home} is refused: {reason}; deal a new one with 'masked offline deal'")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store holds a key and is never pickled")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.home)!r})"


def _ever_dealt(home: Path) -> bool:
    """Whether somebody began to deal there: a folder of anything else is neither damaged nor to be deleted."""
    with contextlib.suppress(OSError):
        if _FORMAT[:-2].encode() in (home / "manifest.json").read_bytes():
            return True
    with contextlib.suppress(OSError):
        begun = (home / "key").stat().st_size == KEY_BYTES and (home / "plan.json").is_file()
        return begun and any((home / name).is_file() for name in ("cursor", "corrections"))
    return False


def _mac(key: bytes, *parts: str | bytes) -> bytes:
    return mac(key, *parts, person=b"mb-store-mac")


def _block_mac(key: bytes, store: str, block: int, data: bytes | memoryview) -> bytes:
    """GMAC of each piece under a key of its own, which makes one tag ever; 60 times as fast as a keyed hash."""
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    tags = [
        AESGCM(_mac(key, "piece", store, str(block), str(at))).encrypt(bytes(12), b"", piece)
        for at, piece in enumerate(pieces)
    ]
    return _mac(key, "block", store, str(block), *tags)[:MAC_BYTES]

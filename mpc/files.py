"""Files that last: whole or not there, and on the disk when a call returns.  Knows bytes; no store, no run."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from pathlib import Path
from typing import BinaryIO


def new_file(path: Path, mode: int = 0o600) -> BinaryIO:
    """A file that was not there, which its owner alone can read where nothing else is said."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb")


def write_new(path: Path, content: bytes, mode: int = 0o600) -> None:
    """A file that was not there, flushed."""
    with new_file(path, mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file in one move: a crash or a full disk leaves what was there before."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        write_new(fresh, content, mode)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def make_place(path: Path) -> None:
    """A folder; one that was not there is on the disk, with all above it, when this returns."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in missing:
        flush_folder(place.parent)


def make_folder(path: Path) -> None:
    """The same, of its owner alone."""
    make_place(path)
    path.chmod(0o700)


def open_log(path: Path) -> int:
    """A file to read and append to, made where there is none; this holder's alone until it is closed."""
    while True:
        log = locked(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(log), os.stat(path)):
                return log
        os.close(log)  # another took its place meanwhile


def locked(log: int) -> int:
    """An open file, once no other holder has it."""
    fcntl.flock(log, fcntl.LOCK_EX)
    return log


def let_go(log: int) -> None:
    """Give it back; another descriptor of the same opening would else keep the lock."""
    fcntl.flock(log, fcntl.LOCK_UN)
    os.close(log)


def append(log: int, record: bytes) -> None:
    """At the end of a file that was opened for that; OSError where no room is left."""
    if os.write(log, record) < len(record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fdatasync(log)


def flush_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)


def mac(key: bytes, *parts: str | bytes, person: bytes) -> bytes:
    """32 bytes over all parts and where each ends.  person: what it is used for, at most 16 bytes."""
    tag = hashlib.blake2b(key=key, digest_size=32, person=person)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        tag.update(len(raw).to_bytes(8, "little"))
        tag.update(raw)
    return tag.digest()

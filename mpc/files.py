"""Files that only their owner can read, and that are on disk when a call returns.  Knows paths; no meaning."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO


def private(path: Path) -> BinaryIO:
    """A new file, open for writing."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write_new(path: Path, content: bytes) -> None:
    """A new file; its name is durable once its folder is flushed."""
    with private(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """In place of what is there, or not at all."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    write_new(fresh, content)
    os.replace(fresh, path)
    sync_folder(path.parent)


def append(log: int, record: bytes) -> None:
    """At the end of a file that was opened for that; OSError where no room is left."""
    if os.write(log, record) < len(record):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fdatasync(log)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)

"""Folders for the time of a run: they go with it, and where its launcher was killed, the next start removes them.

    TMP/masked-.../masked-scratch.lock    locked for as long as the process that made the folder lives, however it ends

A folder without a file of that name, which no other folder has, is none of ours to judge.  The file goes last, so that
a removal that breaks off is finished.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .lifeline import by_its_maker, to_the_end

_PREFIX, LOCK = "masked-", "masked-scratch.lock"


@contextlib.contextmanager
def scratch_folder(name: str = "") -> Iterator[Path]:
    """A folder in the place for temporary files, its user's alone, until the block is left.

    name: behind the prefix, for processes that are to find it; FileExistsError where a process that lives has it.
    """
    remove_left()
    lock = None
    with to_the_end():
        while lock is None:  # one that starts at the same time may take a folder without a holder for a dead one's
            folder = _made(name)
            lock = _held(folder, os.O_CREAT)
        remove = by_its_maker(partial(_remove, folder))
        atexit.register(remove)  # for a Ctrl-C that comes before the next line but one
    try:
        yield folder
    finally:
        with to_the_end():
            remove()
            atexit.unregister(remove)
            os.close(lock)


def remove_left() -> None:
    """Remove this user's folders whose process is gone."""
    for folder in _place().glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            if (lock := _held(folder, 0)) is not None:
                with to_the_end():
                    _remove(folder)
                    os.close(lock)


def scratch_path(name: str) -> Path:
    """Where the scratch folder of this name lies, made or not."""
    return _place() / f"{_PREFIX}{name}"


def _place() -> Path:
    """For temporary files.  Python tries it once, with a file that a signal in the middle would leave there."""
    with to_the_end():
        return Path(tempfile.gettempdir())


def _made(name: str) -> Path:
    if not name:
        return Path(tempfile.mkdtemp(prefix=_PREFIX))
    scratch_path(name).mkdir(mode=0o700)
    return scratch_path(name)


def _held(folder: Path, create: int) -> int | None:
    """The lock of a folder, for as long as this process lives; None where another has it, or has just removed it."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | create, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    os.close(lock)
    return None


def _remove(folder: Path) -> None:
    """Under another name, so that a process that has not ended yet adds nothing."""
    gone = folder.with_name(f"{folder.name}-gone")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
        for path in gone.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
        (gone / LOCK).unlink()
        gone.rmdir()

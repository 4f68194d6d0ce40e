"""The places a run writes to, tried before it begins.  Knows folders and a lock; nothing of what lies in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpc.errors import ConfigError

PICTURES = (".png", ".svg", ".pdf", ".jpg")


@contextlib.contextmanager
def reserved(keep: Path) -> Iterator[None]:
    """`keep` made, and locked for this process: two runs in one folder would undo each other.

    The lock is the kernel's, so it ends with the process, however that ends.  Folders in which nothing was kept are
    removed again.
    """
    missing = _missing(keep)
    try:
        keep.mkdir(parents=True, exist_ok=True)
        lock = _locked(keep / "lock")
    except OSError as error:
        raise _unusable(keep, error, "--out") from error
    finally:
        _remove_empty(missing)
    try:
        yield
    finally:
        (keep / "lock").unlink(missing_ok=True)
        os.close(lock)
        _remove_empty(missing)


def check_picture(path: Path) -> None:
    """ConfigError unless a picture can be written there."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"a picture ends in {', '.join(PICTURES)}, not as {path.name!r} does: rename it in --plot")
    missing = _missing(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise _unusable(path, error, "--plot") from error
    finally:
        _remove_empty(missing)


def _locked(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode(errors="replace")
            os.close(lock)
            raise ConfigError(
                f"process {holder} has a run in {path.parent}: wait for its end, or choose another --out"
            ) from None
        except OSError:
            os.close(lock)
            raise
        if os.fstat(lock).st_nlink:  # else its holder has just removed it
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return lock
        os.close(lock)


def _missing(folder: Path) -> list[Path]:
    """It and those above it that are not there yet, the deepest first."""
    return [place for place in (folder, *folder.parents) if not place.exists()]


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _unusable(path: Path, error: OSError, option: str) -> ConfigError:
    return ConfigError(f"{path} cannot be written ({error.strerror}): choose a place that can be used for {option}")

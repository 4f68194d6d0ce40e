"""Which sealed stores a party has opened, beside its key: each is opened once.  Knows files; no cipher.

    KEYS/opened    a line for each: the store's id and the party's number; on the disk before the store can be used

It grows only.  A line that a crash cut short is of a store that was never put in its place, and does not count.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from mpc.errors import ConfigError, StoreRefused
from mpc.files import append, flush_folder, let_go, open_log

from .directory import Manifest

_OPENED = "opened"


def note_opened(key_file: Path, sealed: Path, what: Manifest) -> None:
    """Write down that the holder of this key has opened this store; StoreRefused where it had before."""
    path = key_file.resolve().parent / _OPENED
    line = f"{what.store} {what.party}\n".encode()
    with _held(path) as log:
        raw = os.pread(log, os.fstat(log).st_size, 0)
        whole = raw[: raw.rfind(b"\n") + 1]
        if line in whole.splitlines(keepends=True):
            raise StoreRefused(
                f"{sealed} holds store {what.store[:8]}, which {path} says was opened before, and masks that are used "
                "twice tell secrets: draw from the directory that was made then, or have the dealer deal anew; if it "
                "did, this file came in place of that one"
            )
        os.ftruncate(log, len(whole))
        append(log, line)
        flush_folder(path.parent)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[int]:
    """The file, for this opening alone; others that open at the same time wait."""
    try:
        log = open_log(path)
        try:
            yield log
        finally:
            let_go(log)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot note what is opened ({error.strerror}), so nothing is: make room there, and let this user "
            "write it"
        ) from error

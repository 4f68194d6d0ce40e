"""What a client learned, decision by decision, and which decisions were made more than once.  Knows files; no meaning.

    NOTES         a record for each decision: its integers, and a tag over them and all records before
    again.json    decisions that were made again

A record that a crash cut short is left out; one that was changed is refused.

A run that goes on from a checkpoint makes the decisions after it again.  The client has learned of them before, and
whatever it has learned counts: a decision that was made m times has disclosed m values.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from mpc.errors import ConfigError
from mpc.files import flush_folder, write_whole

from .tagged_file import HOME_KEY, chained, key_of, read_kept, write_kept, writing

AGAIN = "again.json"
_TAG = 16


class Notes:
    """A file of notes, each of the integers of one decision.

    who: writes them.
    """

    def __init__(self, path: Path, shape: tuple[int, ...] = (), *, who: str = "") -> None:
        self.path, self.who, self._shape = path, who, shape
        self._each = 8 * int(np.prod(shape, dtype=np.int64)) + _TAG
        self._file: IO[bytes] | None = None
        self._count, self._tag, self._key = 0, b"", b""

    def words(self) -> np.ndarray:
        """(decisions, *shape) that are written there."""
        raw = self._raw()
        for _ in self._tags(raw):
            pass
        return self._words(raw)

    def glance(self) -> np.ndarray:
        """The same, not authenticated: to be shown while a run is at work."""
        return self._words(self._raw())

    def append(self, words: np.ndarray) -> None:
        """Write down one more, at once."""
        with writing(self.path):
            file = self._opened()
            content = np.ascontiguousarray(words, np.int64).tobytes()
            self._tag, self._count = chained(self._key, self.path.name, self._tag, content), self._count + 1
            if file.write(content + self._tag) < self._each:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def flush(self) -> None:
        """All that was written is on the disk when this returns, once more where it was removed meanwhile."""
        if self._file is not None:
            with writing(self.path):
                os.fdatasync(self._opened().fileno())

    def cut(self, count: int) -> None:
        """Only the first `count` stay."""
        with writing(self.path), self.path.open("r+b") as file:
            file.truncate(count * self._each)

    def close(self) -> None:
        """Let go of the file, when it is on the disk; who must know that it is calls `flush` first."""
        with contextlib.suppress(ConfigError):
            self.flush()
        if self._file is not None:
            self._file.close()

    def _opened(self) -> IO[bytes]:
        """The file, behind its last whole record; if it was removed meanwhile, another one with all that it held."""
        home = self.path.parent
        if self._file is None:
            self._key, raw = key_of(home), self._raw()
            for tag in self._tags(raw):
                self._tag, self._count = tag, self._count + 1
        elif self.path.exists() and os.path.samestat(self.path.stat(), os.fstat(self._file.fileno())):
            return self._file
        else:
            if (home / HOME_KEY).exists() and key_of(home) != self._key:
                raise ConfigError(f"{home} belongs to another run by now: let that end, and choose another --out")
            raw = os.pread(self._file.fileno(), self._count * self._each, 0)
            self._file.close()
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.path, raw)
        self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", buffering=0)
        self._file.truncate(len(raw))
        flush_folder(home)
        return self._file

    def _raw(self) -> bytes:
        """Whole records; those of zeros at the end are what a crash leaves of some that were not on the disk yet."""
        raw = self.path.read_bytes() if self.path.exists() else b""
        whole = len(raw) // self._each * self._each
        while whole and not any(raw[whole - self._each : whole]):
            whole -= self._each
        return raw[:whole]

    def _tags(self, raw: bytes) -> Iterator[bytes]:
        tag, key = b"", key_of(self.path.parent) if raw else b""
        for at in range(0, len(raw), self._each):
            record = raw[at : at + self._each]
            tag = chained(key, self.path.name, tag, record[:-_TAG])
            if tag != record[-_TAG:]:
                raise ConfigError(
                    f"{self.path} is damaged, or not of this place and run, from record {at // self._each + 1:,} on: "
                    "put it back, or discard the run with --overwrite"
                )
            yield tag

    def _words(self, raw: bytes) -> np.ndarray:
        rows = np.frombuffer(raw, np.uint8).reshape(-1, self._each)[:, :-_TAG]
        return np.frombuffer(rows.tobytes(), np.int64).reshape(-1, *self._shape)


def note_again(folder: Path, first: int, end: int) -> None:
    """The client knows decisions first to end - 1, which are about to be made again."""
    write_kept(folder / AGAIN, json.dumps([*_spans(folder), [first, end]]).encode())


def beyond(folder: Path, done: int, noted: int) -> tuple[int, int]:
    """Decisions disclosed beside `done` of a result, counted as often as they were; and how often one was, at most.

    noted: how many the client noted since the run last went on, counted from its first.
    """
    spans = [*_spans(folder), [0, noted]]
    times = np.zeros(max(end for _, end in spans), np.int64)
    for first, end in spans:
        times[first:end] += 1
    return int(times.sum()) - done, int(times.max(initial=1))


def _spans(folder: Path) -> list[list[int]]:
    if not (path := folder / AGAIN).exists():
        return []
    content = read_kept(path, cure="put it back, or discard the run with --overwrite")
    return [[int(first), int(end)] for first, end in json.loads(content)]

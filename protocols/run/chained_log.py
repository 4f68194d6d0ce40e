"""A file that grows by whole lines, which a crash may cut short and nobody may change.  Knows bytes; not what they say.

    LENGTH TAG content TAG, a line for each append

Tags are under the home's key, each over what stands before it and the tag before that, so a line that was changed
anywhere is refused.  One that a crash cut short at the end is left out: its length says that it is not all there, or
what is missing are zeros, and no whole line stands behind it.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mpc.errors import ConfigError
from mpc.files import append, let_go, locked, open_log, write_whole

from .tagged_file import chained, key_of, writing

_TAG = 32
_HEAD, _TAIL = 8 + 1 + _TAG + 1, 1 + _TAG + 1  # bytes before and behind the content


class ChainedLog:
    """The file, which one object goes on with; from where it stood when this was made.

    It stays with the file where somebody moves the folder, and writes it again where somebody removes it.

    read: given the content of each whole line, in order.  two: what is wrong, and the cure, where another object has
    written it since.
    """

    def __init__(self, path: Path, read: Callable[[bytes], object], *, two: str) -> None:
        self._file, self._key = -1, b""
        self._path, self._two = path, two
        self._end, self._last = 0, b""  # of what this object knows: its length, and the end of its last line
        if raw := self._path.read_bytes() if self._path.exists() else b"":
            for content, end, last in self._lines(raw):
                read(content)
                self._end, self._last = end, last
            if not self._end:  # the first line came whole, in one move
                raise self._damaged()
            self._stay()

    def begin(self, content: bytes) -> None:
        """One line in place of all."""
        with writing(self._path), self._held():
            self._replace(content)

    def append(self, content: bytes) -> None:
        """A line more, on disk when this returns; OSError, and nothing is there, where it cannot be."""
        with self._held() as log:
            if not os.fstat(log).st_size:  # there was none, or somebody removed it
                self._replace(content, self._removed())
                return
            os.ftruncate(log, self._end)  # what a crash or a full disk cut short
            line = self._line(content, self._last)
            try:
                append(log, line)
            except OSError:
                os.ftruncate(log, self._end)  # it may be there as a whole, and nothing of it counts
                raise
            self._end, self._last = self._end + len(line), line[-_TAIL:]

    @property
    def size(self) -> int:
        """In bytes."""
        return self._end

    @property
    def changed(self) -> bool:
        """Whether something else has written it since this object did."""
        if not self._path.exists():
            return False
        with self._path.open("rb") as file:
            return self._differs(file.fileno())

    @contextlib.contextmanager
    def _held(self) -> Iterator[int]:
        """The file, this object's alone, which nothing else has written."""
        try:
            log = open_log(self._path)
        except FileNotFoundError:
            if self._file < 0:
                raise
            log = locked(os.dup(self._file))
        try:
            if self._differs(log):
                raise ConfigError(f"{self._path} has changed: {self._two}")
            yield log
        finally:
            let_go(log)

    def _removed(self) -> bytes:
        """All lines of a file that somebody removed, which is still open here."""
        kept = os.pread(self._file, self._end, 0) if self._end and self._file >= 0 else b""
        if len(kept) < self._end:
            raise ConfigError(f"{self._path} was emptied while it was written: put it back")
        return kept

    def _replace(self, content: bytes, before: bytes = b"") -> None:
        line = self._line(content, before[-_TAIL:])
        write_whole(self._path, before + line)
        self._end, self._last = len(before + line), line[-_TAIL:]
        self._stay()

    def _stay(self) -> None:
        """From here on with the file that is there now; what may only be read is nobody's to go on with."""
        self._leave()
        with contextlib.suppress(OSError):
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)

    def _leave(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self._leave()

    def _differs(self, file: int) -> bool:
        """Whether it is another file, or one that went on: length and inode may be the same of both."""
        size, start = os.fstat(file).st_size, self._end - len(self._last)
        raw = os.pread(file, max(0, size - start), start)
        if not raw.startswith(self._last):
            return size > 0
        return any(True for _ in self._lines(raw[len(self._last) :], self._last))

    def _lines(self, raw: bytes, before: bytes = b"") -> Iterator[tuple[bytes, int, bytes]]:
        """Content, place and end of each whole line, behind one that ends so; ConfigError where one was changed.

        What a crash leaves of a line is too short, or its pages that did not reach the disk are zeros.
        """
        at = 0
        while len(head := raw[at : at + _HEAD]) == _HEAD:
            if not any(head):
                if self._begins_in(raw[at:]):
                    raise self._damaged()
                return
            if head != self._head(head[:8], before):
                raise self._damaged()
            stop = at + _HEAD + int(head[:8], 16)
            content, tail = raw[at + _HEAD : stop], raw[stop : stop + _TAIL]
            if len(tail) < _TAIL:
                return
            if not any(tail):
                if any(raw[stop:]):
                    raise self._damaged()
                return
            if not hmac.compare_digest(tail, self._tail(content, head)):
                raise self._damaged()
            at, before = stop + _TAIL, tail
            yield content, at, tail

    def _begins_in(self, raw: bytes) -> bool:
        """Whether a line begins there, behind the end of another one."""
        ends = (place.end() for place in re.finditer(rb"\n", raw))
        heads = ((raw[max(0, end - _TAIL) : end], raw[end : end + _HEAD]) for end in ends)
        return any(head == self._head(head[:8], before) for before, head in heads if len(head) == _HEAD)

    def _line(self, content: bytes, before: bytes) -> bytes:
        head = self._head(b"%08x" % len(content), before)
        return head + content + self._tail(content, head)

    def _head(self, size: bytes, before: bytes) -> bytes:
        return size + b" " + self._tag(before, size) + b" "

    def _tail(self, content: bytes, head: bytes) -> bytes:
        return b" " + self._tag(head, content) + b"\n"

    def _tag(self, before: bytes, content: bytes) -> bytes:
        if not self._key or self._path.parent.exists():
            self._key = key_of(self._path.parent)
        return chained(self._key, self._path.name, before, content).hex().encode()

    def _damaged(self) -> ConfigError:
        return ConfigError(f"{self._path} is damaged, or not of this place: put it back")

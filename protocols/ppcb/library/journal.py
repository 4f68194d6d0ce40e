"""What a saved bandit tells: whole counts, written beside the save before an arm leaves.  Knows files; no share.

    folder/party-p/journal      LENGTH TAG {"next_decision": 31, "ledger": [...]} TAG, a line for each call that tells

A bandit that is loaded counts on from the greatest of what its save, its journal and the other parties' say: no
disclosure is forgotten, and no number of a decision is given twice.  Tags are under the home's key, each over what
stands before it and the tag before that, so a line that was changed anywhere is refused.  One that a crash cut short at
the end is left out: its length says that it is not all there.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import append, let_go, locked, open_log, write_whole
from mpc.ledger import Entry, Ledger

from ...run.tagged_file import chained, key_of, writing


@dataclass(frozen=True)
class Told:
    """The number of the next decision, and who learned what, since the bandit was made."""

    next_decision: int
    ledger: tuple[Entry, ...]

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Told:
        """From JSON, as `asdict` gives it."""
        return cls(int(facts["next_decision"]), tuple(Entry(**entry) for entry in facts["ledger"]))


def greatest(several: Iterable[Told]) -> Told:
    """The greatest of each count."""
    numbers, counts = [0], dict[tuple[str, str, str], int]()
    for one in several:
        numbers.append(one.next_decision)
        for entry in one.ledger:
            key = entry.role, entry.what, entry.why
            counts[key] = max(entry.count, counts.get(key, 0))
    ledger = Ledger()
    ledger.record_all((role, what, count, why) for (role, what, why), count in counts.items())
    return Told(max(numbers), tuple(ledger))


_TAG = 32
_HEAD, _TAIL = 8 + 1 + _TAG + 1, 1 + _TAG + 1  # bytes before and behind the content


class Journal:
    """The file in one party's home, which one object goes on with; from where it stood when this was made.

    It stays with the file where somebody moves the folder.
    """

    def __init__(self, home: Path) -> None:
        self._file, self._key = -1, b""
        self._path, self._told = home / "journal", Told(0, ())
        self._end, self._last = 0, b""  # of what this object knows: its length, and the end of its last line
        if raw := self._path.read_bytes() if self._path.exists() else b"":
            lines = list(self._lines(raw))
            if not lines:  # the first line came whole, in one move
                raise self._damaged()
            content, self._end, self._last = lines[-1]
            self._told = Told.read(json.loads(content))
            self._stay()

    def told(self) -> Told:
        """What its last whole line says."""
        return self._told

    def begin(self, told: Told) -> None:
        """One line in place of all, which says no less than they do."""
        with writing(self._path), self._held():
            self._replace(told)

    def append(self, told: Told) -> None:
        """A line more, on disk when this returns; none where the folder is deleted, with whatever could be loaded."""
        try:
            with self._held() as log:
                if not os.fstat(log).st_size:  # there was none, or somebody removed it; this line says all it said
                    self._replace(told)
                    return
                os.ftruncate(log, self._end)  # what a crash or a full disk cut short
                line = self._line(told, self._last)
                try:
                    append(log, line)
                except OSError:
                    os.ftruncate(log, self._end)  # it may be there as a whole, and nothing of it is told
                    raise
                self._told, self._end, self._last = told, self._end + len(line), line[-_TAIL:]
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot be written ({error.strerror}), and no arm is told before it is noted there: make "
                "room, or go on from a copy of the folder"
            ) from error

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
                raise ConfigError(
                    f"{self._path} has changed: something else goes on with this bandit, and both would give the same "
                    "numbers to decisions: go on with one of them, loaded anew, and give each worker a copy of the "
                    "folder"
                )
            yield log
        finally:
            let_go(log)

    def _replace(self, told: Told) -> None:
        line = self._line(told, b"")
        write_whole(self._path, line)
        self._told, self._end, self._last = told, len(line), line[-_TAIL:]
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
        while any(head := raw[at : at + _HEAD]) and len(head) == _HEAD:
            if head != self._head(head[:8], before):
                raise self._damaged()
            size = int(head[:8], 16)
            content, tail = raw[at + _HEAD :][:size], raw[at + _HEAD + size :][:_TAIL]
            if len(tail) < _TAIL or not any(tail):
                return
            if not hmac.compare_digest(tail, self._tail(content, head)):
                raise self._damaged()
            at, before = at + _HEAD + size + _TAIL, tail
            yield content, at, tail

    def _line(self, told: Told, before: bytes) -> bytes:
        content = json.dumps(asdict(told)).encode()
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

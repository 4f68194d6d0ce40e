"""What a saved bandit tells: whole counts, written beside the save before an arm leaves.  Knows files; no share.

    folder/party-p/journal      {"next_decision": 31, "ledger": [...]} TAG, a line for each call that tells something

A bandit that is loaded counts on from the greatest of what its save, its journal and the other parties' say: no
disclosure is forgotten, and no number of a decision is given twice.  A line that a crash cut short is passed over; a
whole one has a tag under its home's key.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.files import append, flush_folder, open_log, write_whole
from mpc.ledger import Entry, Ledger

from ...run.tagged_file import chained, key_of


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


_WHOLE = re.compile(rb"(\{.*\}) ([0-9a-f]{32})")


class Journal:
    """The file in one party's home, which one object goes on with."""

    def __init__(self, home: Path) -> None:
        self._path = home / "journal"
        self._seen = self._stands()

    def told(self) -> Told:
        """What its last whole line says."""
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in reversed(lines):
            if whole := _WHOLE.fullmatch(line):
                if not hmac.compare_digest(self._tag(whole[1]), whole[2]):
                    raise ConfigError(f"{self._path} is damaged, or not of this place: put it back")
                return Told.read(json.loads(whole[1]))
        return Told(0, ())

    def begin(self, told: Told) -> None:
        """One line in place of all, which says no less than they do."""
        write_whole(self._path, self._line(told))
        self._seen = self._stands()

    def append(self, told: Told) -> None:
        """A line more, on disk when this returns; none where the folder is gone, with whatever could be loaded."""
        try:
            log = open_log(self._path)
            try:
                self._append(log, self._line(told))
            finally:
                os.close(log)
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
        return self._stands() != self._seen and self._stands()[1] > 0

    def _append(self, log: int, line: bytes) -> None:
        if self.changed:
            raise ConfigError(
                f"{self._path} has changed: something else goes on with this bandit, and both would give the same "
                "numbers to decisions: go on with one of them, loaded anew, and give each worker a copy of the folder"
            )
        if not self._stands()[1]:
            flush_folder(self._path.parent)
        try:
            append(log, line)
        finally:
            self._seen = self._stands()

    def _stands(self) -> tuple[int, int]:
        """Which file it is, and how long."""
        if not self._path.exists():
            return 0, 0
        stat = self._path.stat()
        return stat.st_ino, stat.st_size

    def _line(self, told: Told) -> bytes:
        """The break comes first: what a crash cut short before it stays a line of its own."""
        content = json.dumps(asdict(told)).encode()
        return b"\n" + content + b" " + self._tag(content)

    def _tag(self, content: bytes) -> bytes:
        return chained(key_of(self._path.parent), self._path.name, b"", content).hex().encode()

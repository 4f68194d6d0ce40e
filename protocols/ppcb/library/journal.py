"""What a saved bandit tells: whole counts, written beside the save before an arm leaves.  Knows files; no share.

    folder/party-p/journal      LENGTH TAG {"save": 7, "next_decision": 31, "ledger": [...]} TAG

A line for each call that tells.  By the number of the save it is beside, a journal of an earlier one is known.  A
bandit that is loaded counts on from the greatest of what its save, its journal and the other parties' say: no
disclosure is forgotten, and no number of a decision is given twice.  `ChainedLog` keeps the lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.ledger import Entry, Ledger

from ...run.chained_log import ChainedLog


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


class Journal:
    """The file in one party's home, which one object goes on with; from where it stood when this was made.

    save: the number of the one that it was begun with; -1 where it has no line, as where it was removed or emptied.
    """

    def __init__(self, home: Path) -> None:
        self._path, self._told, self.save = home / "journal", Told(0, ()), -1
        self._log = ChainedLog(self._path, self._read, two=_TWO)

    def told(self) -> Told:
        """What its last whole line says."""
        return self._told

    def begin(self, told: Told, save: int) -> None:
        """One line in place of all, which says no less than they do, for the save of that number."""
        self._log.begin(_line(told, save))
        self._told, self.save = told, save

    def append(self, told: Told) -> None:
        """A line more, on disk when this returns; none where the folder is deleted, with whatever could be loaded."""
        try:
            self._log.append(_line(told, self.save))
            self._told = told
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
        return self._log.changed

    def _read(self, content: bytes) -> None:
        facts = json.loads(content)
        self._told, self.save = Told.read(facts), facts.get("save", 0)


_TWO = (
    "something else goes on with this bandit, and both would give the same numbers to decisions: go on with one of "
    "them, loaded anew, and give each worker a copy of the folder"
)


def _line(told: Told, save: int) -> bytes:
    return json.dumps({"save": save, **asdict(told)}).encode()

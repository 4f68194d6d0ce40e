"""A bandit that is on disk, with all that it said, when a batch of calls has ended.  Knows files; no request.

    FOLDER/bandit          as the library saves it, with its journal: numbers and the ledger, before an arm is told
    FOLDER/service/log     what happened since that save, a line for each batch, before anything is answered

A save without its log has lost it, so the log is there first.  A line has the shares of the contexts that were decided
on and of their arms, the rewards that were learned from, and the answers to requests with keys.  To go on is
to load the save and learn from these rewards again.  Where all parties are in one process, as here, whoever has the
folder has everything.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.files import flush_folder

from ...run.chained_log import ChainedLog
from ...run.tagged_file import prepare
from ..library.bandit import PrivateContextualBandit
from ..library.decisions import Holdings
from ..library.place import InOneProcess
from ..library.service import Service
from ..player import feature_blocks
from ..settings import Settings
from .answers import Keyed

_TWO = "another service goes on with this bandit: stop one of them"
_MOST_BYTES, _MOST_LEARNED = 32 << 20, 2000  # since a save; then there is a new one, and less to learn from again


class NotKept(ConfigError):
    """A batch could not be written: nothing of it may be answered, and the bandit stands where it was on disk."""


@dataclass
class _Batch:
    """What happened since the last line."""

    paid: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list, repr=False)
    decided: list[int] = field(default_factory=list)


class DurableBandit:
    """The bandit of a folder.  One thread calls it.

    make: a bandit, where the folder has none yet.  `answers` are those that the folder has.
    """

    def __init__(self, folder: Path, make: Callable[[], PrivateContextualBandit]) -> None:
        self._home, self._place = folder / "bandit", folder / "service"
        self.answers: list[Keyed] = []
        self._batch = _Batch()
        if not self._home.exists():
            self._make(folder, make)
        self._load()

    @property
    def bandit(self) -> PrivateContextualBandit:
        """As it stands now; to be looked at."""
        return self._bandit

    @property
    def held(self) -> Holdings:
        """What waits for a reward, and how much was learned; to be looked at."""
        return self._held

    @property
    def widths(self) -> tuple[int, ...]:
        """How many features each owner has."""
        return tuple(block.stop - block.start for block in owned(self._bandit.settings))

    @property
    def learn_batch(self) -> int:
        """How many rewards are learned from in the rounds of one."""
        return self._bandit.learn_batch

    @property
    def log_bytes(self) -> int:
        """Since the last save."""
        return self._log.size

    def decide(self, rows: np.ndarray) -> tuple[list[int], list[Any]]:
        """Numbers and arms for contexts (contexts, dim)."""
        numbers, arms = list[int](), list[Any]()
        for start in range(0, len(rows), size := self._most_together):
            told = self._bandit.predict(rows[start : start + size])
            numbers += np.asarray(told.decision_id).tolist()
            arms += told.arm.tolist()
        self._batch.decided += numbers
        return numbers, arms

    def pay(self, decisions: Sequence[int], rewards: Sequence[float]) -> None:
        """Learn from the rewards of open decisions."""
        self._bandit.learn(decision_id=list(decisions), reward=list(rewards))
        self._batch.paid += decisions
        self._batch.rewards += rewards

    def warm_up(self, contexts: int) -> None:
        """Play a batch with a bandit like this one that is thrown away: what is loaded and worked out once is there."""
        bandit, count = self._bandit, min(contexts, self._most_together)
        settings, hosting = bandit.settings, InOneProcess.of(bandit.parties, None)
        like = PrivateContextualBandit._of(Service(settings, hosting, most_unpaid=count))
        told = like.predict(np.zeros((count, bandit.dim)))
        like.learn(decision_id=told.decision_id, reward=np.full(count, settings.reward_range[0]))

    def keep(self, answers: Sequence[Keyed]) -> None:
        """All since the last time is on disk when this returns; NotKept, and the bandit is as it was then."""
        batch, held = self._batch, self._held
        self._batch = _Batch()
        decided = [number for number in batch.decided if number in held.open]
        opened = [held.open[number] for number in decided]
        line = {
            "calls": held.calls, "paid": batch.paid, "rewards": batch.rewards, "decided": decided,
            "pulled": [each.pulled for each in opened],
            "x": _packed([each.x for each in opened]), "o": _packed([each.o for each in opened]),
            "answers": [list(each) for each in answers],
        }  # fmt: skip
        try:
            self._log.append(json.dumps(line).encode())
        except OSError as error:
            self._load()
            raise NotKept(f"{self._place / 'log'} cannot be written ({error.strerror}): make room there") from error

    @property
    def save_is_due(self) -> bool:
        """Whether so much happened since the last save that going on from it would take long."""
        return self._log.size > _MOST_BYTES or self._bandit.learned - self._learned >= _MOST_LEARNED

    def save(self, answers: Sequence[Keyed]) -> None:
        """A new save, and a log that begins there with all answers that are still known."""
        self._bandit.save(self._home)
        self._begin(answers)

    def extend(self, steps: int) -> None:
        """Learn from so many contexts in all."""
        self._bandit.extend(steps)
        self.save(self.answers)

    def _make(self, folder: Path, make: Callable[[], PrivateContextualBandit]) -> None:
        """The first save, in one move, when its log is there: a save without one has lost it."""
        with suppress(FileNotFoundError):
            shutil.rmtree(folder / "bandit.new")  # of a crash before the first save was whole
        ChainedLog(self._place / "log", self._check_new, two=_TWO)
        make().save(folder / "bandit.new")
        prepare(self._place)
        ChainedLog(self._place / "log", self._check_new, two=_TWO).begin(_first(0, []))
        (folder / "bandit.new").rename(self._home)
        flush_folder(folder)

    def _check_new(self, content: bytes) -> None:
        """No line but that with which a log begins: a first start may have come so far."""
        if content != _first(0, []):
            raise ConfigError(f"{self._home} is missing, and its log is there: put it back, or begin in another folder")

    def _load(self) -> None:
        """As it is on disk: the last save, and what the log says since."""
        self._bandit = PrivateContextualBandit.load(self._home)
        self._held, self._learned = self._bandit._service.held, self._bandit.learned
        self.answers = []
        self._log = ChainedLog(self._place / "log", self._replay, two=_TWO)
        if not self._log.size:
            raise ConfigError(
                f"{self._place / 'log'} is missing or empty, and with it all that was answered since the last save: "
                "put it back, or begin in another folder"
            )

    def _begin(self, answers: Sequence[Keyed]) -> None:
        self._log.begin(_first(self._held.calls, answers))
        self._learned = self._bandit.learned

    def _replay(self, content: bytes) -> None:
        """What one line says, unless the save has it already."""
        line, held = json.loads(content), self._held
        self.answers += [Keyed(*each) for each in line["answers"]]
        if line["calls"] <= held.calls:
            return
        if "paid" not in line:
            raise ConfigError(f"{self._home} is of before its log began: put that of {self._place / 'log'} back")
        if line["paid"]:
            self._bandit.learn(decision_id=line["paid"], reward=line["rewards"])
        if line["decided"]:
            shape = (len(held.words["table"]), 1, len(line["decided"]))
            x, o = (_unpacked(line[name], shape) for name in ("x", "o"))
            held.keep(np.array(line["decided"]), x, o, np.array(line["pulled"]))
        held.calls = line["calls"]

    @property
    def _most_together(self) -> int:
        return min(self._bandit._service.most_together, self._held.most_unpaid)


def _first(calls: int, answers: Sequence[Keyed]) -> bytes:
    """The line with which a log begins, behind a save of so many calls; 0 where it is the first."""
    return json.dumps({"calls": calls, "answers": [list(each) for each in answers]}).encode()


def owned(settings: Settings) -> tuple[slice, ...]:
    """The columns of each owner."""
    return feature_blocks(settings.dim, settings.owners, settings.widths)


def _packed(several: list[np.ndarray]) -> str:
    """Shares (hosted, 1, 1, width) of several decisions, in their order."""
    return base64.b64encode(b"".join(words.tobytes() for words in several)).decode()


def _unpacked(text: str, shape: tuple[int, int, int]) -> np.ndarray:
    """(hosted, 1, decisions, width)."""
    hosted, _, decisions = shape
    words = np.frombuffer(base64.b64decode(text), np.uint64).reshape(decisions, hosted, 1, -1)
    return np.ascontiguousarray(words.transpose(1, 2, 0, 3))

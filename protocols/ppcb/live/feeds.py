"""What one role's programs ask of it, between two turns of the parties.  Knows what waits; no share, no HTTP.

A turn counts when all parties keep it, which clients hear at the start of the next one.  Until then what it was about
still waits: where parties go back to the turn before, it is asked for again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.ledger import Entry
from mpc.net.requests import Answer, Refused, Request

from ...run.chained_log import ChainedLog
from ...run.tagged_file import prepare, read_kept, write_kept, writing
from ..serving.answers import Answers, Keyed
from ..serving.bodies import NUMBERS
from ..serving.waiting import Waiting
from .turn import DIGEST_BITS, FULL

_TWO = "another service goes on with this role: stop one of them"
_NUMBERS = "put it back, since no number is to be given twice, or begin anew in another folder"
_RESERVED = 100  # numbers that one write to the disk covers
_LONGEST = 4096  # contexts or rewards that may wait
_LOG = 1 << 23  # bytes of a log that is begun anew


def digest_of(name: str) -> int:
    """Of a context's id, by which parties find their parts."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> (64 - DIGEST_BITS)


class Feed:
    """A role that is asked nothing; each other one has its own part of this."""

    def rows(self, party: int, digests: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """A party's features of these contexts, (contexts, width), and 1 where it has them, else 0."""
        raise NotImplementedError

    def over(self, digests: Sequence[int]) -> None:
        """These contexts are decided on, all parties have kept it, and the puller has answered."""

    def plays(self, ledger: Iterable[Entry]) -> None:
        """A party begins, or goes back.  ledger: what it counts from here on."""

    def begin(self) -> None:
        """All begin, or go back: what does not count yet waits again."""

    def kept(self) -> None:
        """All that was told before this turn is kept by all parties."""

    def ask(self, most: int) -> list[tuple[int, int]]:
        """Numbers and digests of what is asked about now; waits a moment where nothing is."""
        return []

    def told(self, arms: Sequence[int], whole: Sequence[int]) -> None:
        """What came of the last `ask`."""

    def due(self, most: int) -> list[tuple[int, float]]:
        """Decisions and rewards that are there now."""
        return []

    def found(self, counted: Sequence[int]) -> None:
        """Which of the last `due` counted."""

    def end(self) -> None:
        """Nobody asks the parties any more."""


class OwnerFeed(Feed):
    """One owner's parts, from its own programs.  waiting: by digest; a part waits until it is over, or its time is.

    bound, bits: of norms, as `Waiting` has them.
    """

    def __init__(self, owner: int, width: int, bound: float, *, bits: int) -> None:
        self.owner, self._width = owner, width
        self.ledger: Iterable[Entry] = ()
        self.waiting = Waiting({owner: slice(0, width)}, bound, bits=bits)

    def plays(self, ledger: Iterable[Entry]) -> None:
        """For whoever asks who learned what."""
        self.ledger = ledger

    def put(self, names: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
        """Some parts."""
        self.waiting.put(self.owner, [str(digest_of(name)) for name in names], rows)

    def rows(self, party: int, digests: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Zeros where it has none."""
        rows, has = np.zeros((len(digests), self._width)), np.zeros(len(digests), np.int64)
        for at, digest in enumerate(digests):
            if (row := self.waiting.look(str(digest))) is not None:
                rows[at], has[at] = row, 1
        return rows, has

    def over(self, digests: Sequence[int]) -> None:
        """Their parts wait no longer."""
        self.waiting.drop([str(digest) for digest in digests])


@dataclass(eq=False)
class _Wish:
    """A request for arms.  names: of its contexts.  alone: one, not in a list.  future: where its answer goes.

    numbers: of its decisions, in the turn that asks for it.  answer: what that turn told.
    """

    request: Request
    names: Sequence[str] = field(repr=False)
    alone: bool
    future: Future[Answer] = field(default_factory=Future)
    numbers: list[int] = field(default_factory=list)
    answer: dict[str, Any] | Refused | None = field(default=None, repr=False)


class PullerFeed(Feed):
    """Asks about contexts.  folder: where its numbers and answers are kept.

    most: contexts of a turn, and so of a request.  beat: seconds that a turn waits for somebody who asks.  called: what
    an arm is to whoever asks.
    """

    def __init__(
        self, folder: Path, *, most: int, beat: float, called: Callable[[int], int | str] = lambda arm: arm
    ) -> None:
        prepare(folder)
        self._called = called
        self._counter, self._most, self._beat = folder / "numbers", most, beat
        self._there, self._waiting, self._asked = threading.Condition(), list[_Wish](), list[_Wish]()
        self._next = self._reserved = int(read_kept(self._counter, cure=_NUMBERS)) if self._counter.exists() else 0
        self.answers, self.decisions, self._over = Answers(), 0, False
        self._log = ChainedLog(folder / "answers", self._known, two=_TWO)
        self._begin()

    def _begin(self) -> None:
        self._log.begin(_line([list(each) for each in self.answers.given()]))

    def predict(self, request: Request, names: Sequence[str], *, alone: bool) -> Future[Answer]:
        """The decisions, when all parties keep them."""
        if len(names) > self._most:
            raise Refused(413, f"a request is about {self._most} contexts at most, the run's batch: send several")
        wish = _Wish(request, names, alone)
        with self._there:
            if self._over:
                raise Refused(503, "the service ends: ask again when it is back", retry=5)
            if self.waiting + len(names) > _LONGEST:
                raise Refused(503, f"{_LONGEST:,} contexts wait already: ask again later", retry=1)
            self._waiting.append(wish)
            self._there.notify()
        return wish.future

    @property
    def waiting(self) -> int:
        """Contexts that nobody has asked the parties about yet."""
        return sum(len(each.names) for each in self._waiting)

    def begin(self) -> None:
        """What no party may have kept is asked for again, under new numbers."""
        with self._there:
            self._waiting, self._asked = self._asked + self._waiting, []

    def ask(self, most: int) -> list[tuple[int, int]]:
        """Of whole requests, the first that came first; no context twice, as it is decided on once."""
        with self._there:
            self._there.wait_for(lambda: self._waiting, self._beat)
            room, names = most, set[str]()
            while self._waiting and len(self._waiting[0].names) <= room and names.isdisjoint(self._waiting[0].names):
                wish = self._waiting.pop(0)
                names |= set(wish.names)
                wish.numbers, room = [self._number() for _ in wish.names], room - len(wish.names)
                self._asked.append(wish)
        return [(number, digest_of(name)) for wish in self._asked for number, name in zip(wish.numbers, wish.names)]

    def told(self, arms: Sequence[int], whole: Sequence[int]) -> None:
        """Each request gets all its arms, or hears which of its contexts lacks a part."""
        came = iter(zip(arms, whole))
        for wish in self._asked:
            own = [next(came) for _ in wish.names]
            lacking = [name for name, (_, there) in zip(wish.names, own) if not there]
            told = [{"decision_id": number, "arm": self._called(arm)} for number, (arm, _) in zip(wish.numbers, own)]
            wish.answer = told[0] if wish.alone else {"decisions": told}
            if lacking:
                wish.answer = Refused(404, f"context {lacking[0]!r} lacks an owner's part: send it to /context there")

    def kept(self) -> None:
        """All parties have what was told, so it is answered."""
        asked = self._asked
        answered = [wish for wish in asked if isinstance(wish.answer, dict)]
        if keyed := [_keyed(wish) for wish in answered if wish.request.key is not None]:
            with writing(self._counter.parent):
                self._log.append(_line(keyed))
        self._asked = []
        self.decisions += sum(len(wish.names) for wish in answered)
        for wish in asked:
            if wish.future.set_running_or_notify_cancel():
                if isinstance(wish.answer, Refused):
                    wish.future.set_exception(wish.answer)
                else:
                    wish.future.set_result(wish.answer or {})
        if self._log.size > _LOG:
            self._begin()

    def end(self) -> None:
        """Who waits is told to ask again."""
        self.begin()
        with self._there:
            self._over, waiting, self._waiting = True, self._waiting, []
        for wish in waiting:
            if wish.future.set_running_or_notify_cancel():
                wish.future.set_exception(Refused(503, "the service ends: ask again when it is back", retry=5))

    def _known(self, content: bytes) -> None:
        self.answers.put(Keyed(*each) for each in json.loads(content))

    def _number(self) -> int:
        """One that none has had or will have, after a crash too."""
        if self._next >= self._reserved:
            self._reserved = self._next + _RESERVED
            write_kept(self._counter, str(self._reserved).encode())
        self._next += 1
        return self._next - 1


class PayerFeed(Feed):
    """Has rewards.  folder: where those are kept that no turn has learned from yet."""

    def __init__(self, folder: Path) -> None:
        prepare(folder)
        self._folder = folder
        self._lock, self._unsent, self._sent = threading.Lock(), dict[int, float](), list[int]()
        self._found = dict[int, int]()  # of those that were sent, whether they counted
        self._full = False  # all rewards that were declared are learned; the others wait until all roles have more
        self._counted = set[int]()  # of those that wait again, what counted in a turn that may have been lost
        self.answers, self.learned, self.passed_over = Answers(), 0, 0
        self._log = ChainedLog(folder / "rewards", self._read, two=_TWO)
        self._begin()

    def _begin(self) -> None:
        keyed = [list(each) for each in self.answers.given()]
        self._log.begin(_line({"due": list(self._unsent.items()), "over": [], "keyed": keyed}))

    def reward(self, request: Request, decisions: Sequence[int], rewards: Sequence[float]) -> Future[Answer]:
        """On the disk when it is answered; a turn learns from it."""
        answer: Answer = {"received": len(decisions)}
        with self._lock:
            if self._full:
                raise Refused(503, "all steps are learned: give all roles more 'steps', and --resume", retry=60)
            if twice := [number for number in decisions if number in self._unsent]:
                raise Refused(409, f"the reward of decision {twice[0]} waits already: send each once")
            if len(self._unsent) + len(decisions) > _LONGEST:
                raise Refused(503, f"{_LONGEST:,} rewards wait already: ask again later", retry=2)
            keyed = [] if request.key is None else [Keyed(request.role, request.key, request.digest, answer)]
            due = dict(zip(decisions, rewards))
            try:
                self._log.append(_line({"due": list(due.items()), "over": [], "keyed": keyed}))
            except OSError as error:
                raise Refused(503, "the service has no room to keep a reward: ask again later", retry=5) from error
            self._unsent |= due
            self.answers.put(keyed)
        future: Future[Answer] = Future()
        future.set_result(answer)
        return future

    @property
    def waiting(self) -> int:
        """Rewards that are not learned from yet."""
        return len(self._unsent)

    def begin(self) -> None:
        """What no party may have kept is sent again; decisions that were learned from are passed over."""
        with self._lock:
            self._counted |= {number for number, counted in self._found.items() if counted == 1}
            self._sent, self._found = [], {}

    def due(self, most: int) -> list[tuple[int, float]]:
        """The oldest."""
        with self._lock:
            self._sent = [] if self._full else list(self._unsent)[:most]
            return [(number, self._unsent[number]) for number in self._sent]

    def found(self, counted: Sequence[int]) -> None:
        """Of others the decision is too old, was never made, or was paid before."""
        self._found = dict(zip(self._sent, counted))

    def kept(self) -> None:
        """They are over, but for those that there was no room to learn from."""
        with self._lock:
            over = [number for number in self._sent if self._found.get(number) != FULL]
            self._full = self._full or len(over) < len(self._sent)
            if over:
                with writing(self._folder):
                    self._log.append(_line({"due": [], "over": over, "keyed": []}))
            for number in over:
                del self._unsent[number]
                learned = self._found.get(number) == 1 or number in self._counted
                self.learned, self.passed_over = self.learned + learned, self.passed_over + (not learned)
            self._counted -= set(self._sent)
            self._sent, self._found = [], {}
            if self._log.size > _LOG:
                self._begin()

    def _read(self, content: bytes) -> None:
        line = json.loads(content)
        # A release that took larger numbers may have written them, which no word holds and no decision has.
        self._unsent |= {int(number): float(reward) for number, reward in line["due"] if int(number) < NUMBERS}
        for number in line["over"]:
            self._unsent.pop(number, None)
        self.answers.put(Keyed(*each) for each in line["keyed"])


def _keyed(wish: _Wish) -> list[Any]:
    return [wish.request.role, wish.request.key, wish.request.digest, wish.answer]


def _line(given: Any) -> bytes:
    return json.dumps(given).encode()

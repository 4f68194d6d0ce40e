"""Requests that wait are taken together: a batch of decisions or of rewards, one line on disk, then all answers.

One thread has the bandit.  While it is at work on a batch, requests come, and are its next ones.  Where both kinds wait
they take turns, and a batch has no more rewards than are learned from together, so that nobody waits long for an arm.
A request is served as a whole or refused as a whole, and one that is refused changes nothing for the others.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpc.errors import ConfigError, MaskedError
from mpc.net.requests import Answer, Refused, Request

from .answers import Answers, Keyed
from .durable import DurableBandit, NotKept
from .measures import Measures
from .waiting import Taken

_LATER = 30.0  # seconds after which a save that failed is tried again
_NOT_KEPT = "the service has no room to keep what it says: ask again later"


@dataclass
class _Ask:
    """One request.  taken: contexts that want a decision, alone if not in a list.  decisions, rewards: what is paid."""

    request: Request
    taken: Taken | None = None
    alone: bool = False
    decisions: Sequence[int] = ()
    rewards: Sequence[float] = field(default=(), repr=False)
    future: Future[Answer] = field(default_factory=Future)
    answer: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """How many contexts."""
        return len(self.decisions) if self.taken is None else len(self.taken)

    @property
    def pays(self) -> bool:
        """Whether it brings rewards."""
        return self.taken is None

    def refuse(self, error: Refused) -> None:
        """With what the client is told; its contexts wait again before it hears that."""
        if self.taken is not None:
            self.taken.put_back()
        self.future.set_exception(error)

    def keyed(self) -> Iterator[Keyed]:
        """What is to be kept of the answer."""
        if self.request.key is not None:
            yield Keyed(self.request.role, self.request.key, self.request.digest, self.answer)


class Batches:
    """most: contexts of a batch; a request of more is a batch of its own.  longest: contexts that may wait."""

    def __init__(
        self, bandit: DurableBandit, answers: Answers, measures: Measures, *, most: int = 64, longest: int = 4096,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._bandit, self._answers, self._measures, self._say = bandit, answers, measures, say
        self._most, self._longest, self._save_after = most, longest, 0.0
        self._decisions, self._rewards, self._pay_next = deque[_Ask](), deque[_Ask](), False
        self._there, self._ending = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, name="bandit", daemon=True)

    def predict(self, request: Request, taken: Taken, *, alone: bool) -> Future[Answer]:
        """Answers with a number and an arm for each context, in a list, or for the one that stands alone.

        Contexts that are not decided on are put back.
        """
        return self._put(_Ask(request, taken, alone))

    def learn(self, request: Request, decisions: Sequence[int], rewards: Sequence[float]) -> Future[Answer]:
        """Answers when it is learned from and on disk."""
        return self._put(_Ask(request, decisions=decisions, rewards=rewards))

    @property
    def waiting(self) -> int:
        """Requests that no batch has yet."""
        return len(self._decisions) + len(self._rewards)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While it is entered; then what waits is served, and the bandit is saved."""
        self._thread.start()
        try:
            yield
        finally:
            with self._there:
                self._ending = True
                self._there.notify()
            self._thread.join()
            if not self._measures.failed:
                self._bandit.save(self._answers.given())

    def _put(self, ask: _Ask) -> Future[Answer]:
        with self._there:
            try:
                self._check_room(ask)
            except Refused as refused:
                ask.refuse(refused)
                raise
            (self._rewards if ask.pays else self._decisions).append(ask)
            self._there.notify()
        return ask.future

    def _check_room(self, ask: _Ask) -> None:
        if self._measures.failed or self._ending:
            raise Refused(503, self._measures.failed or "the service ends: ask again when it is back", retry=5)
        if self.waiting and sum(each.size for each in (*self._decisions, *self._rewards)) + ask.size > self._longest:
            raise Refused(503, f"{self._longest:,} contexts and rewards wait already: ask again later", retry=1)

    def _work(self) -> None:
        while asks := self._next():
            begun = [ask for ask in asks if ask.future.set_running_or_notify_cancel()]
            try:
                if not self._measures.failed:
                    self._served(begun)
            except Exception as error:  # whatever it is, nobody waits for ever, and nothing goes on from a half
                self._fail(error)
            for ask in begun:
                if not ask.future.done():
                    ask.refuse(Refused(503, self._measures.failed, retry=30))

    def _next(self) -> list[_Ask]:
        """The requests of a batch, all of one kind, the first that came first; none when all is over."""
        with self._there:
            while not self.waiting and not self._ending:
                self._there.wait()
            pays = bool(self._rewards) and (self._pay_next or not self._decisions)
            self._pay_next = not pays
            queue, asks = self._rewards if pays else self._decisions, list[_Ask]()
            room = min(self._most, self._bandit.learn_batch) if pays else self._most
            while queue and (not asks or queue[0].size <= room):
                asks.append(queue.popleft())
                room -= asks[-1].size
            return asks

    def _served(self, asks: list[_Ask]) -> None:
        measures, pay = self._measures, bool(asks) and asks[0].pays
        with measures.spent("learning" if pay else "deciding"):
            served = self._paid(asks) if pay else self._decided(asks)
        if not served:
            return
        with measures.spent("keeping"):
            try:
                self._bandit.keep([keyed for ask in served for keyed in ask.keyed()])
            except NotKept as error:
                self._say(f"warning: {error}")
                for ask in served:
                    ask.refuse(Refused(503, _NOT_KEPT, retry=5))
                return
        measures.add("rewards" if pay else "decisions", sum(ask.size for ask in served))
        measures.add("batches")
        for ask in served:
            ask.future.set_result(ask.answer)
        if self._bandit.save_is_due and time.monotonic() >= self._save_after:
            self._save()

    def _paid(self, asks: list[_Ask]) -> list[_Ask]:
        """Learn from all that can be learned from; gives their requests."""
        served, taken = list[_Ask](), set[int]()
        room = self._bandit.bandit.settings.steps - self._bandit.bandit.learned
        for ask in asks:
            try:
                self._check_decisions(ask, taken, room - len(taken))
            except Refused as refused:
                ask.refuse(refused)
                continue
            taken.update(ask.decisions)
            served.append(ask)
            ask.answer = {"learned": len(ask.decisions)}
        if served:
            self._bandit.pay(
                [number for ask in served for number in ask.decisions], [pay for ask in served for pay in ask.rewards]
            )
        return served

    def _check_decisions(self, ask: _Ask, taken: set[int], room: int) -> None:
        held = self._bandit.held
        for number in ask.decisions:
            if not 0 <= number < held.next_decision:
                raise Refused(404, f"there is no decision {number}: send the decision_id of /predict")
            if number not in held.open or number in taken:
                raise Refused(
                    409,
                    f"decision {number} was learned from already, or is older than the {held.most_unpaid:,} that are "
                    "kept for a reward: send each reward once, and soon",
                )
        if len(ask.decisions) > room:
            steps = self._bandit.bandit.settings.steps
            raise Refused(409, f"{steps:,} rewards were declared: start the service with more --steps to learn on")

    def _decided(self, asks: list[_Ask]) -> list[_Ask]:
        """Decide on all; gives their requests, none where that cannot be noted."""
        if not asks:
            return []
        try:
            numbers, arms = self._bandit.decide(
                np.concatenate([ask.taken.rows for ask in asks if ask.taken is not None])
            )
        except ConfigError as error:
            self._say(f"warning: {error.told}")
            for ask in asks:
                ask.refuse(Refused(503, _NOT_KEPT, retry=5))
            return []
        told = iter([{"decision_id": number, "arm": arm} for number, arm in zip(numbers, arms)])
        for ask in asks:
            own = [next(told) for _ in range(ask.size)]
            ask.answer = own[0] if ask.alone else {"decisions": own}
        return asks

    def _save(self) -> None:
        with self._measures.spent("saving"):
            try:
                self._bandit.save(self._answers.given())
                self._measures.add("saves")
            except ConfigError as error:
                self._save_after = time.monotonic() + _LATER
                self._say(f"warning: {error.told}; it goes on from the last save and the log")

    def _fail(self, error: Exception) -> None:
        """Nothing is served from a state that nobody knows; on disk all is well."""
        told = error.told if isinstance(error, MaskedError) else f"{type(error).__name__} in the bandit's thread"
        self._measures.failed = "the service stopped after an error, which its log names: start it again"
        self._say(f"error: {told}: nothing is served any more; start it again, and it goes on from what is on disk")

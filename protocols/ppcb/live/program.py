"""The bandit of an endless run, whose turns serve what was asked by then: `masked serve --config` beside each role.

State between two turns: the regressions, and shares of the latest decisions that wait for a reward, in so many places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpc.client import ClientProgram, Receive, Send
from mpc.correlations import Correlation
from mpc.errors import ConfigError
from mpc.rounds import Rounds, labelled, supplied
from mpc.session import Session
from mpc.share import Share

from ...run.program import Arrays, Brings, Desk, Ended, Program, Role
from ...run.rehearsal import drawn
from ..clients import check_arms, check_rewards
from ..player import feature_blocks, share_contexts
from ..program import PAYER, PULLER, State
from ..refresh import refresh
from ..settings import Settings
from .feeds import Feed
from .turn import FULL, NONE, announced, known, served, told

MOST_UNPAID = 1024
"""Decisions that are kept for a reward, the latest that wait."""


_MAY_CHANGE = ("steps", "batch", "eps")


class Live(Program[None]):
    """feed: what this process's role has to ask and to say; whoever plays the role sets it.

    names: what the arms are called; none where they are numbers.
    """

    name, unit = "ppcb", "turn"
    lasting = served = True
    roles = (Role(PULLER), Role(PAYER))  # without notes: an arm counts when its turn does, of which the puller hears

    def __init__(self, settings: Settings, parties: int, turns: int, names: Sequence[str] = ()) -> None:
        super().__init__(parties, turns)
        self.names = tuple(names)
        if settings.delay or settings.replicas != 1:
            raise ConfigError("a service takes rewards whenever they come: leave out delay and replicas")
        self.settings, self.feed = settings, Feed()

    def public(self) -> dict[str, Any]:
        """Settings, the number of turns, and names."""
        own = {"live": True, "settings": self.settings.as_json(), "parties": self.parties, "turns": self.decisions}
        return own | ({"names": list(self.names)} if self.names else {})

    def kept_for(self) -> Mapping[str, Any]:
        """Names, turns, and how many are asked about, explored and learned from may change; and when to refresh."""
        settings = {name: each for name, each in self.settings.as_json().items() if name not in _MAY_CHANGE}
        settings["refresh"] = settings["refresh"] and True  # whether sums are kept
        return {"live": True, "settings": settings, "parties": self.parties}

    @property
    def purpose(self) -> tuple[str, str]:
        """No number of turns."""
        settings = self.settings
        said = f"a service of {settings.arms} arms and {settings.dim} features, batch {settings.batch}"
        return f"{said}, {settings.steps:,} steps", super().purpose[1].replace("...", "--live ...")

    def called(self, arm: int) -> int | str:
        """What an arm is to whoever asks."""
        return self.names[arm] if self.names else arm

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Live:
        """As a role knows it."""
        return cls(Settings.from_json(given["settings"]), given["parties"], given["turns"], given.get("names", ()))

    def blank(self) -> Live:
        """One turn that is asked about a context and is paid for another."""
        blank = Live(replace(self.settings, owners=self.parties), self.parties, 1)
        blank.feed = _Rehearsing(self.settings, self.parties)
        return blank

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """Nothing: all of it comes while it runs."""
        return {}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Turns:
        """The parties that this process hosts."""
        return Turns(session, self.settings, self.feed, kept, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """The puller asks, the payer pays."""
        return (_puller if role == PULLER else _payer)(self.settings, self.decisions, desk, self.feed)

    def brings(self, role: str) -> Brings:
        """No file."""
        return Brings()

    def result(self, ended: Ended) -> None:
        """What it learned stays in the checkpoints."""


class Turns:
    """The owners that this process hosts, turn after turn.

    numbers: of the decisions in each place, NONE in one that is free.  x, o: their shares, (hosted, 1, places, ...).
    count: decisions that were kept, rewards that were learned from, and the number that is next if none was lost.
    unrefreshed: rewards that were learned from since the last refresh, where there is any.
    decided: digests of what the last turn decided on, until all have kept it.  Who goes back knows of none: what was
    lost is asked about again.

    Which turn refreshes follows from rewards that come, so each draws what a refresh takes, and most pass over it.
    """

    def __init__(self, session: Session, settings: Settings, feed: Feed, kept: Arrays | None, done: int) -> None:
        self._session, self._settings, self._feed, self.done = session, settings, feed, done
        blocks = enumerate(feature_blocks(settings.dim, session.parties, settings.widths))
        self._owners = [owner for owner, block in blocks if block.stop > block.start]
        hosted = len(session.hosted)
        self._kept: dict[str, np.ndarray] = {
            "numbers": np.full(MOST_UNPAID, NONE, np.int64), "count": np.zeros(3, np.int64),
            "x": np.zeros((hosted, 1, MOST_UNPAID, settings.dim), np.uint64),
            "o": np.zeros((hosted, 1, MOST_UNPAID, settings.arms), np.uint64),
        }  # fmt: skip
        self._decided: list[int] = []
        self._fresh: tuple[Correlation, ...] = ()
        if settings.refresh:
            self._kept["unrefreshed"] = np.zeros(1, np.int64)
            self._fresh = drawn(session.parties, partial(_refresh, settings))
        self._held = State.start(session, settings) if kept is None else State.restored(session, settings, kept)
        if kept is not None:
            self._kept = {name: np.array(kept[name]) for name in self._kept}
        feed.plays(session.ledger)

    def turn(self) -> None:
        """Whatever is asked for; nothing is drawn where that is nothing."""
        session, settings = self._session, self._settings
        asked = session.run(labelled(session, "announce", announced(session, self.done, settings)))
        self.done += 1
        self._feed.over(self._decided)
        self._decided = []
        if not len(asked.numbers) and (asked.due < 0).all():
            return
        self._note_lost(asked.numbers)
        x, whole = self._contexts(asked.digests)
        places, found, full = self._places(asked.due)
        o = session.run(labelled(session, "serve", served(
            session, self._held, x, self._old(places, found), self._paid(asked.reward, found), settings
        )))  # fmt: skip
        outcomes = np.where(full, FULL, found)[: int((asked.due >= 0).sum())]
        session.run(labelled(session, "tell", told(session, o, whole, outcomes)))
        self._kept["numbers"][places[found]] = NONE
        self._kept["count"][1] += int(found.sum())
        self._keep(asked.numbers, whole, x, o)
        if whole.all():  # of a request that is refused for one of them, the others are asked about again
            self._decided = asked.digests.tolist()
        if settings.refresh:
            self._refresh(int(found.sum()))

    def _refresh(self, learned: int) -> None:
        """Where the next turn could learn from more than a refresh may be behind."""
        session, settings = self._session, self._settings
        program = supplied(session, self._fresh, refresh(session, self._held, settings))
        behind = self._kept["unrefreshed"]
        behind += learned
        if behind[0] + settings.batch <= (settings.refresh or 0) * settings.batch:
            program.close()
            return
        session.run(labelled(session, "refresh", program))
        behind[0] = 0

    def finish(self) -> None:
        """Nothing follows."""

    def state(self) -> Arrays:
        """Shares of the regressions, and of the decisions that wait."""
        return {**self._held.words(), **self._kept}

    def _note_lost(self, numbers: np.ndarray) -> None:
        """Those between were given in turns that were lost, whose arms the puller may have learned, or never."""
        if len(numbers):
            if (lost := int(numbers.min() - self._kept["count"][2])) < 0:
                raise ConfigError(
                    "the puller gives numbers of decisions that were given before: its owner puts back the folder "
                    "'serve' in its output.folder"
                )
            if lost:
                self._session.ledger.record(
                    PULLER, "arm", lost, "of turns that were lost, at most: they are made again"
                )
            self._kept["count"][2] = max(self._kept["count"][2], numbers.max() + 1)

    def _contexts(self, digests: np.ndarray) -> tuple[Share, np.ndarray]:
        """[x] (1, B, dim), zeros where nothing is asked for or a part is missing; and which of them are whole."""
        session, settings, has, blocks = self._session, self._settings, {}, {}
        for owner in session.hosted:
            width = feature_blocks(settings.dim, session.parties, settings.widths)[owner]
            rows = np.zeros((1, settings.batch, width.stop - width.start))
            if owner in self._owners:
                rows[0, : len(digests)], has[owner] = self._feed.rows(owner, digests.tolist())
                has[owner] = has[owner][None]
            blocks[owner] = rows
        x = share_contexts(session, blocks, settings)
        if not len(digests):
            return x, np.zeros(0, bool)
        whole = session.run(labelled(session, "announce", known(session, has, self._owners, len(digests)))).astype(bool)
        x.words[:, :, : len(digests)] *= whole[:, None].astype(np.uint64)  # nothing is said of a part that stands alone
        return x, whole

    def _places(self, due: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each paid decision is, and whether it is there, once; and whether ranges allow no more of them."""
        places, found, full = np.zeros(len(due), np.int64), np.zeros(len(due), bool), np.zeros(len(due), bool)
        room = self._settings.steps - int(self._kept["count"][1])
        for at, number in enumerate(due.tolist()):
            (where,) = np.nonzero(self._kept["numbers"] == number)
            if number >= 0 and len(where) and number not in due[:at]:
                places[at], full[at] = where[0], found.sum() >= room
                found[at] = not full[at]
        return places, found, full

    def _old(self, places: np.ndarray, found: np.ndarray) -> tuple[Share, Share]:
        """[x] and [o] of the paid decisions, zeros where there is none."""
        session, there = self._session, found[:, None].astype(np.uint64)
        x, o = (self._kept[name][:, :, places] * there for name in ("x", "o"))
        return Share(session, x, self._settings.fraction_bits), Share(session, o, 0)

    def _paid(self, reward: Share, found: np.ndarray) -> Share:
        return Share(self._session, reward.words * found.astype(np.uint64), reward.scale)

    def _keep(self, numbers: np.ndarray, whole: np.ndarray, x: Share, o: Share) -> None:
        """Of contexts that were whole; where no place is free the oldest gives way."""
        kept = self._kept
        for at in np.nonzero(whole)[0].tolist():
            free = np.flatnonzero(kept["numbers"] == NONE)  # as all parties know
            place = int(free[0] if free.size else kept["numbers"].argmin())
            kept["count"][0] += 1
            kept["numbers"][place] = numbers[at]
            kept["x"][:, :, place], kept["o"][:, :, place] = x.words[:, :, at], o.words[:, :, at]


def _refresh(settings: Settings, session: Session) -> Rounds[None]:
    """Of regressions that are nobody's."""
    return refresh(session, State.start(session, settings), settings)


def _puller(settings: Settings, turns: int, desk: Desk, feed: Feed) -> ClientProgram:
    feed.begin()
    for _ in range(desk.start, turns):
        yield Receive((1,))
        feed.kept()
        asked, words = feed.ask(settings.batch), np.full((1, 2, settings.batch), NONE, np.int64)
        if asked:
            words[0, :, : len(asked)] = np.array(asked, np.int64).T
        yield Send(words, 0)
        if asked:
            arms = yield Receive((1, len(asked)))
            whole = yield Receive((1, len(asked)))
            check_arms(arms, settings)
            feed.told(arms[0].tolist(), whole[0].tolist())


def _payer(settings: Settings, turns: int, desk: Desk, feed: Feed) -> ClientProgram:
    feed.begin()
    for _ in range(desk.start, turns):
        yield Receive((1,))
        feed.kept()
        due = feed.due(settings.batch)
        numbers, rewards = np.full((1, settings.batch), NONE, np.int64), np.zeros((1, settings.batch))
        if due:
            numbers[0, : len(due)], rewards[0, : len(due)] = zip(*due)
            check_rewards(rewards[:, : len(due)], settings)
        yield Send(numbers, 0)
        yield Send(rewards, settings.fraction_bits, bound=settings.reward)
        if due:
            counted = yield Receive((1, len(due)))
            feed.found(counted[0].tolist())


class _Rehearsing(Feed):
    """All roles, each with one thing to say."""

    def __init__(self, settings: Settings, parties: int) -> None:
        self._blocks = feature_blocks(settings.dim, parties, settings.widths)
        self._least = settings.reward_range[0]

    def rows(self, party: int, digests: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Zeros."""
        width = self._blocks[party].stop - self._blocks[party].start
        return np.zeros((len(digests), width)), np.ones(len(digests), np.int64)

    def ask(self, most: int) -> list[tuple[int, int]]:
        """One."""
        return [(0, 0)]

    def due(self, most: int) -> list[tuple[int, float]]:
        """One that nobody knows."""
        return [(0, self._least)]

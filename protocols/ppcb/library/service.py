"""The library's calls on arguments that were checked: one process's part in predicting and in learning.

Knows sessions, what is held between calls, and how many contexts go together; no argument of a user.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.linear import Choice
from mpc.client import ClientProgram
from mpc.errors import ConfigError, RangeError
from mpc.ledger import EVERYONE
from mpc.rounds import labelled
from mpc.session import Session
from mpc.share import Share

from ...run.seeded_dealer import MeteredDealer
from ..dealt_coins import choices
from ..player import share_contexts, split
from ..program import PAYER, PULLER, State
from ..settings import Settings
from . import fitting
from .arguments import ArgumentError, check_arms
from .decisions import Holdings
from .journal import Journal, Told
from .on_shares import Declared, Judged, check, estimate, logging_puller
from .place import Hosting, InOneProcess
from .propensity import last_bit
from .rounds import Hear, Say, choose, learn_from, payer_client, puller_client
from .saved import save_parts

_COMPARISONS = 300_000  # at once, of all parties here: some GB
_ESTIMATED = 256  # rows of a log together, at most


class Pay(NamedTuple):
    """What the clients give to a learn, each (contexts,): in a process that hosts them.

    actions: where the puller says them, else not looked at.
    """

    actions: np.ndarray
    rewards: np.ndarray

    def __repr__(self) -> str:
        return f"Pay(contexts={len(self.rewards)}, hidden)"


class Logged(NamedTuple):
    """What the clients give to an estimate, each (rows,): in a process that hosts them.

    actions: places of the arms.  propensities: theirs, or 1 where the arm was the best one by a logger that explored.
    """

    actions: np.ndarray
    propensities: np.ndarray
    rewards: np.ndarray

    def __repr__(self) -> str:
        return f"Logged(rows={len(self.rewards)}, hidden)"


class Service:
    """Shares of one bandit in this process, and the calls that use them."""

    def __init__(
        self, settings: Settings, hosting: Hosting, held: Holdings | None = None, *, most_unpaid: int = 1,
        journals: Mapping[Path, Journal] | None = None,
    ) -> None:  # fmt: skip
        self._settings, self.hosting, self._journals = settings, hosting, dict(journals or {})
        session = hosting.session({}, 0 if held is None else held.calls)
        self.held = held or Holdings.start(session, settings, most_unpaid)
        self._coins: list[tuple[int, tuple[Any, ...], Settings]] = []
        _note(session, "settings", sorted(settings.as_json().items()), self.held.most_unpaid)

    @property
    def settings(self) -> Settings:
        """What all parties agree on, for the present arms."""
        return _of_arms(self._settings, len(self.held.arms))

    @property
    def learn_batch(self) -> int:
        """How many contexts are learned from together."""
        return fitting.learn_batch(self.settings)

    @property
    def most_together(self) -> int:
        """How many contexts are decided on together at most, with the present arms."""
        return _together(len(self.held.arms), len(self.hosting.hosted))

    def predict(
        self, rows: np.ndarray, eligible: np.ndarray | None, *, propensity: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Numbers of the decisions; arms, and with `propensity` ties, where the puller is here."""
        held, settings = self.held, last_bit(self.settings) if propensity else self.settings
        if len(rows) > (most := self.most_together):
            raise ArgumentError(
                f"{len(rows):,} contexts of {len(held.arms)} arms compare more scores at once than fit in memory: at "
                f"most {most:,} in a call, so make several"
            )
        if len(rows) > held.most_unpaid:
            raise ArgumentError(
                f"{len(rows):,} contexts, and {held.most_unpaid:,} decisions are kept for a reward: make several "
                "calls, or the bandit with more `most_unpaid`"
            )
        heard: list[tuple[np.ndarray, np.ndarray | None]] = []
        puller = puller_client([Hear(len(rows), propensity)], lambda arms, ties: heard.append((arms, ties)))
        clients = {PULLER: puller, PAYER: payer_client([])}
        places = None if eligible is None else eligible.tolist()
        session = self._call(clients, "predict", len(rows), held.arms, places, propensity)
        x, numbers = self._shared(session, rows), held.number(len(rows))
        program = choose(
            session, self._state(session), x, settings,
            arms=np.array(held.arms), eligible=eligible, propensity=propensity,
        )  # fmt: skip
        with self._journaled():
            o = session.run(labelled(session, "predict", program))
        if isinstance(self.hosting, InOneProcess) and isinstance(self.hosting.dealer, MeteredDealer):
            self._coins.append((held.calls, tuple(self.hosting.dealer.coin_items), settings))
        arms, ties = heard[0] if heard else (None, None)
        held.keep(numbers, x.words, o.words, arms)
        return numbers, arms, ties

    def learn_open(self, decisions: Sequence[int], said: np.ndarray, pay: Pay | None) -> None:
        """Learn from open decisions.  said: of which the puller shares the one-hot, since it pulled another arm."""
        held, found = self.held, self.held.find(decisions)
        for part in self._parts(len(decisions)):
            clients = self._clients(said[part], pay, part)
            session = self._call(clients, "learn", decisions[part], held.arms, said[part].tolist())
            f = self._settings.fraction_bits
            x = Share(session, np.concatenate([decision.x for decision in found[part]], axis=2), f)
            o = Share(session, np.concatenate([held.one_hot(decision) for decision in found[part]], axis=2), 0)
            if said[part].any():
                what, why = "that a decision was overridden", "another arm was pulled than predicted"
                self.disclose(EVERYONE, what, int(said[part].sum()), why)
            self._learn(session, x, o, said[part])
            held.forget(decisions[part])

    def learn_given(self, rows: np.ndarray, pay: Pay | None) -> None:
        """Learn from contexts that were not predicted, or not here."""
        for part in self._parts(len(rows)):
            said = np.ones(len(rows[part]), bool)
            session = self._call(self._clients(said, pay, part), "learn", len(said), self.held.arms)
            o = session.constant(np.zeros((1, len(said), len(self.held.arms)), np.int64), 0)
            self._learn(session, self._shared(session, rows[part]), o, said)

    def check_room(self, count: int, *, learned: int) -> None:
        """Refuse to learn from more than the ranges were declared for.  learned: from how many before these."""
        given = self._settings
        steps = given.steps if given.refresh else min(given.steps, given.lasts)
        if (wanted := learned + count) > steps:
            most = fitting.most_steps(self.settings, refreshes=self.held.refreshes)
            cure = f"call extend(steps={min(most, max(wanted, 2 * steps))}) to learn from more"
            if wanted > most:
                cure = f"{most:,} is the most; make another, of scaled features and a smaller bound or a larger ridge"
            raise RangeError(
                f"{learned:,} contexts were learned from, {count:,} more are given, and this bandit was made "
                f"for {steps:,}: {cure}; it predicts as before without"
            )

    def forget(self, decisions: Sequence[int]) -> None:
        """Close open decisions."""
        self.held.find(decisions)
        self._call({}, "forget", decisions)
        self.held.forget(decisions)

    def add_arm(self) -> int:
        """A new arm's number."""
        check_arms(len(self.held.arms) + 1)
        settings = _of_arms(self._settings, len(self.held.arms) + 1)
        return self.held.add_arm(self._call({}, "add arm"), settings)

    def restart(self) -> None:
        """Forget all that was learned, and all decisions that wait for a reward."""
        self.held.restart(self._call({}, "restart"), self.settings)

    def extend(self, steps: int) -> None:
        """Learn from so many contexts in all: more fraction bits of the state are zeros behind those it has."""
        old = self.settings
        if steps <= old.steps:
            raise ArgumentError(f"this bandit was made for {old.steps:,} contexts: extend it to more, not to {steps:,}")
        longer = fitting.lasting(old, steps, refreshes=self.held.refreshes)
        if self.held.refreshes:
            longer = replace(longer, refresh=min(old.refresh or steps, longer.refresh or steps))
        session = self._call({}, "extend", steps)
        table = Share(session, self.held.words["table"], old.state_bits)
        self.held.words["table"] = table.rescale(longer.state_bits).words
        self._settings = longer

    def save(self, folder: Path) -> None:
        """Write what is held here; from now on what is told is noted there too."""
        session = self._call({}, "save")
        save_parts(folder, self.held, self.settings, self.hosting, session, self._journals)

    def estimate(self, rows: np.ndarray, log: Logged | None, declared: Declared) -> Judged:
        """What the policy would have earned on these contexts; nothing is learned from them."""
        held = self.held
        parts = judged_together(len(rows), len(held.arms), len(self.hosting.hosted))
        check(self.settings, declared)
        clients: dict[str, ClientProgram] = {}
        if log is not None:
            batches = [(log.actions[part], log.propensities[part]) for part in parts]
            paid = [log.rewards[part] for part in parts]
            clients = {
                PULLER: logging_puller(batches, len(held.arms), declared),
                PAYER: payer_client(paid, reward_range=self._settings.reward_range),
            }
        session = self._call(clients, "estimate", *declared, held.arms)
        shares = [self._shared(session, rows[part]) for part in parts]
        program = estimate(session, self._state(session), shares, self.settings, declared)
        with self._journaled():
            return session.run(labelled(session, "estimate", program))

    def disclose(self, role: str, what: str, count: int, why: str) -> None:
        """Count, and note beside the saves, what is told in another way than by a Reveal."""
        with self._journaled():
            self.hosting.ledger.record(role, what, count, why)

    def coins(self) -> Iterator[Choice]:
        """Those of every predict, in order; ConfigError without a seed."""
        dealer = self.hosting.dealer if isinstance(self.hosting, InOneProcess) else None
        if not isinstance(dealer, MeteredDealer):
            raise ConfigError("the coins are the dealer's secret: make the bandit with a seed to replay them")
        return (
            choice
            for call, items, settings in list(self._coins)
            for choice in choices(dealer.coin_key, items, range(call, call + 1), settings)
        )

    def _journaled(self) -> AbstractContextManager[None]:
        """What is told in this block is noted beside the saves before it leaves."""

        def note() -> None:
            told = Told(self.held.next_decision, tuple(self.hosting.ledger))
            for journal in self._journals.values():
                journal.append(told)

        return self.hosting.ledger.watched(note)

    def _learn(self, session: Session, x: Share, o: Share, said: np.ndarray) -> None:
        held, state, settings = self.held, self._state(session), _of_batch(self.settings, len(said))
        due = held.unrefreshed + len(said) >= (settings.refresh or math.inf)
        program = learn_from(session, state, x, o, settings, said=said, refreshed=due)
        session.run(labelled(session, "learn", program))
        held.words = state.words()
        held.learned += len(said)
        held.unrefreshed = 0 if due else held.unrefreshed + len(said)

    def _call(self, clients: Mapping[str, ClientProgram], *facts: object) -> Session:
        """The session of a new call; parties that make another one find out in its next round."""
        self.held.calls += 1
        session = self.hosting.session(clients, self.held.calls)
        _note(session, *facts)
        return session

    def _state(self, session: Session) -> State:
        return State.restored(session, self.settings, self.held.words)

    def _shared(self, session: Session, rows: np.ndarray) -> Share:
        """[x] of these rows: whole contexts, or the features of the one owner that is here."""
        hosting, given = self.hosting, rows[None]
        blocks = split(given, hosting.parties, self.settings.widths) if hosting.whole else {hosting.hosted[0]: given}
        return share_contexts(session, blocks, self.settings, contexts=len(rows))

    def _clients(self, said: np.ndarray, pay: Pay | None, part: slice) -> dict[str, ClientProgram]:
        if pay is None:
            return {}
        say = [Say(pay.actions[part][said].tolist(), self.held.arms)] if said.any() else []
        return {
            PULLER: puller_client(say, lambda *_: None),
            PAYER: payer_client([pay.rewards[part]], reward_range=self._settings.reward_range),
        }

    def _parts(self, count: int) -> list[slice]:
        """Rows that are learned from together; refuses more than a client expects."""
        self.check_room(count, learned=self.held.learned)
        size = self.learn_batch
        if count > size and not self.hosting.whole:
            raise ArgumentError(f"on a network at most {size} contexts are learned from in a call: make several")
        return [slice(start, start + size) for start in range(0, count, size)]


def judged_together(rows: int, arms: int, hosted: int = 1) -> list[slice]:
    """Rows of a log that are judged together.  hosted: how many parties are in this process, 1 on a network."""
    size = min(_ESTIMATED, _together(arms, hosted))
    return [slice(start, start + size) for start in range(0, rows, size)]


def _together(arms: int, hosted: int) -> int:
    return max(1, _COMPARISONS // (arms * (arms - 1) // 2 * hosted))


@lru_cache(maxsize=64)
def _of_arms(settings: Settings, arms: int) -> Settings:
    """Settings are checked as they are made, which takes longer than many a round: each is made once."""
    return replace(settings, arms=arms)


@lru_cache(maxsize=64)
def _of_batch(settings: Settings, batch: int) -> Settings:
    return replace(settings, batch=batch)


def _note(session: Session, *facts: object) -> None:
    """Parties that make different calls find out in the next round."""
    if session.trail is not None:
        session.trail.note("library", *facts)

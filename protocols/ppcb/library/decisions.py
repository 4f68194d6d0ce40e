"""What a process holds between the calls of the library: shares of the regressions and of decisions not paid yet.

Arms keep their number for good.  Row a of the regressions is that of the a-th present arm; a decision's one-hot has a
column for each arm that was present then, and is brought to the present ones when its reward comes: an arm that came
later has a 0, the column of one that left is dropped.  A late reward of an arm that left changes nothing.

Decisions that nobody pays would pile up: of those that wait for a reward, the latest `most_unpaid` are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from mpc.session import Session

from ..program import State
from ..settings import Settings
from .arguments import ArgumentError
from .names import Names


class OpenDecision(NamedTuple):
    """A context and the choice on it, until its reward comes.

    arms: those present then.  x, o: this process's shares, (hosted, 1, 1, features) and (hosted, 1, 1, arms).
    pulled: the arm, where the puller is in this process.
    """

    arms: tuple[int, ...]
    x: np.ndarray
    o: np.ndarray
    pulled: int | None

    def __repr__(self) -> str:
        return f"OpenDecision(arms={self.arms}, the rest hidden)"


@dataclass
class Holdings:
    """words: shares of the regressions as `State.words` names them, each (hosted, 1, arms, dim + 1, dim).

    learned: from how many contexts; unrefreshed: from how many since the last refresh.  calls: how many changed
    anything here, the failed ones included.  name: by which all parties know this bandit on disk, once it was saved.
    names: of arms and features, which are public.
    """

    words: dict[str, np.ndarray] = field(repr=False)
    arms: tuple[int, ...]
    next_arm: int
    most_unpaid: int
    unrefreshed: int = 0
    next_decision: int = 0
    learned: int = 0
    calls: int = 0
    name: str | None = None
    open: dict[int, OpenDecision] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    @classmethod
    def start(cls, session: Session, settings: Settings, most_unpaid: int) -> Holdings:
        """Arms 0 to A - 1, which know nothing."""
        arms = tuple(range(settings.arms))
        return cls(State.start(session, settings).words(), arms, settings.arms, most_unpaid)

    @property
    def refreshes(self) -> bool:
        """Whether exact sums are kept, from which the regressions are refreshed."""
        return "sums" in self.words

    def add_arm(self, session: Session, settings: Settings) -> int:
        """A row that starts at I / ridge, and its number."""
        fresh = State.start(session, replace(settings, arms=1)).words()
        self.words = {name: np.concatenate([rows, fresh[name]], axis=2) for name, rows in self.words.items()}
        arm, self.next_arm = self.next_arm, self.next_arm + 1
        self.arms = (*self.arms, arm)
        return arm

    def restart(self, session: Session, settings: Settings) -> None:
        """Know nothing of any arm, and wait for no reward; numbers of decisions go on."""
        self.words = State.start(session, settings).words()
        self.open, self.learned, self.unrefreshed = {}, 0, 0

    def remove_arm(self, place: int) -> None:
        """Forget a row."""
        self.words = {name: np.delete(rows, place, axis=2) for name, rows in self.words.items()}
        self.arms = tuple(arm for at, arm in enumerate(self.arms) if at != place)
        self.calls += 1

    def number(self, contexts: int) -> np.ndarray:
        """Numbers for so many decisions, which none has had or will have, even if these come to nothing."""
        first, self.next_decision = self.next_decision, self.next_decision + contexts
        return np.arange(first, self.next_decision)

    def keep(self, numbers: np.ndarray, x: np.ndarray, o: np.ndarray, pulled: np.ndarray | None) -> None:
        """Open a decision for each context of (hosted, 1, contexts, ...) shares."""
        for at, number in enumerate(numbers.tolist()):
            arm = None if pulled is None else int(pulled[at])
            row = slice(at, at + 1)  # copied: a view would keep the whole call's shares as long as its last decision
            own = OpenDecision(self.arms, x[:, :, row].copy(), o[:, :, row].copy(), arm)
            self.open[number] = own
        for oldest in list(islice(self.open, max(0, len(self.open) - self.most_unpaid))):
            del self.open[oldest]

    def find(self, decisions: Sequence[int]) -> list[OpenDecision]:
        """The open decisions of these numbers, each named once."""
        seen: set[int] = set()
        for decision in decisions:
            if not 0 <= decision < self.next_decision:
                given = f"predictions gave 0 to {self.next_decision - 1}" if self.next_decision else "none was made yet"
                raise ArgumentError(f"there is no decision {decision}: {given}")
            if decision not in self.open or decision in seen:
                raise ArgumentError(
                    f"decision {decision} was learned from or forgotten already, or lost with what came after a save, "
                    f"or is older than the {self.most_unpaid:,} that are kept for a reward (most_unpaid): each is paid "
                    "once; for another reward give its context and action without decision_id"
                )
            seen.add(decision)
        return [self.open[decision] for decision in decisions]

    def forget(self, decisions: Sequence[int]) -> None:
        """Drop open decisions."""
        for decision in decisions:
            del self.open[decision]

    def one_hot(self, decision: OpenDecision) -> np.ndarray:
        """Its one-hot over the present arms."""
        if decision.arms == self.arms:
            return decision.o
        column = {arm: at for at, arm in enumerate(decision.arms)}
        words = np.zeros((*decision.o.shape[:-1], len(self.arms)), np.uint64)
        for at, arm in enumerate(self.arms):
            if arm in column:
                words[..., at] = decision.o[..., column[arm]]
        return words

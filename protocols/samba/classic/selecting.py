"""SelectArm: how Comp opens a list of sealed scores and selects in it, or why it refuses.

Knows slots and numbers in an order; not whose they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ...published.frame import Message
from ...published.sealing import TAG_BYTES, Forged, Seal
from ..owners import LocalPolicy, Select
from .masks import Field
from .messages import Kind, Why, rows_of
from .outcome import Outcome, comp_learned

_REPLAYS = 16  # steps back in which a message that does not open is looked for


class Seen(NamedTuple):
    """A list as Comp decrypts it: masked scores in the Controller's order."""

    step: int
    iteration: int
    values: list[float] | list[int]

    def __repr__(self) -> str:
        return f"Seen(step={self.step}, iteration={self.iteration}, hidden)"


class Refusal(Exception):
    """A list that Comp cannot use."""

    def __init__(self, why: Why, place: int = 0, more: int = 0) -> None:
        super().__init__(why.name)
        self.why, self.place, self.more = why, place, more


class Selecting:
    """Opens a list and selects in it.  opened, explored: how many lists had scores, and had none."""

    def __init__(self, seal: Seal, arms: int, seen: list[Seen] | None, iterations: int) -> None:
        self._seal, self.arms, self._seen, self._iterations = seal, arms, seen, iterations
        self._everyone = np.arange(arms)
        self.opened = self.explored = 0

    def from_message(
        self, message: Message, field: Field, t: int, iteration: int, u: int, c: int
    ) -> tuple[np.ndarray, int]:  # fmt: skip
        """The slots in the list's order, and the place that is selected."""
        exploring = message.kind is Kind.EXPLORE
        slots, sealed = rows_of(message, self.arms, 0 if exploring else field.width + TAG_BYTES, slots=True)
        if (np.sort(slots) != self._everyone).any():
            raise Refusal(Why.SLOTS)
        if exploring:
            self.explored += 1
            return slots, uniform(self.arms, u, c)
        values = field.read(self._texts(t, iteration, slots, sealed))
        self.opened += 1
        if self._seen is not None:
            plain = values.tolist() if isinstance(values, np.ndarray) else values
            self._seen.append(Seen(t, iteration, plain))
        if (place := unfit(values)) is not None:
            raise Refusal(Why.UNFIT, place)
        try:
            return slots, selected(field, values, u, c)
        except AllZero:
            raise Refusal(Why.ALL_ZERO) from None

    def end(self, done: Outcome, policy: LocalPolicy, steps: int) -> Outcome:
        """What was done and learned in so many steps."""
        done.counts.opens, done.counts.seals = self.opened * self.arms, (self.opened + self.explored) * self.arms
        comp_learned(done, policy, self.arms, steps, self.explored)
        return done

    def _texts(self, t: int, iteration: int, slots: np.ndarray, sealed: np.ndarray) -> list[bytes]:
        width = sealed.shape[1]
        messages: list[bytes] = np.ascontiguousarray(sealed).view(f"V{width}").reshape(-1).tolist()
        try:
            return self._seal.open(t, iteration, slots, messages)
        except Forged as error:
            steps = range(t, max(0, t - _REPLAYS), -1)
            made_for = self._seal.made_for(messages[error.places[0]], steps, self._iterations, self.arms)
            if made_for is not None:
                raise Refusal(Why.REPLAYED, error.places[0], made_for) from error
            raise Refusal(Why.FORGED, error.places[0], len(error.places)) from error


class AllZero(Exception):
    """A draw among weights that are all 0."""


def unfit(values: np.ndarray | Sequence[int]) -> int | None:
    """The first place that holds no finite number of at least 0; integers are always fit."""
    if not isinstance(values, np.ndarray) or (values.min() >= 0.0 and values.max() < np.inf):
        return None
    return int(np.nonzero(~((values >= 0.0) & (values < np.inf)))[0][0])


def selected(field: Field, values: np.ndarray | list[int], u: int, c: int) -> int:
    """A place in the list.

    largest    the first of the largest values
    draw       the first j with  (v_0 + ... + v_j) 2^c > u (v_0 + ... + v_last),   u uniform in [0, 2^c)
    """
    if field.select is Select.LARGEST:
        return int(values.argmax()) if isinstance(values, np.ndarray) else values.index(max(values))
    running = list(accumulate(values))
    if not running[-1]:
        raise AllZero
    return bisect_right(running, u * running[-1] >> c)  # of integers: v 2^c > x just where v > floor(x / 2^c)


def uniform(count: int, u: int, c: int) -> int:
    """A place of an exploring step."""
    return u * count >> c

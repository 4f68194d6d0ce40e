"""What bodies of requests must look like, in one process and between machines.  Knows JSON; nobody who asks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from mpc.net.requests import Refused

NUMBERS = 1 << 62
"""A decision's is below: so much a word that is sent between machines holds."""
_LONGEST_ID = 128
_MOST_ITEMS = 1024
T = TypeVar("T")


def parts_of(body: Body) -> tuple[list[str], list[list[float]]]:
    """Of /context: ids, and one owner's features of each."""
    parts = body.one_or_many("contexts", ("id", "features"), lambda part: (part.name("id"), part.row("features")))
    names = [name for name, _ in parts]
    check_distinct(names, "id")
    return names, [row for _, row in parts]


def names_of(body: Body) -> tuple[list[str], bool]:
    """Of /predict: ids, and whether it is one that stands alone."""
    many = body.has("ids")
    names = body.names("ids") if many else [body.name("id")]
    body.check_used()
    check_distinct(names, "id")
    return names, not many


def paid_of(body: Body, within: tuple[float, float]) -> tuple[list[int], list[float]]:
    """Of /reward: decisions, and what they paid."""
    parts = body.one_or_many(
        "rewards", ("decision_id", "reward"), lambda part: (part.number("decision_id"), part.real("reward"))
    )
    decisions, rewards = [number for number, _ in parts], [reward for _, reward in parts]
    check_distinct(decisions, "decision_id")
    low, high = within
    if not all(low <= reward <= high for reward in rewards):
        raise Refused(422, f"rewards lie in [{low:g}, {high:g}]: shift and scale them")
    return decisions, rewards


class Body:
    """One object of a body: what is asked for is taken out, and what is left over is refused."""

    def __init__(self, given: Any, place: str = "the body") -> None:
        if not isinstance(given, dict):
            raise Refused(422, f"{place} is an object with names: see /docs")
        self._left, self._place = dict(given), place

    def has(self, key: str) -> bool:
        """Whether it was sent."""
        return key in self._left

    def optional(self, key: str) -> Any:
        """None where it was not sent."""
        return self._left.pop(key, None)

    def name(self, key: str) -> str:
        """What an id is called."""
        return self._named(self._taken(key), key)

    def names(self, key: str) -> list[str]:
        """Several of them."""
        return [self._named(each, key) for each in self._several(key)]

    def number(self, key: str) -> int:
        """The number of a decision."""
        value = self._taken(key)
        if type(value) is not int or not 0 <= value < NUMBERS:
            raise Refused(422, f"{key!r} in {self._place} is a whole number from 0: send that of /predict")
        return int(value)

    def real(self, key: str) -> float:
        """A finite number."""
        return self._real(self._taken(key), key)

    def row(self, key: str) -> list[float]:
        """Several of them."""
        return [self._real(value, key) for value in self._several(key)]

    def one_or_many(self, plural: str, single: tuple[str, ...], read: Callable[[Body], T]) -> list[T]:
        """The items of a list, or the one that stands here itself."""
        if self.has(plural):
            items = self._several(plural)
            self.check_used()
            parts = [Body(item, f"an item of {plural!r}") for item in items]
        else:
            parts = [self]
            if not any(self.has(key) for key in single):
                raise Refused(422, f"the body has {' and '.join(map(repr, single))}, or a list {plural!r}: see /docs")
        found = [read(part) for part in parts]
        for part in parts:
            part.check_used()
        return found

    def check_used(self) -> None:
        """What nobody asked for may be misspelt."""
        if self._left:
            raise Refused(422, f"{self._place} has {len(self._left)} names that are unknown here: see /docs")

    def _taken(self, key: str) -> Any:
        if key not in self._left:
            raise Refused(422, f"{key!r} is missing in {self._place}: send it")
        return self._left.pop(key)

    def _several(self, key: str) -> list[Any]:
        value = self._taken(key)
        if not isinstance(value, list) or not value:
            raise Refused(422, f"{key!r} in {self._place} is a list of at least one: send one")
        if len(value) > _MOST_ITEMS:
            raise Refused(413, f"{key!r} has {len(value):,} items, at most {_MOST_ITEMS:,} are taken: send several")
        return value

    def _named(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID or not value.isprintable():
            raise Refused(
                422, f"{key!r} in {self._place} is a text of 1 to {_LONGEST_ID} printable letters: choose one"
            )
        return value

    def _real(self, value: Any, key: str) -> float:
        if type(value) not in (int, float) or not math.isfinite(found := _float(value)):
            raise Refused(422, f"{key!r} in {self._place} takes finite numbers: leave other rows out")
        return found


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_distinct(found: list[Any], what: str) -> None:
    if len(set(found)) < len(found):
        raise Refused(422, f"the same {what!r} stands twice in this request: send each once")

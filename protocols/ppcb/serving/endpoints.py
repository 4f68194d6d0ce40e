"""What the service is asked, and what each request must look like.  Knows bodies and roles; no HTTP, no thread.

    owner p    POST /context   {"id": "visit 17", "features": [0.4, 0.1]}       its part of a context
    puller     POST /predict   {"id": "visit 17"}                               -> {"decision_id": 0, "arm": "naproxen"}
    payer      POST /reward    {"decision_id": 0, "reward": 1.0}                -> {"learned": 1}

and each for many, as lists: {"contexts": [...]}, {"ids": [...]} -> {"decisions": [...]}, {"rewards": [...]}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from mpc.net.pages import Page
from mpc.net.requests import ANYONE, Answer, Endpoint, Refused, Request

from ...run.exposition import TEXT
from ...run.report import ledger_json
from ...run.status import JSON
from ..program import PAYER, PULLER
from ..settings import Settings
from .answers import Answers
from .batches import Batches
from .described import described, page
from .durable import DurableBandit, owned
from .measures import Measures
from .waiting import Waiting

WATCHER = "watcher"
_LONGEST_ID = 128
_MOST_ITEMS = 1024
T = TypeVar("T")


def owner_name(party: int) -> str:
    """The role of who owns a block of features."""
    return f"owner {party}"


def roles_of(settings: Settings) -> tuple[str, ...]:
    """All who ask, each with a token of its own."""
    return (*(owner_name(owner) for owner in _blocks(settings)), PULLER, PAYER, WATCHER)


def waiting_of(settings: Settings) -> Waiting:
    """Where parts of contexts wait for each other."""
    return Waiting(_blocks(settings), settings.bound)


class Endpoints:
    """The requests of one bandit, judged and handed on."""

    def __init__(
        self, bandit: DurableBandit, waiting: Waiting, batches: Batches, answers: Answers, measures: Measures
    ) -> None:  # fmt: skip
        self._bandit, self._waiting, self._batches = bandit, waiting, batches
        self._answers, self._measures = answers, measures
        settings = bandit.bandit.settings
        self._owners = {owner_name(owner): owner for owner in _blocks(settings)}
        self._range = settings.reward_range
        measures.gauges |= {
            "waiting_requests": lambda: batches.waiting,
            "waiting_contexts": lambda: len(waiting),
            "unpaid_decisions": lambda: len(bandit.held.open),
            "learned": lambda: bandit.bandit.learned,
            "log_bytes": lambda: bandit.log_bytes,
            "disclosed": lambda: sum(entry.count for entry in bandit.bandit.ledger),
        }

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Those by POST."""
        return {
            "/context": Endpoint(self._context, tuple(self._owners)),
            "/predict": Endpoint(lambda request: self._answers.once("predict", request, self._predict), (PULLER,)),
            "/reward": Endpoint(lambda request: self._answers.once("reward", request, self._reward), (PAYER,)),
        }

    def pages(self) -> Mapping[str, Page]:
        """Those by GET."""
        document = described(tuple(self._owners), self._range)
        return {
            "/healthz": self._health,
            "/metrics": lambda: (200, TEXT, self._measures.text()),
            "/ledger": lambda: (200, JSON, json.dumps(ledger_json(self._bandit.bandit.ledger)) + "\n"),
            "/openapi.json": lambda: (200, JSON, json.dumps(document, indent=1) + "\n"),
            "/docs": lambda: (200, "text/html; charset=utf-8", page(document)),
        }

    guarded: Mapping[str, tuple[str, ...]] = {"/metrics": (WATCHER,), "/ledger": (WATCHER,)}

    def _context(self, request: Request) -> Answer:
        body = _Body(request.body)
        owner = self._owner(request.role, body)
        parts = body.one_or_many("contexts", ("id", "features"), lambda part: (part.name("id"), part.row("features")))
        names = [name for name, _ in parts]
        _check_distinct(names, "id")
        self._waiting.put(owner, names, [row for _, row in parts])
        return {"received": len(names)}

    def _owner(self, role: str, body: _Body) -> int:
        """Whose token it was; where there are none, the body says it."""
        said = body.optional("owner")
        if role == ANYONE:
            if type(said) is not int or owner_name(said) not in self._owners:
                raise Refused(422, f"without tokens the body says whose part it is: 'owner', one of {self._numbers}")
            return said
        if said is not None and said != self._owners[role]:
            raise Refused(403, f"this token is of {role}: leave 'owner' out of the body")
        return self._owners[role]

    @property
    def _numbers(self) -> str:
        return ", ".join(map(str, self._owners.values()))

    def _predict(self, request: Request) -> Future[Answer]:
        body = _Body(request.body)
        many = body.has("ids")
        names = body.names("ids") if many else [body.name("id")]
        body.check_used()
        _check_distinct(names, "id")
        return self._batches.predict(request, self._waiting.take(names), alone=not many)

    def _reward(self, request: Request) -> Future[Answer]:
        parts = _Body(request.body).one_or_many(
            "rewards", ("decision_id", "reward"), lambda part: (part.number("decision_id"), part.real("reward"))
        )
        decisions, rewards = [number for number, _ in parts], [reward for _, reward in parts]
        _check_distinct(decisions, "decision_id")
        low, high = self._range
        if not all(low <= reward <= high for reward in rewards):
            raise Refused(422, f"rewards lie in [{low:g}, {high:g}]: shift and scale them")
        return self._batches.learn(request, decisions, rewards)

    def _health(self) -> tuple[int, str, str]:
        failed = self._measures.failed
        said = {
            "state": "failed" if failed else "serving", "error": failed,
            "decisions": self._bandit.held.next_decision, "learned": self._bandit.bandit.learned,
        }  # fmt: skip
        return 503 if failed else 200, JSON, json.dumps(said) + "\n"


class _Body:
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
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise Refused(422, f"{key!r} in {self._place} is a whole number from 0: send that of /predict")
        return int(value)

    def real(self, key: str) -> float:
        """A finite number."""
        return self._real(self._taken(key), key)

    def row(self, key: str) -> list[float]:
        """Several of them."""
        return [self._real(value, key) for value in self._several(key)]

    def one_or_many(self, plural: str, single: tuple[str, ...], read: Callable[[_Body], T]) -> list[T]:
        """The items of a list, or the one that stands here itself."""
        if self.has(plural):
            items = self._several(plural)
            self.check_used()
            parts = [_Body(item, f"an item of {plural!r}") for item in items]
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


def _check_distinct(found: list[Any], what: str) -> None:
    if len(set(found)) < len(found):
        raise Refused(422, f"the same {what!r} stands twice in this request: send each once")


def _blocks(settings: Settings) -> dict[int, slice]:
    """The columns of each owner that has any."""
    return {owner: block for owner, block in enumerate(owned(settings)) if block.stop > block.start}

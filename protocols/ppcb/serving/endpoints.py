"""What the service is asked, and what each request must look like.  Knows bodies and roles; no HTTP, no thread.

    owner p    POST /context   {"id": "visit 17", "features": [0.4, 0.1]}       its part of a context
    puller     POST /predict   {"id": "visit 17"}                               -> {"decision_id": 0, "arm": "naproxen"}
    payer      POST /reward    {"decision_id": 0, "reward": 1.0}                -> {"learned": 1}

and each for many, as lists: {"contexts": [...]}, {"ids": [...]} -> {"decisions": [...]}, {"rewards": [...]}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from mpc.net.pages import Page
from mpc.net.requests import ANYONE, Answer, Endpoint, Refused, Request

from ...run.exposition import TEXT
from ...run.report import ledger_json
from ...run.status import JSON
from ..program import PAYER, PULLER
from ..settings import Settings
from .answers import Answers
from .batches import Batches
from .bodies import Body, names_of, paid_of, parts_of
from .described import described, of_contexts, of_decisions, of_health, of_ledger, of_metrics, of_rewards, pages_of
from .durable import DurableBandit, owned
from .measures import Measures
from .waiting import Waiting

WATCHER = "watcher"
_ABOUT = (
    "A bandit policy on secret shares: owners send parts of a context, the puller asks for an arm, the payer says what "
    "it paid."
)


def owner_name(party: int) -> str:
    """The role of who owns a block of features."""
    return f"owner {party}"


def roles_of(settings: Settings) -> tuple[str, ...]:
    """All who ask, each with a token of its own."""
    return (*(owner_name(owner) for owner in _blocks(settings)), PULLER, PAYER, WATCHER)


def waiting_of(settings: Settings) -> Waiting:
    """Where parts of contexts wait for each other."""
    return Waiting(_blocks(settings), settings.bound, bits=settings.fraction_bits)


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
        return {
            "/healthz": self._health,
            "/metrics": lambda: (200, TEXT, self._measures.text()),
            "/ledger": lambda: (200, JSON, json.dumps(ledger_json(self._bandit.bandit.ledger)) + "\n"),
            **pages_of(self._document()),
        }

    guarded: Mapping[str, tuple[str, ...]] = {"/metrics": (WATCHER,), "/ledger": (WATCHER,)}

    def _document(self) -> dict[str, Any]:
        paths = of_contexts(tuple(self._owners)) | of_decisions(self._bandit.bandit.arms[-1])
        paths |= of_rewards(self._range, "learned", "learned from and on disk") | of_health()
        return described(_ABOUT, paths | of_metrics(WATCHER) | of_ledger(WATCHER))

    def _context(self, request: Request) -> Answer:
        body = Body(request.body)
        owner = self._owner(request.role, body)
        names, rows = parts_of(body)
        self._waiting.put(owner, names, rows)
        return {"received": len(names)}

    def _owner(self, role: str, body: Body) -> int:
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
        names, alone = names_of(Body(request.body))
        return self._batches.predict(request, self._waiting.take(names), alone=alone)

    def _reward(self, request: Request) -> Future[Answer]:
        return self._batches.learn(request, *paid_of(Body(request.body), self._range))

    def _health(self) -> tuple[int, str, str]:
        failed = self._measures.failed
        said = {
            "state": "failed" if failed else "serving", "error": failed,
            "decisions": self._bandit.held.next_decision, "learned": self._bandit.bandit.learned,
        }  # fmt: skip
        return 503 if failed else 200, JSON, json.dumps(said) + "\n"


def _blocks(settings: Settings) -> dict[int, slice]:
    """The columns of each owner that has any."""
    return {owner: block for owner, block in enumerate(owned(settings)) if block.stop > block.start}

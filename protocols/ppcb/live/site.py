"""What one role is asked by its owner's programs, and the feed that takes it to the parties.  Knows roles; no HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from mpc.errors import ConfigError
from mpc.net.requests import ANYONE, Answer, Endpoint, Refused, Request, Site

from ...run.program import party_name
from ...run.status import JSON
from ..player import feature_blocks
from ..program import PAYER, PULLER
from ..serving.bodies import Body, names_of, paid_of, parts_of
from ..serving.endpoints import owner_name
from .feeds import Feed, OwnerFeed, PayerFeed, PullerFeed
from .program import Live


class Place(NamedTuple):
    """asks: the role whose token is wanted."""

    feed: Feed
    site: Site
    asks: str


def place_of(program: Live, role: str, folder: Path, beat: float) -> Place:
    """The part of this role.  folder: where it keeps what must last.  beat: as `PullerFeed` has it."""
    if role == PULLER:
        return _puller(PullerFeed(folder, most=program.settings.batch, beat=beat))
    if role == PAYER:
        return _payer(PayerFeed(folder), program.settings.reward_range)
    blocks = feature_blocks(program.settings.dim, program.parties, program.settings.widths)
    widths = {party_name(party): (party, block.stop - block.start) for party, block in enumerate(blocks)}
    if role not in widths:
        raise ConfigError(f"{role} is asked nothing: play it with 'masked party'")
    owner, width = widths[role]
    return _owner(OwnerFeed(owner, width, program.settings.bound), owner_name(owner))


def _puller(feed: PullerFeed) -> Place:
    def ask(request: Request) -> Future[Answer]:
        names, alone = names_of(Body(request.body))
        return feed.predict(request, names, alone=alone)

    endpoint = Endpoint(lambda request: feed.answers.once("predict", request, ask), (PULLER,))
    return Place(
        feed, _site("/predict", endpoint, lambda: {"decisions": feed.decisions, "waiting": feed.waiting}), PULLER
    )


def _payer(feed: PayerFeed, within: tuple[float, float]) -> Place:
    def pay(request: Request) -> Future[Answer]:
        return feed.reward(request, *paid_of(Body(request.body), within))

    endpoint = Endpoint(lambda request: feed.answers.once("reward", request, pay), (PAYER,))

    def counts() -> Mapping[str, int]:
        return {"learned": feed.learned, "passed_over": feed.passed_over, "waiting": feed.waiting}

    return Place(feed, _site("/reward", endpoint, counts), PAYER)


def _owner(feed: OwnerFeed, role: str) -> Place:
    def put(request: Request) -> Answer:
        body = Body(request.body)
        if (said := body.optional("owner")) is not None and said != feed.owner and request.role != ANYONE:
            raise Refused(403, f"this is {role}'s service: leave 'owner' out of the body")
        names, rows = parts_of(body)
        feed.put(names, rows)
        return {"received": len(names)}

    return Place(feed, _site("/context", Endpoint(put, (role,)), lambda: {"waiting": len(feed.waiting)}), role)


def _site(path: str, endpoint: Endpoint, counts: Callable[[], Mapping[str, int]]) -> Site:
    """One endpoint; /healthz says what waits there, [watch] how the role stands."""

    def health() -> tuple[int, str, str]:
        return 200, JSON, json.dumps({"state": "serving", **counts()}) + "\n"

    return Site({path: endpoint}, {"/healthz": health}, {}, lambda path, status: None)

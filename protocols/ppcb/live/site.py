"""What one role is asked by its owner's programs, and the feed that takes it to the parties.  Knows roles; no HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from mpc.errors import ConfigError
from mpc.net.pages import Page
from mpc.net.requests import Answer, Endpoint, Refused, Request, Site

from ...run.program import party_name
from ...run.report import ledger_json
from ...run.status import JSON
from ..player import feature_blocks
from ..program import PAYER, PULLER
from ..serving.bodies import Body, names_of, paid_of, parts_of
from ..serving.described import (
    Paths,
    described,
    of_contexts,
    of_decisions,
    of_health,
    of_ledger,
    of_rewards,
    pages_of,
)
from ..serving.endpoints import owner_name
from .feeds import Feed, OwnerFeed, PayerFeed, PullerFeed
from .program import Live

_ABOUT = "A bandit policy on secret shares, between machines. This is one of its roles, for its owner's own programs: "


class Place(NamedTuple):
    """asks: the role whose token is wanted."""

    feed: Feed
    site: Site
    asks: str


def place_of(program: Live, role: str, folder: Path, beat: float) -> Place:
    """The part of this role.  folder: where it keeps what must last.  beat: as `PullerFeed` has it."""
    if role == PULLER:
        feed = PullerFeed(folder, most=program.settings.batch, beat=beat, called=program.called)
        return _puller(feed, program.called(program.settings.arms - 1))
    if role == PAYER:
        return _payer(PayerFeed(folder), program.settings.reward_range)
    blocks = feature_blocks(program.settings.dim, program.parties, program.settings.widths)
    widths = {party_name(party): (party, block.stop - block.start) for party, block in enumerate(blocks)}
    if role not in widths:
        raise ConfigError(f"{role} is asked nothing: play it with 'masked party'")
    owner, width = widths[role]
    settings = program.settings
    return _owner(OwnerFeed(owner, width, settings.bound, bits=settings.fraction_bits), owner_name(owner))


def _puller(feed: PullerFeed, arm: int | str) -> Place:
    def ask(request: Request) -> Future[Answer]:
        names, alone = names_of(Body(request.body))
        return feed.predict(request, names, alone=alone)

    endpoint = Endpoint(lambda request: feed.answers.once("predict", request, ask), (PULLER,))
    said = described(f"{_ABOUT}the puller's ask it for arms.", of_decisions(arm) | of_health())
    return Place(feed, _site(endpoint, said, lambda: {"decisions": feed.decisions, "waiting": feed.waiting}), PULLER)


def _payer(feed: PayerFeed, within: tuple[float, float]) -> Place:
    def pay(request: Request) -> Future[Answer]:
        return feed.reward(request, *paid_of(Body(request.body), within))

    endpoint = Endpoint(lambda request: feed.answers.once("reward", request, pay), (PAYER,))
    paths = of_rewards(within, "received", "on disk, to be learned from in a turn to come,") | of_health()
    said = described(f"{_ABOUT}the payer's say what decisions paid.", paths)

    def counts() -> Mapping[str, int]:
        return {"learned": feed.learned, "passed_over": feed.passed_over, "waiting": feed.waiting}

    return Place(feed, _site(endpoint, said, counts), PAYER)


def _owner(feed: OwnerFeed, role: str) -> Place:
    def put(request: Request) -> Answer:
        body = Body(request.body)
        if (said := body.optional("owner")) is not None and said != feed.owner:
            raise Refused(403, f"this is {role}'s service: leave 'owner' out of the body")
        names, rows = parts_of(body)
        feed.put(names, rows)
        return {"received": len(names)}

    def ledger() -> tuple[int, str, str]:
        return 200, JSON, json.dumps(ledger_json(feed.ledger)) + "\n"

    paths: Paths = of_contexts([role]) | of_health() | of_ledger(role)
    said = described(f"{_ABOUT}{role}'s send its part of each context.", paths)
    site = _site(Endpoint(put, (role,)), said, lambda: {"waiting": len(feed.waiting)}, {"/ledger": ledger})
    return Place(feed, site, role)


def _site(
    endpoint: Endpoint, said: Mapping[str, Paths], counts: Callable[[], Mapping[str, int]],
    guarded: Mapping[str, Page] | None = None,
) -> Site:  # fmt: skip
    """One endpoint, the first path that is `said`; /healthz says what waits there, [watch] how the role stands.

    guarded: pages for whoever has the role's token.
    """

    def health() -> tuple[int, str, str]:
        return 200, JSON, json.dumps({"state": "serving", **counts()}) + "\n"

    more = guarded or {}
    pages = {"/healthz": health, **pages_of(dict(said)), **more}
    return Site({next(iter(said["paths"])): endpoint}, pages, dict.fromkeys(more, endpoint.roles), lambda *_: None)

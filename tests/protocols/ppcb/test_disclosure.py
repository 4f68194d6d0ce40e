"""Who learns what: the puller its arms, and nobody anything else; all that is opened is uniform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from mpc import EVERYONE, Open, Reveal, Session
from mpc.ledger import Entry
from mpc.rounds import Request
from protocols.ppcb.clients import World
from protocols.ppcb.player import Owners, split
from protocols.ppcb.program import PULLER
from protocols.ppcb.settings import Argmax, Division, Policy, Truncation, Variant
from protocols.run.seeded_dealer import MeteredDealer

from .runs import ENVIRONMENT, SEED, Parts, clients_of, finished, name_of, played, settings

CHANGES: list[dict[str, Any]] = [
    {},
    {"policy": Policy.LINUCB},
    {"policy": Policy.THOMPSON},
    {"batch": 4},
    {"delay": 2},
    {"refresh": 5},
    {"division": Division.NEWTON},
    {"argmax": Argmax.TOURNAMENT},
    {"argmax": Argmax.CIRCUIT},
    {"state_bits": 28, "division": Division.TABLE_NEWTON, "batch": 3, "delay": 1, "refresh": 4, "steps": 4000},
    {"variant": Variant.PUBLISHED},
    {"truncation": Truncation.PUBLISHED},
]


@pytest.mark.parametrize("changes", CHANGES, ids=name_of)
def test_the_ledger_is_the_papers_table(changes: dict[str, Any], parties: int) -> None:
    run = played(settings(**changes), parties, 12)
    assert run.ledger == (Entry(PULLER, "arm", 3 * 12, "it is pulled"),)


def test_one_more_reveal_would_show() -> None:
    simulation = finished(settings(), 2, 3)
    table = simulation.player.held.table

    def curious() -> Iterator[Any]:
        yield Reveal(table[0, 0, 0, 0], to=EVERYONE, what="an entry of P", why="somebody is curious")

    simulation.session.run(curious())
    assert simulation.result().ledger == (
        Entry(PULLER, "arm", 9, "it is pulled"), Entry(EVERYONE, "an entry of P", 1, "somebody is curious"),
    )  # fmt: skip


def test_a_decision_alone_tells_nobody() -> None:
    """The arm is told by the step, not by `decide`."""
    secret = Parts(2, settings(owners=2))
    secret.decide(np.zeros((3, 1, 8)), 0)
    secret.learn(np.zeros((3, 1, 8)), np.zeros((3, 1), int), np.ones((3, 1)))
    assert len(secret.session.ledger) == 0 and secret.session.meter.total.client_hops == 0


@pytest.mark.parametrize("changes", CHANGES, ids=name_of)
def test_every_opening_is_uniform(changes: dict[str, Any], uniformity: Callable[[np.ndarray, int], float]) -> None:
    """All openings of a run by the ring they are opened in.  Rejects at p < 1e-6, on a fixed seed."""
    opened: dict[int, list[np.ndarray]] = {}

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            opened.setdefault(request.bits, []).append(np.asarray(reply).astype(np.uint64).reshape(-1))

    replicas = 8 if changes else 40
    given = settings(replicas=replicas, owners=2, **changes)
    steps = 12 if given.variant is Variant.PUBLISHED else 24
    world = World([ENVIRONMENT.episode(steps, SEED + replica) for replica in range(replicas)], given)
    session = Session.simulate(
        2, MeteredDealer(2, SEED), clients=clients_of(world), pair_keys={(0, 1): bytes(16)}, listener=listener
    )
    owners = Owners(session, given, split(world.contexts, 2))
    for _ in world.contexts:
        owners.turn()
    assert 64 in opened
    for bits, words in opened.items():
        assert uniformity(np.concatenate(words), bits) > 1e-6, bits

"""Parties at one line with the same shapes that shared, drew or multiplied differently: Desync, not wrong sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import ops
from mpc.client import Receive, Send
from mpc.errors import Desync
from mpc.net.joining import listen
from mpc.net.tcp import Tcp
from mpc.rounds import Input, Reveal
from mpc.session import Session
from mpc.share import Share
from tests.parties.programs import seeded
from tests.parties.threads import KEYS, over_tcp, side_by_side

Setup = Callable[[Session, bool], Share]


def revealed(session: Session, share: Share) -> Any:
    def program() -> Any:
        return (yield Reveal(share))

    return session.run(program())


def _own(session: Session, owner: int, value: float, scale: int = 20) -> Share:
    return session.share([value] if owner in session.hosted else None, owner=owner, shape=(1,), scale=scale)


def owner(session: Session, odd: bool) -> Share:
    """Each party takes itself for the owner."""
    return session.share([2.0], owner=session.hosted[0])


def order(session: Session, odd: bool) -> Share:
    owners = (1, 0) if odd else (0, 1)
    first, second = (_own(session, party, 1.0) for party in owners)
    return first - second


def scale(session: Session, odd: bool) -> Share:
    """The same scale in the end, so that the round alone shows no difference."""
    return _own(session, 0, 1.0, 10 if odd else 20).rescale(20)


def shape(session: Session, odd: bool) -> Share:
    size = 5 if odd else 4
    return session.share(np.ones(size) if 0 in session.hosted else None, owner=0, shape=(size,)).sum()


def factor(session: Session, odd: bool) -> Share:
    return _own(session, 0, 1.0) * (0.25 if odd else 0.5)


def exploration(session: Session, odd: bool) -> Share:
    return session.run(ops.argmax(session, session.constant([1.0, 2.0]), score_bits=30, eps=0.25 if odd else 0.5))


@pytest.mark.parametrize("setup", [owner, order, scale, shape, factor, exploration])
@pytest.mark.parametrize("parties", [2, 3])
def test_a_different_fact_is_desync(setup: Setup, parties: int) -> None:
    def same(session: Session) -> Any:
        return revealed(session, setup(session, False))

    def odd(session: Session) -> Any:
        return revealed(session, setup(session, True))

    programs = {party: odd if party == 1 else same for party in range(parties)}
    for outcome in over_tcp(parties, programs):
        assert isinstance(outcome.error, Desync), outcome


def test_roles_in_another_order_are_found_at_the_start() -> None:
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]

    def party(node: int, roles: tuple[str, ...]) -> Callable[[], Any]:
        def run() -> Any:
            transport = Tcp.join(node, addresses, keys=KEYS[node], listener=listeners[node], timeout=100.0)
            return seeded(transport, roles=roles)

        return run

    for outcome in side_by_side(party(0, ("puller", "payer")), party(1, ("payer", "puller"))):
        assert isinstance(outcome.error, Desync), outcome
        assert "puller" in str(outcome.error)


def _sends_at_16() -> Any:
    yield Send(1.5, 16)


def _receives_at_16() -> Any:
    yield Receive((), 16)


@pytest.mark.parametrize(
    ("client", "text"), [(_sends_at_16, "16 fraction bits"), (_receives_at_16, "16 fraction bits")]
)
def test_a_client_with_another_scale_is_desync(client: Callable[[], Any], text: str) -> None:
    def serves(session: Session) -> Any:
        def program() -> Any:
            if client is _sends_at_16:
                yield Input("customer", (), 20)
            else:
                yield Reveal(session.constant(1.5, 20), "customer")

        return session.run(program())

    outcomes = over_tcp(2, serves, clients={"customer": client}, timeout=5.0)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert errors and any(isinstance(error, Desync) and text in str(error) for error in errors), outcomes

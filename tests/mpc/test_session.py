"""Inputs without a message, Reveal, the ledger, and clients in a simulation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import EVERYONE, ConfigError, Input, Open, Reveal, Rounds, Session, ring
from mpc.client import Receive, Send
from mpc.ledger import Entry, Ledger
from mpc.meter import Cost, Meter

Fixture = Callable[..., Any]
VALUES = np.array([[1.5, -2.0, 0.0], [3.25, 2.0**41, -(2.0**-20)]])


def test_sharing_an_input_between_parties_is_silent(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)
    for owner in range(parties):
        session.share(VALUES, owner=owner)
        session.share_bits([1, 2, 3], owner=owner)
    total = session.meter.total
    assert (session.round, total.rounds, total.sent_bytes, total.frame_bytes, total.client_hops) == (0, 0, 0, 0, 0)


def test_reveal_to_everyone_and_to_one_party(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x = session.share(VALUES, owner=parties - 1, bound=2.0**41)
    assert (reveal(x) == VALUES).all()
    assert (reveal(x, "party 1") == VALUES).all()
    assert reveal(session.share(2.5)).shape == () and reveal(session.share(2.5)) == 2.5
    assert reveal(session.share(np.zeros((0, 2)))).shape == (0, 2)
    assert reveal(session.constant(VALUES)).tolist() == VALUES.tolist()


@pytest.mark.parametrize("width", [1, 8, 13, 33, 64])
def test_reveal_of_bits(width: int, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    values = np.array([0, 1, (1 << (width - 1)) - 1 if width > 1 else 1])
    assert reveal(session.share_bits(values, owner=1, width=width)).tolist() == values.tolist()


def test_bits_of_width_64_are_signed(simulate: Fixture, reveal: Fixture) -> None:
    assert reveal(simulate(2).share_bits([-1, 5])).tolist() == [-1, 5]


@pytest.mark.parametrize("kind", ["sum", "xor"])
def test_a_reveal_re_randomises(kind: str, parties: int, simulate: Fixture) -> None:
    """The words on the wire are new each time and still join to the secret."""
    sent: list[np.ndarray] = []
    session: Session = simulate(parties, listener=lambda request, payload, reply: sent.append(payload.copy()))
    secret = np.arange(20)
    x = session.share(secret, scale=0) if kind == "sum" else session.share_bits(secret, width=64)

    def program() -> Rounds[None]:
        yield Reveal(x, EVERYONE)
        yield Reveal(x, "party 0")

    session.run(program())
    first, second = (payload.view(np.uint64) for payload in sent)
    for payload in (first, second):
        joined = payload.sum(axis=0, dtype=np.uint64) if kind == "sum" else np.bitwise_xor.reduce(payload, axis=0)
        assert (joined == secret.astype(np.uint64)).all()
        assert (payload != x.words).all()  # one chance word in 2^64 apart
    assert (first != second).all()


def test_a_reveal_of_a_known_sharing_is_uniform(parties: int, simulate: Fixture, uniformity: Fixture) -> None:
    """Even of (c, 0, ..., 0): each row looks random.  Rejects at p < 1e-6, on fixed pair keys."""
    rows: list[np.ndarray] = []
    session = simulate(parties, listener=lambda request, payload, reply: rows.extend(payload.copy()))

    def program() -> Rounds[None]:
        yield Reveal(session.constant(np.full(20_000, 7), 0))

    session.run(program())
    assert len(rows) == parties
    assert min(uniformity(row.view(np.uint64), 64) for row in rows) > 1e-6


def test_the_ledger_knows_each_disclosure(simulate: Fixture) -> None:
    def customer() -> Any:
        return (yield Receive((2, 3), 20))

    session = simulate(3, clients={"customer": customer()})
    assert len(session.ledger) == 0 and session.ledger.table() == "nobody learned anything"
    x, bits = session.share(VALUES), session.share_bits([1, 2], width=4)

    def program() -> Rounds[None]:
        for _ in range(2):
            yield Reveal(x, "party 2", "contexts", "the paper says so"), Reveal(bits, EVERYONE, "bits", "a test")
        yield Reveal(x, "customer", "contexts", "it paid")
        yield Open(np.zeros((3, 1), np.uint64))

    session.run(program())
    assert list(session.ledger) == [
        Entry("party 2", "contexts", 12, "the paper says so"),
        Entry("everyone", "bits", 4, "a test"),
        Entry("customer", "contexts", 6, "it paid"),
    ]
    lines = session.ledger.table().splitlines()
    assert lines[0].split() == ["role", "what", "count", "why"] and lines[2].split()[:3] == ["party", "2", "contexts"]
    assert "3.25" not in session.ledger.table()


def test_clients_send_and_receive(parties: int, simulate: Fixture) -> None:
    heard: list[Any] = []

    def buyer() -> Any:
        yield Send(VALUES, scale=20, bound=2.0**41)
        heard.append((yield Receive((2, 3), 20)))
        yield Send(4, scale=0)
        heard.append((yield Receive()))

    session = simulate(parties, clients={"buyer": buyer()})

    def program() -> Rounds[Any]:
        x = yield Input("buyer", (2, 3), 20)
        nothing = yield Reveal(x * 2, "buyer", "double", "asked for")
        assert nothing is None
        n = yield Input("buyer")
        assert (yield Reveal(n, "party 0")) == 4
        yield Reveal(n + 1, "buyer", "successor", "asked for")

    session.run(program())
    assert session.round == 1  # only the reveal to party 0
    scaled, successor = heard
    assert scaled.dtype == np.float64 and (scaled[:, ::2] == 2 * VALUES[:, ::2]).all()
    assert successor == 5 and successor.shape == ()


def test_an_input_of_a_client_is_shared_at_random(simulate: Fixture) -> None:
    def client() -> Any:
        for _ in range(2):
            yield Send(np.zeros(50))

    session = simulate(3, clients={"c": client()})

    def program() -> Rounds[Any]:
        return (yield Input("c", (50,))), (yield Input("c", (50,)))

    one, other = session.run(program())
    assert (one.words != other.words).all() and (one.words.sum(axis=0, dtype=np.uint64) == 0).all()


def test_requests_of_one_round_are_answered_in_order(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)
    x, bits = session.share(VALUES), session.share_bits([5], width=3)
    masked = ring.encode(VALUES, 0)

    def program() -> Rounds[Any]:
        return (yield Reveal(x, "party 1"), Open(session.public(masked), 16), Reveal(bits), Reveal(x[0], "party 0"))

    first, opened, five, row = session.run(program())
    assert session.round == 1
    assert (first == VALUES).all() and (row == VALUES[0]).all() and five.tolist() == [5]
    assert opened.dtype == np.uint16 and (opened == (masked & np.uint64(0xFFFF))).all()


def test_words_opened_apart_come_row_by_row(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)
    rows = np.arange(2 * parties, dtype=np.uint64).reshape(parties, 2)

    def program() -> Rounds[Any]:
        return (yield Open(rows, apart=True))

    assert (session.run(program()) == rows).all()


def test_a_share_of_another_session_is_not_revealed(simulate: Fixture, reveal: Fixture) -> None:
    stranger = simulate(2).share([1.0])

    def program() -> Rounds[None]:
        yield Reveal(stranger)

    with pytest.raises(TypeError, match="another session"):
        simulate(2).run(program())


def test_the_ledger_has_a_disclosure_whose_round_failed(simulate: Fixture) -> None:
    """The first reveal is delivered before the client refuses the second."""

    def puller() -> Any:
        yield Receive(scale=20)

    session = simulate(2, clients={"puller": puller()})

    def program() -> Rounds[None]:
        x = session.share(1.0)
        yield Reveal(x, to="puller", what="arm", why="test"), Reveal(x, to="puller", what="more", why="test")

    with pytest.raises(ConfigError, match="ended"):
        session.run(program())
    assert {entry.what for entry in session.ledger} == {"arm", "more"}


def _twice(x: Any) -> Rounds[None]:
    for _ in range(2):
        yield Reveal(x, "party 1", "contexts", "asked for"), Open(np.zeros((x.session.parties, 1), np.uint64))


def test_sessions_count_on_the_ledger_and_the_meter_they_are_given(parties: int, simulate: Fixture) -> None:
    ledger, meter = Ledger(), Meter()
    for _ in range(2):
        session = simulate(parties, ledger=ledger, meter=meter)
        assert session.ledger is ledger and session.meter is meter
        session.run(_twice(session.share(VALUES)))
    assert list(ledger) == [Entry("party 1", "contexts", 24, "asked for")]
    assert (meter.total.rounds, meter.total.sent_bytes) == (4, 4 * (48 + 8 * (parties - 1)))


def test_a_resumed_session_goes_on_counting(parties: int, simulate: Fixture) -> None:
    """Through JSON, as checkpoints keep it: twice two rounds count as four."""
    once, whole = simulate(parties), simulate(parties)
    once.run(_twice(once.share(VALUES)))
    kept = json.loads(json.dumps(once.counted()))
    assert kept["cost"]["rounds"] == 2 and kept["ledger"][0]["count"] == 12
    again = simulate(parties)
    again.resume(**kept)
    assert again.meter.total == once.meter.total and list(again.ledger) == list(once.ledger)
    again.run(_twice(again.share(VALUES)))
    for _ in range(2):
        whole.run(_twice(whole.share(VALUES)))
    (counted, expected) = again.counted(), whole.counted()
    assert counted["cost"].pop("seconds") > once.meter.total.seconds
    expected["cost"].pop("seconds")
    assert counted == expected


def test_what_was_counted_before_is_not_changed_by_who_goes_on(simulate: Fixture) -> None:
    cost = Cost(rounds=3, frame_bytes=128)
    meter = Meter()
    meter.add(cost)
    meter.add(cost)
    assert (meter.total.rounds, meter.total.frame_bytes, cost.rounds) == (6, 256, 3)


def test_fresh_words_cost_nothing_and_are_the_same_value(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    x = session.share(VALUES, owner=1)
    other = session.fresh(x)
    assert (other.words != x.words).all() and (reveal(other) == VALUES).all()
    assert (session.meter.total.rounds, session.meter.total.opened_bytes) == (1, 0), "the reveal alone"
    narrow = session.fresh(session.share([1, 2], scale=0).mod(8))
    assert narrow.ring == 8 and reveal(narrow).tolist() == [1, 2]
    with pytest.raises(TypeError, match="another session"):
        simulate(parties).fresh(x)

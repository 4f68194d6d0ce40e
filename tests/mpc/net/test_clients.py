"""Clients over tcp: inputs, reveals, and a cost that is the same as in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc import ops
from mpc.client import Receive, Send
from mpc.errors import ConfigError, Desync
from mpc.net.memory import Memory
from mpc.net.tcp import Tcp, TcpClient
from mpc.rounds import Input, Reveal
from mpc.session import Session
from offline import InsecureSeededDealer
from tests.parties.programs import pair_keys, seeded
from tests.parties.threads import over_tcp, values

VALUES = np.array([[1.5, -2.25, 3.0], [0.0, 4.0, -1.0]])


def asks() -> Any:
    """Sends a matrix, learns its square, and sends what it learned."""
    yield Send(VALUES, 20)
    squares = yield Receive((2, 3), 40)
    yield Send(squares[0], 20)
    return squares.tolist()


def serves(session: Session) -> list[Any]:
    def program() -> Any:
        x = yield Input("patient", (2, 3), 20)
        z = yield from ops.square(session, x)
        told = yield Reveal(z, "patient", "squares")
        again, total = yield Input("patient", (3,), 20), Reveal(z.sum())
        last = yield Reveal(again, "party 0")
        return [told, float(total), None if last is None else last.tolist()]

    cost = session.meter.total
    return [*session.run(program()), cost.rounds, cost.opened_bytes, cost.sent_bytes, cost.client_hops]


def test_inputs_and_reveals_reach_whom_they_should(parties: int) -> None:
    *told, learned = values(over_tcp(parties, serves, clients={"patient": asks}))
    squares = VALUES**2
    assert learned == squares.tolist()
    source = InsecureSeededDealer(parties, 7)
    memory = serves(Session(Memory(parties), source, clients={"patient": asks()}, pair_keys=pair_keys(parties)))
    assert memory[0] is None
    assert memory[1:3] == [squares.sum(), squares[0].tolist()]
    assert memory[-1] == 3
    for party, each in enumerate(told):
        assert each[:2] == memory[:2]
        assert each[2] == (memory[2] if party == 0 else None)
        assert each[3:] == memory[3:]


def test_large_messages_of_a_client() -> None:
    many = np.arange(400_000.0)

    def sends() -> Any:
        yield Send(many, 0)
        return (yield Receive((400_000,), 0))

    def returns(session: Session) -> Any:
        def program() -> Any:
            x = yield Input("patient", (400_000,), 0)
            yield Reveal(x + x, "patient")

        return session.run(program())

    assert (values(over_tcp(3, returns, clients={"patient": sends}))[-1] == 2 * many).all()


def test_two_clients_are_told_apart() -> None:
    def sends(value: float) -> Any:
        def program() -> Any:
            yield Send(value, 20)
            return (yield Receive((), 20))

        return program

    def swaps(session: Session) -> Any:
        def program() -> Any:
            a, b = yield Input("a", (), 20), Input("b", (), 20)
            yield Reveal(a, "b"), Reveal(b, "a")

        return session.run(program())

    assert values(over_tcp(2, swaps, clients={"a": sends(1.5), "b": sends(2.5)})) == [None, None, 2.5, 1.5]


def test_a_client_that_waits_for_another_shape_is_a_desync() -> None:
    def waits() -> Any:
        return (yield Receive((3,), 20))

    def reveals(session: Session) -> Any:
        x = session.share(np.ones(2) if 0 in session.hosted else None, shape=(2,))

        def program() -> Any:
            yield Reveal(x, "patient")
            return (yield Input("patient", (), 0))

        return session.run(program())

    *parties, client = over_tcp(2, reveals, clients={"patient": waits})
    assert isinstance(client.error, Desync)
    assert "client 0 in round 1 at reveal of shape (3,) with 20 fraction bits" in str(client.error)
    for outcome in parties:
        assert isinstance(outcome.error, Desync), outcome


def test_a_client_that_ends_while_an_input_is_due_is_a_desync() -> None:
    def ends() -> Any:
        return "nothing to say"
        yield Receive()

    def waits(session: Session) -> Any:
        def program() -> Any:
            return (yield Input("patient", (), 0))

        return session.run(program())

    *parties, client = over_tcp(2, waits, clients={"patient": ends})
    assert client.value == "nothing to say"
    for outcome in parties:
        assert isinstance(outcome.error, Desync)
        assert "client 0 has ended its program" in str(outcome.error)


def test_parties_wait_for_what_a_client_notes(parties: int) -> None:
    """Its word may come before or behind what it sends, and one word serves for all decisions up to its own."""

    def notes(link: TcpClient) -> None:
        for done in (5, 10):
            link.say_noted(done)
            link.send(np.zeros((parties, 8), np.uint8), "a number")
        link.say_noted(15)
        link.close()

    def waits(session: Session) -> list[int]:
        link, heard = session.transport, list[int]()
        assert isinstance(link, Tcp)
        for done, numbers in ((5, 0), (10, 2), (7, 0), (15, 0)):
            for _ in range(numbers):
                link.receive_from_client(parties, "a number", 8)
            link.await_noted(parties, done)
            heard.append(link._noted[parties])
        return heard

    assert values(over_tcp(parties, waits, clients={"clerk": notes}))[:-1] == [[5, 10, 10, 15]] * parties


def test_a_client_that_goes_on_or_leaves_before_it_has_noted_is_a_desync() -> None:
    def goes_on(link: TcpClient) -> None:
        link.send(np.zeros((2, 8), np.uint8), "a number")
        link.close()

    def leaves(link: TcpClient) -> None:
        link.close()

    for clerk in (goes_on, leaves):
        *parties, _ = over_tcp(2, lambda session: session.transport.await_noted(2, 5), clients={"clerk": clerk})
        assert all(isinstance(outcome.error, Desync) for outcome in parties), parties


def test_in_memory_no_client_is_a_process() -> None:
    session = seeded(Memory(2), roles=("patient",))

    def program() -> Any:
        return (yield Input("patient", (), 0))

    with pytest.raises(ConfigError):
        session.run(program())

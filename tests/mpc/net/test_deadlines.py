"""A round is over in time, however its bytes come; and a party that waits for somebody else says so."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc.client import Receive, Send, serve
from mpc.errors import DEALER, Desync, PeerLost
from mpc.net.channel import Channel
from mpc.net.frames import HEADER_BYTES, Kind, pack
from mpc.net.tcp import TcpClient
from mpc.net.transport import Stamp
from mpc.rounds import Input, Reveal
from mpc.session import Session
from tests.parties.programs import rounds
from tests.parties.threads import over_tcp, side_by_side, values

SMALL, LARGE = (4,), (1 << 19,)


def dripped(sock: socket.socket, message: bytes) -> bool:
    """Give a message byte by byte; whether somebody listened to its end."""
    sock.setblocking(True)
    pause = threading.Event()
    try:
        for byte in message:
            sock.sendall(bytes([byte]))
            pause.wait(0.05)
    except OSError:
        return False
    return True


def dripping(session: Session) -> bool:
    """A party whose message of a round never comes to its end."""
    return dripped(session.transport._peers[0], bytes(HEADER_BYTES - 1) * 4)  # type: ignore[attr-defined]


def plays(shape: tuple[int, ...]) -> Callable[[Session], Any]:
    return lambda session: session.run(rounds(session, 1, shape))


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
def test_bytes_that_come_one_by_one_do_not_stretch_a_round(shape: tuple[int, ...]) -> None:
    waits, drips = over_tcp(2, {0: plays(shape), 1: dripping}, timeout=1.0)
    assert isinstance(waits.error, PeerLost) and waits.error.peer == 1
    assert "party 1 was silent for 1 s in round 1" in str(waits.error)
    assert drips.value is False, "it was listened to for the whole of six seconds and more"


def asks(session: Session) -> Any:
    def program() -> Any:
        x = yield Input("patient", SMALL, 20)
        yield Reveal(x, "patient")

    return session.run(program())


def test_nor_do_they_stretch_a_clients_message() -> None:
    def drips(link: TcpClient) -> bool:
        return dripped(link._peers[0], bytes(HEADER_BYTES - 1) * 4)

    first, _, client = over_tcp(2, asks, clients={"patient": drips}, timeout=1.0)
    assert isinstance(first.error, PeerLost) and first.error.peer == 2
    assert client.value is False


def test_nor_a_message_to_a_client() -> None:
    def drips(session: Session) -> bool:
        return dripped(session.transport._peers[2], bytes(HEADER_BYTES - 1) * 4)  # type: ignore[attr-defined]

    def waits() -> Any:
        yield Receive(SMALL, 20)

    first, _, client = over_tcp(2, {0: drips, 1: lambda _: None}, clients={"patient": waits}, timeout=1.0)
    assert isinstance(client.error, PeerLost) and client.error.peer == 0
    assert first.value is False


def test_a_reader_that_takes_a_byte_at_a_time_does_not_stretch_it_either() -> None:
    over = threading.Event()

    def reads(session: Session) -> None:
        sock = session.transport._peers[2]  # type: ignore[attr-defined]
        sock.setblocking(True)
        while not over.wait(0.01):
            sock.recv(1 << 15)

    def sends(link: TcpClient) -> None:
        try:
            link.send(np.zeros((2, 1 << 25), np.uint8), "much")
        finally:
            over.set()
            link.close()

    *_, client = over_tcp(2, reads, clients={"patient": sends}, timeout=2.5)
    assert isinstance(client.error, PeerLost) and client.error.peer == 0
    assert "party 0 was silent for 2.5 s" in str(client.error)


def test_a_channels_message_has_one_deadline_too() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, "the dealer")

    def receives() -> Any:
        try:
            return channel.receive(timeout=0.3)
        finally:
            channel.close()

    drips, received = side_by_side(lambda: dripped(ours, bytes([200, *[0] * 207])), receives)
    ours.close()
    assert isinstance(received.error, PeerLost) and "was silent for 0.3 s" in str(received.error)
    assert drips.value is False


def test_a_channel_is_not_held_by_one_that_takes_nothing() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours, "owner 1", peer=4)
    with pytest.raises(PeerLost, match=r"owner 1 took nothing for 0\.3 s: it hangs"):
        channel.send(bytes(1 << 24), timeout=0.3)
    channel.close()
    theirs.close()


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
def test_a_party_that_says_for_whom_it_waits_is_given_a_rounds_time_again(shape: tuple[int, ...]) -> None:
    said, begun = threading.Event(), list[float]()

    def says(session: Session) -> int:
        for _ in range(3):
            session.transport.say_waiting("the dealer")
        said.set()
        return int(session.run(rounds(session, 2, shape))[0])

    def hears(session: Session) -> int:
        begin = session.transport._begin  # type: ignore[attr-defined]
        session.transport._begin = lambda: begun.append(begin())  # type: ignore[attr-defined]
        assert said.wait(300)
        return int(session.run(rounds(session, 2, shape))[0])

    def asks() -> Any:
        yield from ()

    assert values(over_tcp(2, {0: says, 1: hears}, clients={"patient": asks}))[:2] == [1, 1]
    assert len(begun) == 2 + 3, "each round has its time, and each of these words begins it anew"


def test_a_client_hears_for_whom_a_party_waits() -> None:
    def says(session: Session) -> Any:
        session.transport.say_waiting("the dealer")
        return asks(session)

    def gives() -> Any:
        yield Send(np.ones(4), 20)
        return (yield Receive(SMALL, 20)).tolist()

    assert values(over_tcp(3, says, clients={"patient": gives}))[-1] == [1.0] * 4


def test_one_that_is_silent_after_it_said_so_is_told_with_it() -> None:
    awake = threading.Event()

    def says(session: Session) -> None:
        session.transport.say_waiting("the dealer")
        assert awake.wait(300)

    def waits(session: Session) -> Any:
        try:
            return session.run(rounds(session, 1))
        finally:
            awake.set()

    _, lost = over_tcp(2, {0: says, 1: waits}, timeout=1.0)
    assert str(lost.error) == "party 0 was silent for 1 s in round 1, after it had said that it waits for the dealer"


class Begun:
    """How often a node began to count a round's time."""

    def __init__(self, transport: Any) -> None:
        self.times, self._begin = 0, transport._begin
        transport._begin = self

    def __call__(self) -> None:
        self.times += 1
        self._begin()


def waits(link: TcpClient) -> Any:
    def program() -> Any:
        yield Receive(SMALL, 20)

    return serve(link, program())


def test_a_client_says_for_whom_it_waits(parties: int) -> None:
    """Party 0 is frozen, and the others wait for a client of it: they give it time until it names party 0."""
    over, begun = threading.Event(), dict[int, Begun]()

    def needs(session: Session) -> None:
        begun[session.hosted[0]] = Begun(session.transport)
        try:
            session.transport.receive_from_client(parties, "an input", 0)
        finally:
            over.set()

    def soon(link: TcpClient) -> Any:
        link._timeout = 0.4
        return waits(link)

    programs = {0: lambda _: over.wait(300), **dict.fromkeys(range(1, parties), needs)}
    _, *others, client = over_tcp(parties, programs, clients={"patient": soon})
    for outcome in (*others, client):
        assert isinstance(outcome.error, PeerLost) and outcome.error.peer == 0
    assert {each.times for each in begun.values()} == {2}, "the wait for the client begins anew"


def test_who_waits_for_somebody_who_waits_is_not_the_first_to_lose_him(parties: int) -> None:
    """The bidder is frozen: the parties name it, and the seller, who waited for them before, hears it from them."""
    over, begun = threading.Event(), list[Begun]()

    def needs(session: Session) -> None:
        session.transport._timeout = 0.4  # type: ignore[attr-defined]
        session.transport.receive_from_client(parties, "an input", 0)

    def sells(link: TcpClient) -> Any:
        begun.append(Begun(link))
        try:
            return waits(link)
        finally:
            over.set()

    *all_, bidder, seller = over_tcp(parties, needs, clients={"bidder": lambda _: over.wait(300), "seller": sells})
    assert bidder.error is None
    for outcome in (*all_, seller):
        assert isinstance(outcome.error, PeerLost) and outcome.error.peer == parties
    assert begun[0].times == 2


def test_a_word_is_passed_on() -> None:
    """The clerk says for whom it waits; the parties, who wait for the clerk, tell the seller, who waits for them."""
    heard, begun = threading.Event(), list[Begun]()

    class Again(Begun):
        def __call__(self) -> None:
            super().__call__()
            if self.times == 2:
                heard.set()

    def needs(session: Session) -> None:
        session.transport.receive_from_client(2, "an input", 8)
        session.transport.send_to_client(3, "told", np.zeros((1, 8), np.uint8))

    def says(link: TcpClient) -> None:
        link.say_waiting("the dealer")
        heard.wait(300)
        link.send(np.zeros((2, 8), np.uint8), "an input")

    def sells(link: TcpClient) -> None:
        begun.append(Again(link))
        link.receive(8, "told")

    values(over_tcp(2, needs, clients={"clerk": says, "seller": sells}, timeout=400.0))
    assert begun[0].times >= 2


def test_in_the_middle_of_a_large_round_it_is_said_too() -> None:
    """Party 0 is frozen, party 1 has much to send to it, and a seller waits for party 1."""
    over, begun = threading.Event(), list[Begun]()

    def sends(session: Session) -> Any:
        session.transport._timeout = 0.4  # type: ignore[attr-defined]
        return session.run(rounds(session, 1, LARGE))

    def sells(link: TcpClient) -> None:
        begun.append(Begun(link))
        link._begin()
        try:
            link._receive(1, memoryview(bytearray(HEADER_BYTES)), Stamp(1, bytes(8), "told"))
        finally:
            over.set()

    _, *outcomes = over_tcp(2, {0: lambda _: over.wait(300), 1: sends}, clients={"seller": sells})
    assert all(isinstance(outcome.error, PeerLost) and outcome.error.peer == 0 for outcome in outcomes)
    assert begun[0].times == 2


def test_two_that_wait_for_each_other_do_not_do_so_for_ever() -> None:
    def needs(session: Session) -> Any:
        return session.transport.receive_from_client(2, "an input", 0)

    *parties, client = over_tcp(2, needs, clients={"patient": waits}, timeout=0.4)
    assert all(isinstance(outcome.error, PeerLost) for outcome in (*parties, client))


def test_one_that_waits_for_this_very_node_is_given_no_more_time() -> None:
    over, begun = threading.Event(), list[Begun]()

    def says(session: Session) -> None:
        session.transport.say_waiting("party 1")
        over.wait(300)

    def hears(session: Session) -> Any:
        begun.append(Begun(session.transport))
        try:
            return session.run(rounds(session, 1))
        finally:
            over.set()

    _, lost = over_tcp(2, {0: says, 1: hears}, timeout=0.4)
    assert isinstance(lost.error, PeerLost) and begun[0].times == 1


def test_who_says_again_and_again_that_it_waits_is_lost_too() -> None:
    begun = list[Begun]()

    def says(session: Session) -> bool:
        pause, word = threading.Event(), pack(Kind.WAITS, 0, Stamp(0, bytes(8), "the dealer"), 0)
        with contextlib.suppress(OSError):
            for _ in range(600):
                session.transport._peers[1].sendall(word)  # type: ignore[attr-defined]
                pause.wait(0.05)
            return True
        return False

    def hears(session: Session) -> Any:
        begun.append(Begun(session.transport))
        return session.run(rounds(session, 1))

    said, lost = over_tcp(2, {0: says, 1: hears}, timeout=0.4)
    assert isinstance(lost.error, PeerLost) and lost.error.peer == 0
    assert said.value is False and begun[0].times == 5


@pytest.mark.parametrize("kind", [Kind.WAITS, Kind.NOTED])
def test_nor_does_one_hold_a_round_who_says_things_without_end(kind: Kind) -> None:
    """Faster than they are heard, so that no time is over."""

    def says(session: Session) -> None:
        sock = session.transport._peers[1]  # type: ignore[attr-defined]
        sock.setblocking(True)
        with contextlib.suppress(OSError):
            for _ in range(20_000):
                sock.sendall(pack(kind, 0, Stamp(0, bytes(8), "the dealer"), 0) * 50)

    _, lost = over_tcp(2, {0: says, 1: plays(SMALL)}, timeout=20.0)
    assert isinstance(lost.error, Desync) and "says 1000 things and sends nothing" in str(lost.error)


def test_whose_dealer_is_lost_names_it_to_all() -> None:
    """Not itself: a party that stops of another's end is a witness."""

    def loses(session: Session) -> None:
        raise PeerLost("the dealer was silent for 4 s after 3 of 10 blocks: it hangs", peer=DEALER, witness=False)

    _, *others, client = over_tcp(
        3, {0: loses, 1: plays(SMALL), 2: plays(SMALL)}, clients={"patient": lambda: (yield Receive(SMALL, 20))}
    )
    for outcome in (*others, client):
        assert isinstance(outcome.error, PeerLost) and outcome.error.witness
        assert (outcome.error.peer, outcome.error.reporter) == (DEALER, 0)
        assert str(outcome.error).startswith("the dealer was silent for 4 s after 3 of 10 blocks: it hangs (reported")

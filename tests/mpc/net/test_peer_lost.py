"""A party or client that dies, falls silent or stops: the others get PeerLost with its number, and none hangs."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import pytest

from mpc.client import Receive
from mpc.errors import ConfigError, Desync, PeerLost, RangeError, Told
from mpc.net.tcp import TcpClient
from mpc.rounds import Input, Reveal
from mpc.session import Session
from tests.parties.processes import PARTY, Launched
from tests.parties.programs import out_of_range, rounds
from tests.parties.threads import over_tcp

_ROUND = 30.0  # seconds of a round; gloo now and then takes so long to tell that a peer is gone


def killed_mid_run(parties: int, transport: str, victim: int) -> Launched:
    """Kill a party when it says that it is under way."""

    def hears(launched: Launched, name: str, line: str) -> None:
        if name == f"party {victim}" and line == "ready":
            os.kill(launched.pids[victim], signal.SIGKILL)

    return Launched([*PARTY, "endless"], parties, transport=transport, hears=hears, timeout=_ROUND)


@pytest.mark.parametrize(
    ("parties", "transport", "victim"),
    [
        *[(2, "tcp", 0), (3, "tcp", 1), (5, "tcp", 4)],
        *[
            pytest.param(parties, "gloo", victim, marks=pytest.mark.needs("torch"))
            for parties, victim in ((2, 1), (3, 0), (3, 2))
        ],
    ],
)
def test_a_killed_party_is_named_by_all_others(parties: int, transport: str, victim: int) -> None:
    launched = killed_mid_run(parties, transport, victim)
    assert str(launched.error) == f"party {victim} was ended by SIGKILL"
    for party in set(range(parties)) - {victim}:
        outcome = launched.outcome(f"party {party}")
        assert (outcome["error"], outcome["peer"]) == ("PeerLost", victim), outcome
        ways = ["closed its connection", *([f"was silent for {_ROUND:g} s"] if transport == "gloo" else [])]
        assert any(f"party {victim} {how}" in outcome["text"] for how in ways), outcome


def test_a_silent_party_is_named_after_the_timeout(parties: int) -> None:
    last, awake = parties - 1, threading.Event()

    def silent(session: Session) -> Any:
        session.run(rounds(session, 3))
        assert awake.wait(300)
        return session.run(rounds(session, 3))

    def waits(session: Session) -> Any:
        try:
            return session.run(rounds(session, 6))
        finally:
            if session.hosted == (0,):
                awake.set()

    *others, slept = over_tcp(parties, {**dict.fromkeys(range(last), waits), last: silent}, timeout=3.0)
    for outcome in others:
        assert isinstance(outcome.error, PeerLost)
        assert outcome.error.peer == last
        assert f"party {last} was silent for 3 s in round 4" in str(outcome.error)
    assert isinstance(slept.error, PeerLost), slept


def test_a_silent_party_is_named_in_large_messages() -> None:
    awake = threading.Event()

    def silent(session: Session) -> Any:
        assert awake.wait(300)

    def waits(session: Session) -> Any:
        try:
            return session.run(rounds(session, 1, (1 << 19,)))
        finally:
            awake.set()

    first, second = over_tcp(2, {0: waits, 1: silent}, timeout=1.0)
    assert isinstance(first.error, PeerLost)
    assert "party 1 was silent for 1 s" in str(first.error)
    assert first.error.peer == 1
    assert second.error is None  # it sent nothing and waited for nothing


@pytest.mark.needs("torch")
def test_over_gloo_a_stopped_and_a_silent_party_are_named() -> None:
    launched = Launched([*PARTY, "out_of_range", "stays_silent"], 3, transport="gloo", timeout=4, linger=60.0)
    for party in (0, 1):
        stopped, silent = launched.told(f"party {party}")
        assert (stopped["error"], stopped["peer"]) == ("PeerLost", 2)
        assert stopped["text"].startswith("party 2 stopped with RangeError")
        assert "bound" not in stopped["text"], "the text is the owner's: it may speak of its value"
        assert (silent["error"], silent["peer"]) == ("PeerLost", 2)
        assert "party 2 was silent for 4 s" in silent["text"]
    assert [line["error"] for line in launched.told("party 2")] == ["RangeError", "PeerLost"]


def test_a_party_that_stops_says_so_and_keeps_its_values_to_itself(parties: int) -> None:
    """A RangeError's text may say how far a value was out: that stays with the value's owner."""
    *others, stopped = over_tcp(parties, out_of_range)
    assert isinstance(stopped.error, RangeError)
    for outcome in others:
        assert isinstance(outcome.error, PeerLost)
        assert outcome.error.peer == parties - 1
        assert str(outcome.error).split(" (reported")[0] == f"party {parties - 1} stopped with RangeError"


def test_a_foreign_error_is_told_by_its_name_alone() -> None:
    def fails(session: Session) -> Any:
        raise KeyError("a secret")

    def goes_on(session: Session) -> Any:
        return session.run(rounds(session, 3))

    first, second = over_tcp(2, {0: fails, 1: goes_on})
    assert isinstance(first.error, KeyError)
    assert isinstance(second.error, PeerLost)
    assert str(second.error) == "party 0 stopped with KeyError"


def test_last_words_arrive_behind_a_large_message_under_way() -> None:
    """Party 0 stops in the middle of its frame to party 1, because party 2 is gone: party 1 blames party 2."""
    left = threading.Event()

    def leaves(session: Session) -> Any:
        left.set()
        raise RangeError("too large")

    def sends(session: Session) -> Any:
        assert left.wait(300)
        return session.run(rounds(session, 1, (1 << 20,)))

    outcomes = over_tcp(3, {0: sends, 1: sends, 2: leaves})
    for outcome in outcomes[:2]:
        assert isinstance(outcome.error, PeerLost)
        assert (outcome.error.peer, "RangeError" in str(outcome.error)) == (2, True), outcome


def _asks_client(session: Session) -> Any:
    def program() -> Any:
        x = yield Input("patient", (2,), 20)
        return (yield Reveal(x, "patient"))

    session.run(rounds(session, 3))
    return session.run(program())


@pytest.mark.parametrize("parties", [2, 3])
def test_a_client_that_dies_is_named_by_all(parties: int) -> None:
    def dies(link: TcpClient) -> None:
        for sock in link._peers.values():
            sock.close()

    for outcome in over_tcp(parties, _asks_client, clients={"patient": dies})[:parties]:
        assert isinstance(outcome.error, PeerLost)
        assert outcome.error.peer == parties
        assert "client 0 closed its connection" in str(outcome.error)


def test_a_client_whose_death_one_party_alone_sees_is_named_to_the_others() -> None:
    """Party 0 waits for the client, the others wait for party 0."""

    def dies(link: TcpClient) -> None:
        for sock in link._peers.values():
            sock.close()

    def waits_for_party_0(session: Session) -> Any:
        return session.run(rounds(session, 2))

    def asks(session: Session) -> Any:
        def program() -> Any:
            return (yield Input("patient", (), 0))

        return session.run(program())

    for outcome in over_tcp(3, {0: asks, 1: waits_for_party_0, 2: waits_for_party_0}, clients={"patient": dies})[:3]:
        assert isinstance(outcome.error, PeerLost)
        assert outcome.error.peer == 3, outcome


@pytest.mark.parametrize(
    "error", [RangeError("a row has norm 1.25"), ConfigError("there is no arm 7"), Desync("7"), KeyError(7)], ids=repr
)
def test_of_a_client_that_stops_the_parties_hear_the_kind_alone(error: Exception) -> None:
    """Whatever the error: the words may have in them what the client learned."""

    def stops() -> Any:
        raise error
        yield Receive()

    for outcome in over_tcp(2, _asks_client, clients={"patient": stops})[:2]:
        assert isinstance(outcome.error, Desync if isinstance(error, Desync) else PeerLost)
        assert str(outcome.error).split(" (reported")[0] == f"client 0 stopped with {type(error).__name__}"


def test_a_client_is_told_which_party_died() -> None:
    def leaves(session: Session) -> Any:
        for sock in session.transport._peers.values():
            sock.close()
        session.transport._closed = True

    def goes_on(session: Session) -> Any:
        return session.run(rounds(session, 3))

    def waits() -> Any:
        return (yield Receive((2,), 20))

    first, second, client = over_tcp(2, {0: goes_on, 1: leaves}, clients={"patient": waits})
    assert second.error is None
    assert isinstance(first.error, PeerLost)
    assert isinstance(client.error, PeerLost)
    assert (first.error.peer, client.error.peer) == (1, 1)


def test_no_descriptor_is_left_open() -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    def dies(link: TcpClient) -> None:
        link.close(reason=Told("KeyError"))

    over_tcp(2, out_of_range)
    gc.collect()  # what earlier tests left to it
    before = count()
    for _ in range(3):
        over_tcp(3, out_of_range)
        over_tcp(2, _asks_client, clients={"patient": dies})
    assert count() <= before

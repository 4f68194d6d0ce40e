"""Parties that run different programs: every one of them gets Desync, and none hangs or aborts.

Party 1 is the odd one.  The parties that agree with each other see it too, or have it reported.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from mpc.errors import Desync
from mpc.session import Session
from tests.parties.processes import PARTY, Launched
from tests.parties.programs import DESYNCS, rounds
from tests.parties.threads import over_tcp, values

_POSITION = re.compile(r"\b[a-z_]\w*:\d+")
_ENDS = ("ends_early", "goes_on", "large_goes_on")


def check(name: str, text: str) -> None:
    """Both positions; of a party that has ended, that it has."""
    positions = _POSITION.findall(text)
    assert len(positions) >= 1 if name in _ENDS else len(positions) >= 2, text
    assert ("has ended its program" in text) == (name in _ENDS), text
    assert "party 1" in text
    assert "run the same program" in text


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("name", DESYNCS)
def test_over_tcp_every_party_gets_desync(name: str, parties: int) -> None:
    for outcome in over_tcp(parties, DESYNCS[name]):
        assert isinstance(outcome.error, Desync), outcome
        check(name, str(outcome.error))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("parties", [2, 3])
def test_over_gloo_every_party_gets_desync(parties: int) -> None:
    """A size or type that differs is caught by our header; gloo itself would abort the process."""
    launched = Launched([*PARTY, *DESYNCS], parties, transport="gloo")
    assert launched.error is None
    for party in range(parties):
        told = launched.told(f"party {party}")
        assert [line["program"] for line in told] == list(DESYNCS)
        for line in told:
            assert line.get("error") == "Desync", (party, line)
            check(line["program"], line["text"])


@pytest.mark.parametrize(
    "garbage", [b"\xff" * 128, b"GET / HTTP/1.1\r\n" * 20, bytes(1 << 20)], ids=["ff", "http", "0"]
)
@pytest.mark.parametrize("shape", [(4,), (100_000,)], ids=["small", "large"])
def test_garbage_from_a_peer_is_desync(garbage: bytes, shape: tuple[int, ...]) -> None:
    def speaks(session: Session) -> Any:
        session.transport._peers[0].sendall(garbage)
        return session.run(rounds(session, 2, shape))

    def listens(session: Session) -> Any:
        return session.run(rounds(session, 2, shape))

    first, second = over_tcp(2, {0: listens, 1: speaks})
    for outcome in (first, second):
        assert isinstance(outcome.error, Desync), outcome
        assert "what party 1 sends is no message of this protocol version" in str(outcome.error)


def test_a_message_in_pieces_is_one_message() -> None:
    """A stream keeps no borders: header and payload come a few bytes at a time."""

    class Dribbles:
        def __init__(self, sock: Any) -> None:
            self._sock = sock

        def sendmsg(self, parts: Any) -> int:
            whole = b"".join(parts)
            for at in range(0, len(whole), 7):
                self._sock.sendall(whole[at : at + 7])
            return len(whole)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._sock, name)

    def dribbles(session: Session) -> Any:
        peers = session.transport._peers
        peers.update({q: Dribbles(sock) for q, sock in peers.items()})
        return session.run(rounds(session, 20)).tolist()

    def plain(session: Session) -> Any:
        return session.run(rounds(session, 20)).tolist()

    assert values(over_tcp(3, {0: plain, 1: dribbles, 2: plain})) == [[1, 1, 1, 1]] * 3

"""How parties meet: strangers, wrong tokens, numbers claimed twice, addresses that will not do."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mpc.errors import ConfigError, PeerLost
from mpc.net import joining
from mpc.net.channel import await_parties, call_dealer
from mpc.net.frames import Kind, pack
from mpc.net.joining import listen, listen_in_kernel
from mpc.net.tcp import Tcp, TcpClient
from mpc.net.transport import Stamp
from tests.parties.threads import TOKEN, side_by_side


def joins(node: int, addresses: list, *, token: bytes = TOKEN, timeout: float = 20.0, **rest: Any) -> Callable[[], str]:
    def run() -> str:
        Tcp.join(node, addresses, token=token, timeout=timeout, **rest).close()
        return "joined"

    return run


def closes(*socks: socket.socket) -> None:
    for sock in socks:
        sock.close()


@pytest.mark.parametrize(
    "greeting",
    [b"", b"GET / HTTP/1.1\r\n\r\n" * 20, b"MBnd", bytes(4000), pack(Kind.HELLO, 1, Stamp(0, bytes(8), ""), 2**60)],
    ids=["silent", "http", "half", "zeros", "endless"],
)
def test_strangers_stop_nobody(greeting: bytes) -> None:
    """100 of them, who do not hang up, are waiting before the others come; a fraction of a second spent on each
    would use up the timeout."""
    listeners = [listen() for _ in range(3)]
    addresses = [sock.getsockname() for sock in listeners]
    answering = threading.Thread(
        target=lambda: results.extend(side_by_side(joins(0, addresses, listener=listeners[0])))
    )
    results: list = []
    answering.start()
    strangers = [socket.create_connection(addresses[0]) for _ in range(100)]
    try:
        for stranger in strangers:
            stranger.sendall(greeting)
        results += side_by_side(*(joins(p, addresses, listener=listeners[p]) for p in (1, 2)))
        answering.join(30)
        assert [(each.value, each.error) for each in results] == [("joined", None)] * 3
    finally:
        closes(*strangers)


def test_another_token_is_refused_at_once_and_named_to_both() -> None:
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]
    answers, calls = side_by_side(
        joins(0, addresses, listener=listeners[0], timeout=1.0),
        joins(1, addresses, listener=listeners[1], token=b"another token", timeout=30.0),
    )
    assert isinstance(calls.error, ConfigError)
    assert "party 1 belongs to another session: start all parties with the same token" in str(calls.error)
    assert isinstance(answers.error, PeerLost)
    assert answers.error.peer == 1
    assert "belongs to another session" in str(answers.error)
    for error in (calls.error, answers.error):
        assert "another token" not in str(error).replace("with another token", "")
        assert TOKEN.decode() not in str(error)


def test_a_number_claimed_twice_is_refused_to_the_second() -> None:
    listeners = [listen() for _ in range(3)]
    addresses = [sock.getsockname() for sock in listeners]
    results: list = []
    answering = threading.Thread(
        target=lambda: results.extend(side_by_side(joins(0, addresses, listener=listeners[0])))
    )
    answering.start()
    deadline = time.monotonic() + 20
    first = joining.call(1, 0, addresses[0], TOKEN, deadline)
    with pytest.raises(ConfigError, match=r"party 0 turned this process away: party 1 has joined already"):
        joins(1, addresses, listener=listeners[1])()
    with pytest.raises(ConfigError, match=r"client 4 .* is not part of this session"):
        joining.call(7, 0, addresses[0], TOKEN, deadline)
    closes(first, joining.call(2, 0, addresses[0], TOKEN, deadline), listeners[2])
    answering.join(30)
    assert [(each.value, each.error) for each in results] == [("joined", None)]


def test_a_party_that_never_comes_is_named() -> None:
    with listen() as nowhere:
        addresses = [nowhere.getsockname(), nowhere.getsockname()]
    (calls,) = side_by_side(joins(1, addresses, listener=listen(), timeout=0.3))
    assert isinstance(calls.error, PeerLost)
    assert calls.error.peer == 0
    assert "did not answer: is it started?" in str(calls.error)
    (answers,) = side_by_side(joins(0, addresses, listener=listen(), clients=1, timeout=0.3))
    assert isinstance(answers.error, PeerLost)
    assert answers.error.peer == 1
    assert "party 1 did not call in time" in str(answers.error)


def test_a_client_that_never_comes_is_named() -> None:
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]
    for outcome in side_by_side(
        *(joins(p, addresses, listener=listeners[p], clients=1, timeout=0.5) for p in range(2))
    ):
        assert isinstance(outcome.error, PeerLost)
        assert "client 0 did not call in time" in str(outcome.error)


def test_a_stranger_in_the_place_of_a_party_does_not_hold_the_caller() -> None:
    with listen() as mute:
        (calls,) = side_by_side(joins(1, [mute.getsockname(), ("127.0.0.1", 1)], listener=listen(), timeout=0.3))
    assert isinstance(calls.error, PeerLost)
    assert calls.error.peer == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.org", "::1", "", "192.168.1.7"])
def test_plain_sockets_stay_on_this_machine(host: str) -> None:
    with pytest.raises(ConfigError, match="use a loopback address"):
        listen(host)
    with pytest.raises(ConfigError, match="loopback"):
        Tcp.join(1, [(host, 4000), ("127.0.0.1", 0)], token=TOKEN)
    with pytest.raises(ConfigError, match="loopback"):
        TcpClient.join(2, [(host, 4000), ("127.0.0.1", 4001)], token=TOKEN)


def test_a_port_in_use_names_the_cure() -> None:
    with listen() as taken:
        host, port = taken.getsockname()
        with pytest.raises(ConfigError, match=rf"cannot listen on {host}:{port}: .* in use; choose another port"):
            listen(host, port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(ConfigError, match="a port lies in 0"):
        listen("127.0.0.1", port)
    with pytest.raises(ConfigError, match="a port lies in 0"):
        TcpClient.join(2, [("127.0.0.1", port)] * 2, token=TOKEN)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_wait_has_an_end(timeout: float) -> None:
    with pytest.raises(ConfigError, match="a timeout is a positive number"):
        Tcp.join(0, [("127.0.0.1", 0)] * 2, token=TOKEN, timeout=timeout)


@pytest.mark.parametrize(("node", "count"), [(0, 1), (2, 2), (-1, 2)])
def test_a_number_that_is_none(node: int, count: int) -> None:
    with pytest.raises(ConfigError, match="parties are numbered from 0"):
        Tcp.join(node, [("127.0.0.1", 0)] * count, token=TOKEN)
    with pytest.raises(ConfigError, match="have numbers from 2"):
        TcpClient.join(1, [("127.0.0.1", 0)] * 2, token=TOKEN)


def test_the_kernel_may_connect_a_socket_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calling a free port of the ephemeral range again and again, a node meets itself in the end."""
    with listen() as free:
        address = free.getsockname()

    class Bound(socket.socket):
        def connect(self, to: Any) -> None:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(address)
            super().connect(to)

    monkeypatch.setattr(joining.socket, "socket", Bound)
    with pytest.raises(PeerLost, match=r"party 0 at .* did not answer"):
        joining.call(1, 0, address, TOKEN, time.monotonic() + 0.3)


def test_failed_joins_leave_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    test_another_token_is_refused_at_once_and_named_to_both()
    test_a_client_that_never_comes_is_named()
    test_a_party_that_never_comes_is_named()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_dealer_meets_all_parties_and_a_silent_one_is_named() -> None:
    own = listen()
    address = own.getsockname()
    dealer, *channels = side_by_side(
        lambda: await_parties(3, own, TOKEN, 20.0),
        *(lambda p=p: call_dealer(p, address, TOKEN, 20.0) for p in range(3)),
    )
    assert dealer.error is None
    assert sorted(dealer.value) == [0, 1, 2]
    try:
        dealer.value[2].send(b"")
        dealer.value[2].send(b"seed")
        assert [channels[2].value.receive(), channels[2].value.receive()] == [b"", b"seed"]
        with pytest.raises(PeerLost, match=r"the dealer was silent for 0.1 s"):
            channels[1].value.receive(timeout=0.1)
        dealer.value[0].close()
        assert channels[0].value.receive() is None
    finally:
        closes(own, *(each.value for each in channels), *dealer.value.values())  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_parties_meet_in_the_kernel_and_no_other_user_does(monkeypatch: pytest.MonkeyPatch) -> None:
    doors = [listen_in_kernel() for _ in range(3)]
    addresses = [address for _, address in doors]
    assert all(name.startswith("@") and port == 0 for name, port in addresses) and len(set(addresses)) == 3
    met = side_by_side(*(joins(p, addresses, listener=doors[p][0]) for p in range(3)))
    assert [(each.value, each.error) for each in met] == [("joined", None)] * 3

    door, address = listen_in_kernel()
    monkeypatch.setattr(joining.os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(ConfigError, match="start all parties as one user"):
        joining.call(1, 0, address, TOKEN, time.monotonic() + 5)
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect("\0" + address[0][1:])
    stranger.sendall(pack(Kind.HELLO, 1, Stamp(0, bytes(8), ""), len(TOKEN)) + TOKEN)
    with pytest.raises(PeerLost, match="party 1 did not call in time"):
        joining.take_calls(0, door, TOKEN, [1], time.monotonic() + 0.3)
    closes(door, stranger)

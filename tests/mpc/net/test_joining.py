"""How parties meet: strangers, wrong keys, numbers claimed by others or twice, addresses that will not do."""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from mpc.errors import DEALER, ConfigError, PeerLost
from mpc.net import joining
from mpc.net.channel import await_parties, call_dealer
from mpc.net.frames import ANYBODY, DEALER_NODE, HEADER_BYTES, Kind, pack
from mpc.net.gathering import let_in
from mpc.net.joining import listen, listen_in_kernel
from mpc.net.keys import NONCE_BYTES, PROOF_BYTES, Keys, Meeting, keys_for
from mpc.net.tcp import Tcp, TcpClient
from mpc.net.transport import Stamp
from tests.parties.threads import KEYS, side_by_side, values


def joins(
    node: int, addresses: list, *, keys: Keys | None = None, timeout: float = 300.0, **rest: Any
) -> Callable[[], str]:
    def run() -> str:
        Tcp.join(node, addresses, keys=keys or KEYS[node], timeout=timeout, **rest).close()
        return "joined"

    return run


def hello(node: int, words: bytes, kind: Kind = Kind.HELLO) -> bytes:
    return pack(kind, node, Stamp(0, bytes(8), "joining"), len(words)) + words


def key_of(one: int, other: int) -> bytes:
    key = KEYS[one].get(other)
    assert key is not None
    return key


def heard(sock: socket.socket, count: int) -> bytes:
    """The next bytes, or fewer where the other end closes."""
    sock.settimeout(300)
    raw = b""
    with contextlib.suppress(ConnectionResetError):
        while len(raw) < count and (more := sock.recv(count - len(raw))):
            raw += more
    return raw


def closes(*socks: socket.socket) -> None:
    for sock in socks:
        sock.close()


@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n" * 20,
        b"MBnd",
        bytes(4000),
        pack(Kind.HELLO, 1, Stamp(0, bytes(8), ""), 2**60),
        hello(1, bytes(NONCE_BYTES)),
    ],
    ids=["silent", "http", "half", "zeros", "endless", "no proof"],
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
        answering.join(300)
        assert [(each.value, each.error) for each in results] == [("joined", None)] * 3
    finally:
        closes(*strangers)


def test_another_key_is_refused_at_once_and_named_to_both() -> None:
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]
    others = keys_for([(0, 1)])[1]

    def answers_a_call() -> str:
        assert select.select([listeners[0]], [], [], 300)[0]
        return joins(0, addresses, listener=listeners[0], timeout=1.0)()

    answers, calls = side_by_side(
        answers_a_call,
        joins(1, addresses, listener=listeners[1], keys=others, timeout=300.0),
    )
    cure = "hand both processes the key that was made for the two of them"
    assert isinstance(calls.error, ConfigError)
    assert str(calls.error) == f"whoever answers as party 0 did not prove it: {cure}"
    assert isinstance(answers.error, PeerLost)
    assert answers.error.peer == 1
    assert str(answers.error).endswith(f"is it started? (one that called as party 1 did not prove it: {cure})")


@contextmanager
def answering(node: int, door: socket.socket, awaited: list[int]) -> Iterator[list]:
    """Somebody who answers at a door, until it has heard all; what it ended with, once this is left."""
    results: list = []
    deadline = time.monotonic() + 300
    thread = threading.Thread(
        target=lambda: results.extend(
            side_by_side(lambda: joining.take_calls(node, door, KEYS[node], awaited, deadline))
        )
    )
    thread.start()
    yield results
    thread.join(300)
    door.close()


def met(address: Any, node: int, x: bytes) -> tuple[socket.socket, bytes, bytes]:
    """A caller's connection, and nonce and proof of whoever answers, after saying to be `node`."""
    sock = socket.create_connection(address)
    sock.sendall(hello(node, x))
    answer = heard(sock, HEADER_BYTES + NONCE_BYTES + PROOF_BYTES)[HEADER_BYTES:]
    return sock, answer[:NONCE_BYTES], answer[NONCE_BYTES:]


X = bytes(range(NONCE_BYTES))
FORGERIES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "nothing": lambda y, proof: bytes(PROOF_BYTES),
    "its own key": lambda y, proof: Meeting(key_of(2, 0), 1, 0, X, y).calls(),
    "the answer reflected": lambda y, proof: proof,
    "a proof for another node": lambda y, proof: Meeting(key_of(1, 0), 1, 2, X, y).calls(),
    "a proof of another node": lambda y, proof: Meeting(key_of(1, 0), 2, 0, X, y).calls(),
    "a proof of another meeting": lambda y, proof: Meeting(key_of(1, 0), 1, 0, X, X).calls(),
    "an answer instead of a call": lambda y, proof: Meeting(key_of(1, 0), 1, 0, X, y).answers(),
    "a part of the proof": lambda y, proof: Meeting(key_of(1, 0), 1, 0, X, y).calls()[:-1] + b"?",
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_nobody_claims_the_number_of_another(forged: Callable[[bytes, bytes], bytes]) -> None:
    """Node 2, who has keys of its own, calls as party 1, is heard out and let go; then party 1 comes."""
    door = listen()
    address = door.getsockname()
    with answering(0, door, [1]) as results:
        sock, y, proof = met(address, 1, X)
        assert proof == Meeting(key_of(0, 1), 1, 0, X, y).answers()
        sock.sendall(hello(1, forged(y, proof)))
        assert heard(sock, 1) == b""
        real = joining.call(1, 0, address, KEYS[1], time.monotonic() + 300)
    assert list(results[0].value) == [1]
    closes(sock, real, *results[0].value.values())


def test_a_meeting_that_was_recorded_is_of_no_use() -> None:
    """Everything that a true caller sent, sent again to another process with the same keys."""
    recorded = b""
    for again in (False, True):
        door = listen()
        address = door.getsockname()
        with answering(0, door, [1]) as results:
            sock, y, _ = met(address, 1, X)
            recorded = recorded or hello(1, Meeting(key_of(0, 1), 1, 0, X, y).calls())
            sock.sendall(recorded)
            assert heard(sock, HEADER_BYTES) == (b"" if again else hello(0, b""))
            if again:
                closes(joining.call(1, 0, address, KEYS[1], time.monotonic() + 300))
        assert list(results[0].value) == [1]
        closes(sock, *results[0].value.values())


def called(answer: Callable[[bytes], bytes]) -> tuple[BaseException | None, bytes]:
    """How party 1's call of party 0 ends where a stranger answers, given its nonce; all that it then said.

    The stranger hears on until party 1 hangs up.
    """
    said = []

    def stranger() -> None:
        sock, _ = door.accept()
        said.append(heard(sock, HEADER_BYTES + NONCE_BYTES))
        sock.sendall(answer(said[0][HEADER_BYTES:]))
        said.append(heard(sock, 1 << 12))
        sock.close()

    with listen() as door:
        address = door.getsockname()
        caller, _ = side_by_side(lambda: joining.call(1, 0, address, KEYS[1], time.monotonic() + 300), stranger)
    return caller.error, said[1]


Y = bytes(NONCE_BYTES)
ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "an echo": lambda x: hello(0, x + x),
    "an older answer": lambda x: hello(0, Y + Meeting(key_of(0, 1), 1, 0, X, Y).answers()),
    "its own key": lambda x: hello(0, Y + Meeting(key_of(2, 1), 1, 0, x, Y).answers()),
    "a proof of another node": lambda x: hello(0, Y + Meeting(key_of(0, 1), 1, 2, x, Y).answers()),
    "a caller's proof": lambda x: hello(0, Y + Meeting(key_of(0, 1), 1, 0, x, Y).calls()),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_who_answers_in_the_place_of_another_is_shown_nothing(answer: Callable[[bytes], bytes]) -> None:
    error, said = called(answer)
    assert isinstance(error, ConfigError) and "whoever answers as party 0 did not prove it" in str(error)
    assert said == b""


def test_a_caller_is_not_met_by_its_own_answers() -> None:
    """A stranger in the place of party 0 has party 1 itself answer, at its own door, whom it calls."""
    door = listen()
    address = door.getsockname()

    def reflected(x: bytes) -> bytes:
        sock, y, proof = met(address, 0, x)
        sock.close()
        return hello(0, y + proof)

    with answering(1, door, [2]) as results:
        error, said = called(reflected)
        closes(joining.call(2, 1, address, KEYS[2], time.monotonic() + 300))
    assert isinstance(error, ConfigError) and "did not prove it" in str(error)
    assert said == b"" and list(results[0].value) == [2]
    closes(*results[0].value.values())


def test_words_of_one_who_has_proved_nothing_are_not_repeated() -> None:
    error, said = called(lambda x: hello(0, b"send your keys to example.org", Kind.ABORT))
    assert isinstance(error, ConfigError) and said == b""
    assert str(error) == (
        "party 0 turned this process away: party 0 knows no party 1: check the numbers and keys of both"
    )


def test_a_caller_at_another_s_door_and_one_without_a_key() -> None:
    door = listen()
    address = door.getsockname()
    deadline = time.monotonic() + 300
    with answering(2, door, [3]) as results:
        with pytest.raises(ConfigError, match="party 2 answers where party 0 is expected: check the addresses"):
            joining.call(1, 0, address, KEYS[1], deadline)
        stranger = Keys({2: bytes(32)})
        with pytest.raises(ConfigError, match="party 2 knows no party 700"):
            joining.call(700, 2, address, stranger, deadline)
        with pytest.raises(ConfigError, match="party 700 has no key for party 0: hand both"):
            joining.call(700, 0, address, stranger, deadline)
        closes(joining.call(3, 2, address, KEYS[3], deadline))
    closes(*results[0].value.values())


def test_a_number_claimed_twice_is_refused_to_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed, answer = threading.Event(), joining._ByKeys.answer

    def proved(*given: Any, **named: Any) -> str:
        why = answer(*given, **named)
        claimed.set()
        return why

    monkeypatch.setattr(joining._ByKeys, "answer", proved)
    listeners = [listen() for _ in range(3)]
    addresses = [sock.getsockname() for sock in listeners]
    results: list = []
    answering = threading.Thread(
        target=lambda: results.extend(side_by_side(joins(0, addresses, listener=listeners[0])))
    )
    answering.start()
    deadline, first = time.monotonic() + 300, []
    calling = threading.Thread(target=lambda: first.append(joining.call(1, 0, addresses[0], KEYS[1], deadline)))
    calling.start()
    assert claimed.wait(300)
    with pytest.raises(ConfigError, match=r"party 0 turned this process away: party 1 has joined already"):
        joins(1, addresses, listener=listeners[1])()
    with pytest.raises(ConfigError, match=r"client 4 .* is not part of this session"):
        joining.call(7, 0, addresses[0], KEYS[7], deadline)
    closes(joining.call(2, 0, addresses[0], KEYS[2], deadline), listeners[2])
    calling.join(300)
    closes(*first)
    answering.join(300)
    assert [(each.value, each.error) for each in results] == [("joined", None)]


def test_a_party_that_never_comes_is_named() -> None:
    with listen() as nowhere:  # the kernel may give its port to the next one that listens
        addresses, own = [nowhere.getsockname(), nowhere.getsockname()], [listen(), listen()]
    (calls,) = side_by_side(joins(1, addresses, listener=own[1], timeout=0.3))
    assert isinstance(calls.error, PeerLost)
    assert calls.error.peer == 0
    assert "did not answer: is it started?" in str(calls.error)
    (answers,) = side_by_side(joins(0, addresses, listener=own[0], clients=1, timeout=0.3))
    assert isinstance(answers.error, PeerLost)
    assert answers.error.peer == 1
    assert "party 1 did not call in time" in str(answers.error)


def test_a_client_that_never_comes_is_named() -> None:
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]
    for outcome in side_by_side(
        *(joins(p, addresses, listener=listeners[p], clients=1, timeout=2.0) for p in range(2))
    ):
        assert isinstance(outcome.error, PeerLost)
        assert "client 0 did not call in time" in str(outcome.error)


def test_a_stranger_in_the_place_of_a_party_does_not_hold_the_caller() -> None:
    with listen() as mute:
        (calls,) = side_by_side(joins(1, [mute.getsockname(), ("127.0.0.1", 1)], listener=listen(), timeout=0.3))
    assert isinstance(calls.error, PeerLost)
    assert calls.error.peer == 0


def test_bytes_that_drip_do_not_stretch_a_deadline() -> None:
    """A stranger in the place of party 0 says a long answer, byte by byte, until the caller hangs up."""
    dripped = 0

    def drips() -> None:
        nonlocal dripped
        sock, _ = door.accept()
        with sock, contextlib.suppress(OSError):
            for byte in hello(0, bytes(NONCE_BYTES + PROOF_BYTES)):
                sock.sendall(bytes([byte]))
                dripped += 1
                time.sleep(0.1)
            heard(sock, 1 << 12)

    with listen() as door:
        address = door.getsockname()
        caller, _ = side_by_side(lambda: joining.call(1, 0, address, KEYS[1], time.monotonic() + 0.5), drips)
    assert isinstance(caller.error, PeerLost) and "party 0 at" in str(caller.error)
    assert dripped < HEADER_BYTES, "not even its header was waited for to the end"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.org", "::1", "", "192.168.1.7"])
def test_plain_sockets_stay_on_this_machine(host: str) -> None:
    with pytest.raises(ConfigError, match="use a loopback address"):
        listen(host)
    with pytest.raises(ConfigError, match="loopback"):
        Tcp.join(1, [(host, 4000), ("127.0.0.1", 0)], keys=KEYS[1])
    with pytest.raises(ConfigError, match="loopback"):
        TcpClient.join(2, [(host, 4000), ("127.0.0.1", 4001)], keys=KEYS[1])


@pytest.mark.parametrize("family, host", [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET, ""), (socket.AF_INET6, "::")])
def test_a_listener_that_others_may_call_is_refused(family: socket.AddressFamily, host: str) -> None:
    """Whatever name it was bound by, and before anybody is called or heard."""
    own = socket.socket(family)
    own.bind((host, 0))
    own.listen()
    refusal = r"plain sockets stay on this machine: use a loopback address such as 127.0.0.1, not '(0\.0\.0\.0|::)'"
    nowhere = [("127.0.0.1", 1), ("127.0.0.1", own.getsockname()[1])]
    for meets in (
        lambda: joining.take_calls(0, own, KEYS[0], [1], time.monotonic() + 300),
        lambda: dict(await_parties(2, own, KEYS[DEALER_NODE])),
        lambda: Tcp.join(1, nowhere, keys=KEYS[1], listener=own, timeout=1e6),
    ):
        with pytest.raises(ConfigError, match=refusal):
            meets()


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
        TcpClient.join(2, [("127.0.0.1", port)] * 2, keys=KEYS[1])


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_wait_has_an_end(timeout: float) -> None:
    with pytest.raises(ConfigError, match="a timeout is a positive number"):
        Tcp.join(0, [("127.0.0.1", 0)] * 2, keys=KEYS[1], timeout=timeout)


@pytest.mark.parametrize(("node", "count"), [(0, 1), (2, 2), (-1, 2)])
def test_a_number_that_is_none(node: int, count: int) -> None:
    with pytest.raises(ConfigError, match="parties are numbered from 0"):
        Tcp.join(node, [("127.0.0.1", 0)] * count, keys=KEYS[1])
    with pytest.raises(ConfigError, match="have numbers from 2"):
        TcpClient.join(1, [("127.0.0.1", 0)] * 2, keys=KEYS[1])


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
        joining.call(1, 0, address, KEYS[1], time.monotonic() + 0.3)


def test_failed_joins_leave_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))
    test_another_key_is_refused_at_once_and_named_to_both()
    test_a_client_that_never_comes_is_named()
    test_a_party_that_never_comes_is_named()
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_party_takes_the_key_of_another_from_the_dealer() -> None:
    """Nor does a client, which has no key with the dealer at all."""
    own = listen()
    address = own.getsockname()
    with answering(DEALER_NODE, own, [0, 1]) as results:
        for number, keys in ((0, Keys({DEALER_NODE: key_of(1, DEALER_NODE)})), (0, Keys({DEALER_NODE: bytes(32)}))):
            with pytest.raises(ConfigError, match="whoever answers as the dealer did not prove it"):
                call_dealer(number, address, keys)
        sock, y, _ = met(address, 0, X)
        sock.sendall(hello(0, Meeting(key_of(1, DEALER_NODE), 0, DEALER_NODE, X, y).calls()))
        assert heard(sock, 1) == b""
        with pytest.raises(ConfigError, match="party 2 has no key for the dealer"):
            call_dealer(2, address, Keys({0: bytes(32)}))
        parties = values(side_by_side(*[lambda p=p: call_dealer(p, address, KEYS[p]) for p in (0, 1)]))
    closes(sock, *parties, *results[0].value.values())  # type: ignore[arg-type]


def test_the_dealer_meets_all_parties_and_a_silent_one_is_named() -> None:
    own = listen()
    address = own.getsockname()
    dealer, *channels = side_by_side(
        lambda: dict(await_parties(3, own, KEYS[DEALER_NODE], 300.0)),
        *(lambda p=p: call_dealer(p, address, KEYS[p], 300.0) for p in range(3)),
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


@pytest.mark.parametrize("leaves", [False, True], ids=["frozen", "killed"])
def test_a_dealer_that_says_no_last_word_is_named(leaves: bool) -> None:
    """It has proved who it is, and waits for nobody: a party that waits for it is no witness of another party."""
    own, over = listen(), threading.Event()

    def dealer() -> None:
        door = joining._ByKeys(DEALER_NODE, KEYS[DEALER_NODE], ANYBODY, [0, 1])  # so its last word waits
        _, sock = next(let_in(door, own, [0, 1], time.monotonic() + 300))
        closes(own)
        assert leaves or over.wait(300)
        closes(sock)

    def party() -> None:
        try:
            call_dealer(0, own.getsockname(), KEYS[0], 300.0 if leaves else 0.5)
        finally:
            over.set()

    _, called = side_by_side(dealer, party)
    assert isinstance(called.error, PeerLost) and (called.error.peer, called.error.witness) == (DEALER, False)
    words = "the dealer at .* did not answer: is it started" if leaves else "the dealer answered, and no more came"
    assert re.match(words, str(called.error))


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
        joining.call(1, 0, address, KEYS[1], time.monotonic() + 5)
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect("\0" + address[0][1:])
    stranger.sendall(hello(1, bytes(NONCE_BYTES)))
    with pytest.raises(PeerLost, match="party 1 did not call in time"):
        joining.take_calls(0, door, KEYS[0], [1], time.monotonic() + 0.3)
    closes(door, stranger)


def test_a_party_that_is_frozen_keeps_nobody_from_the_others() -> None:
    """It answered party 1 and no more: the client meets party 1 all the same, and is not missed there."""
    listeners, freezes, over = [listen() for _ in range(2)], threading.Event(), threading.Event()
    addresses = [sock.getsockname() for sock in listeners]

    def frozen() -> None:
        for _, sock in joining.calls(0, listeners[0], KEYS[0], [1, 2], time.monotonic() + 300):
            freezes.set()
            assert over.wait(300)
            sock.close()

    def meets() -> None:
        try:
            Tcp.join(1, addresses, keys=KEYS[1], clients=1, listener=listeners[1], timeout=300).close()
        finally:
            over.set()

    def calls() -> None:
        assert freezes.wait(300)
        TcpClient.join(2, addresses, keys=KEYS[2], timeout=300).close()

    outcomes = side_by_side(frozen, meets, calls)
    assert [outcome.error for outcome in outcomes] == [None] * 3


def test_a_wrong_key_is_said_at_once_by_one_that_waits_for_others_too() -> None:
    listeners = [listen() for _ in range(3)]
    addresses = [sock.getsockname() for sock in listeners]
    others, over = keys_for([(0, 1), (1, 2)])[1], threading.Event()

    def calls() -> None:
        try:
            joins(1, addresses, listener=listeners[1], keys=others, timeout=300.0)()
        finally:
            over.set()

    def answers() -> None:
        for caller, sock in joining.calls(0, listeners[0], KEYS[0], [1], time.monotonic() + 300, beside=left):
            raise AssertionError(caller, sock)

    def left() -> None:
        if over.is_set():
            raise ConfigError("nobody waits any more")

    _, outcome = side_by_side(answers, calls)
    assert isinstance(outcome.error, ConfigError) and "whoever answers as party 0 did not prove it" in str(
        outcome.error
    )
    closes(*listeners)


def test_nobody_goes_on_before_all_have_called_and_the_one_who_is_missing_is_named() -> None:
    """Party 1 never comes: party 0, which waits for it, is not missed by party 2 and the client, who have met it."""
    listeners = [listen() for _ in range(3)]
    addresses = [sock.getsockname() for sock in listeners]

    def client() -> None:
        TcpClient.join(3, addresses, keys=KEYS[3], timeout=3.0).close()

    outcomes = side_by_side(
        *(joins(node, addresses, clients=1, listener=listeners[node], timeout=3.0) for node in (0, 2)), client
    )
    for outcome in outcomes:
        assert isinstance(outcome.error, PeerLost) and outcome.error.peer == 1, outcome
    closes(listeners[1])


def test_one_that_was_met_and_left_again_is_not_waited_for() -> None:
    """Killed between its proof and its welcome, as any party may be: an error that is declared, and at once."""
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]

    def leaves() -> None:
        door = joining._ByKeys(0, KEYS[0], ANYBODY, [1, 2])
        meeting = let_in(door, listeners[0], [1, 2], time.monotonic() + 300)
        _, sock = next(meeting)
        closes(listeners[0], sock)

    left, calls = side_by_side(leaves, joins(1, addresses, listener=listeners[1], timeout=600.0))
    assert left.error is None and type(calls.error) is PeerLost and calls.error.peer == 0
    assert "party 0 left before all had met" in str(calls.error)


def test_who_has_met_one_that_still_awaits_another_is_not_in_its_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners, waits = [listen() for _ in range(2)], threading.Event()
    addresses = [sock.getsockname() for sock in listeners]
    late, alone, times = list[str](), threading.Event(), list[int]()

    def client(node: int) -> None:
        if node == 3:
            assert waits.wait(300)
            alone.wait(0.3)
            late.append("calls")
        TcpClient.join(node, addresses, keys=KEYS[node], timeout=300.0).close()
        assert late, "the first one went on alone"

    def proved(door: Any, greeting: Any, *, awaited: bool) -> str:
        times.append(greeting.claims)
        if times.count(2) == 2:  # client 2 is known to both parties
            waits.set()
        return answer(door, greeting, awaited=awaited)

    answer = joining._ByKeys.answer
    monkeypatch.setattr(joining._ByKeys, "answer", proved)
    parties = [joins(node, addresses, clients=2, listener=listeners[node], timeout=300.0) for node in (0, 1)]
    assert [each.error for each in side_by_side(*parties, lambda: client(2), lambda: client(3))] == [None] * 4


def test_a_party_that_still_awaits_another_says_so_to_those_that_have_gone_on() -> None:
    """A client that froze between two parties: the one that still awaits it is not missed, and names it."""
    listeners = [listen() for _ in range(2)]
    addresses, over = [sock.getsockname() for sock in listeners], threading.Event()

    def frozen() -> None:
        """It meets party 0 alone."""
        peers = joining.meet(2, {0: addresses[0]}, None, (), KEYS[2], time.monotonic() + 300)
        assert over.wait(300)
        closes(*peers.values())

    def party(node: int) -> None:
        """Party 1 awaits the client for longer than party 0 has patience in a round."""
        starting = 300.0 if node == 0 else 4.5
        try:
            mesh = Tcp.join(
                node, addresses, keys=KEYS[node], clients=1, listener=listeners[node], timeout=3.0, starting=starting
            )
            with contextlib.closing(mesh):
                mesh.exchange(Stamp(0, bytes(8), "first"), np.zeros((1, 0), np.uint8), {})
        finally:
            if node:
                over.set()

    first, second, _ = side_by_side(lambda: party(0), lambda: party(1), frozen)
    assert isinstance(second.error, PeerLost) and second.error.peer == 2 and "did not call in time" in str(second.error)
    assert isinstance(first.error, PeerLost) and first.error.peer == 1 and "silent" not in str(first.error)

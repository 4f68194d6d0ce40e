"""A mesh of TLS: the same results as in memory; strangers of every kind are refused in a line, and the run goes on."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpc.client import Receive, Send, serve
from mpc.errors import ConfigError, PeerLost
from mpc.net import door, gathering, hello, mesh, tuning
from mpc.net.frames import Kind, pack
from mpc.net.hello import Hello
from mpc.net.member import Member, TlsSocket
from mpc.net.memory import Memory
from mpc.net.tls import Tls, TlsClient, listen_on
from mpc.net.transport import Stamp
from mpc.rounds import Input, Reveal
from mpc.session import Session
from tests.parties.members import identity, impostor, session_of
from tests.parties.processes import PATIENCE
from tests.parties.programs import every_operation, large, rounds, seeded
from tests.parties.threads import Outcome, over_tls, side_by_side, values


def test_it_gives_the_shares_of_memory(parties: int) -> None:
    told = values(over_tls(*session_of(parties), every_operation))
    alone = every_operation(seeded(Memory(parties)))
    assert {party: words for part in told for party, words in part["shares"].items()} == alone["shares"]
    assert all(part["learned"] == alone["learned"] and part["cost"] == alone["cost"] for part in told)


def test_large_empty_and_many_messages(parties: int) -> None:
    assert values(over_tls(*session_of(parties), large)) == [large(seeded(Memory(parties)))] * parties


def asked(session: Session) -> Any:
    def program() -> Any:
        x = yield Input("customer", (2,), 20)
        yield Reveal(x + x, to="customer", what="double", why="it asked")

    session.run(program())
    return session.meter.total.client_hops


def customer() -> Any:
    yield Send([1.5, -2.0], 20)
    return (yield Receive((2,), 20)).tolist()


def test_a_client_calls_all_parties_and_listens_nowhere(parties: int) -> None:
    members, listeners = session_of(parties, ["customer"])
    assert members[parties].awaited == [] and members[parties].called == list(range(parties))
    *hops, told = values(over_tls(members, listeners, asked, clients={"customer": customer}))
    assert told == [3.0, -4.0] and hops == [2] * parties


def test_a_party_that_leaves_or_hangs_is_named(parties: int) -> None:
    def leaves(session: Session) -> Any:
        for sock in session.transport._peers.values():  # type: ignore[attr-defined]
            sock.shutdown(socket.SHUT_RDWR)

    def plays(session: Session) -> Any:
        session.run(rounds(session, 3))

    last = parties - 1
    *others, _ = over_tls(*session_of(parties), {**dict.fromkeys(range(last), plays), last: leaves}, timeout=100.0)
    for outcome in others:
        assert isinstance(outcome.error, PeerLost) and outcome.error.peer == last, outcome


@pytest.mark.parametrize("shape", [(4,), (1 << 17,)], ids=["small", "large"])
def test_a_round_that_stands_is_said_with_its_place(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "_STALLED", 0.2)
    said, heard = list[str](), threading.Event()

    def log(line: str) -> None:
        said.append(line)
        if line.startswith("round 1 has stood"):
            heard.set()

    def late(session: Session) -> Any:
        assert heard.wait(300)
        session.run(rounds(session, 1, shape))

    def plays(session: Session) -> Any:
        session.run(rounds(session, 1, shape))

    values(over_tls(*session_of(2), {0: plays, 1: late}, log=log))
    line = next(line for line in said if line.startswith("round 1 has stood for "))
    assert "rounds:" in line and line.endswith(" bytes between this one and party 1 are due"), line


@contextlib.contextmanager
def waiting(member: Member, listener: socket.socket) -> Iterator[tuple[list[str], list[Outcome]]]:
    """Party 0, which waits for party 1 while others call; what it said, and what it ended with once all is over."""
    said: list[str] = []
    results: list[Outcome] = []
    joins = lambda: Tls.join(member, listener, timeout=300, log=said.append).close()  # noqa: E731
    thread = threading.Thread(target=lambda: results.extend(side_by_side(joins)))
    thread.start()
    yield said, results
    thread.join(300)


def refusals(said: list[str], count: int = 1) -> list[str]:
    """Lines on who was refused, once there are as many."""
    pause = threading.Event()
    for _ in range(400):
        if len(found := [line for line in said if line.startswith("refused")]) >= count:
            return found
        pause.wait(0.05)
    raise AssertionError(said)


def dialled(
    member: Member, address: Any, maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, bare: bool = False
) -> None:
    """Call as this member does; bare: without its certificate."""
    context = member.context([0], ssl.PROTOCOL_TLS_CLIENT)
    if bare:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if maximum != ssl.TLSVersion.TLSv1_3:
        context.minimum_version = context.maximum_version = maximum
    with contextlib.suppress(OSError), context.wrap_socket(socket.create_connection(address)) as sock:
        sock.settimeout(300)
        while sock.recv(1 << 12):
            pass


def says(member: Member, address: Any, raw: Callable[[Hello], bytes]) -> None:
    """Call as this member does, and say something in place of its hello."""
    context = member.context([0], ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(OSError), context.wrap_socket(socket.create_connection(address)) as sock:
        sock.settimeout(300)
        sock.sendall(raw(member.hello(0)))
        while sock.recv(1 << 12):
            pass


def framed(words: bytes, kind: Kind = Kind.HELLO, length: int | None = None) -> bytes:
    return pack(kind, 1, Stamp(0, bytes(8), "joining"), len(words) if length is None else length) + words


def plain(raw: bytes) -> Callable[[Member, Any], None]:
    def call(_: Member, address: Any) -> None:
        with contextlib.suppress(OSError), socket.create_connection(address) as sock:
            sock.sendall(raw)
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(300)
            while sock.recv(1 << 12):
                pass

    return call


def echoed(_: Member, address: Any) -> None:
    """Give a listener its own bytes back; of a server that waits there are none, so of a client's beginning."""
    first, second = socket.create_connection(address), socket.create_connection(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(OSError), first, second:
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing).do_handshake()
        first.sendall(outgoing.read())
        first.settimeout(300)
        second.sendall(first.recv(1 << 14))
        second.settimeout(300)
        second.recv(1 << 14)


def replayed(member: Member, address: Any) -> None:
    """All that a peer said, hello and all, is recorded on its way, and said once more by somebody else."""
    recorded, relay = bytearray(), socket.create_server(("127.0.0.1", 0))

    def relays() -> None:
        outer, _ = relay.accept()
        with outer, socket.create_connection(address) as inner:
            for source, to in ((outer, inner), (inner, outer)):
                source.settimeout(300)
                threading.Thread(target=pump, args=(source, to, source is outer), daemon=True).start()
            over.wait(300)

    def pump(source: socket.socket, to: socket.socket, records: bool) -> None:
        with contextlib.suppress(OSError):
            while more := source.recv(1 << 16):
                recorded.extend(more if records else b"")
                to.sendall(more)

    over = threading.Event()
    threading.Thread(target=relays, daemon=True).start()
    context, words = member.context([0], ssl.PROTOCOL_TLS_CLIENT), member.hello(0).pack()
    with relay, context.wrap_socket(socket.create_connection(relay.getsockname())) as sock:
        sock.settimeout(300)
        sock.sendall(framed(words))
        assert sock.recv(4) == b"MBnd", "it was let in"
        over.set()
    plain(bytes(recorded))(member, address)


STRANGERS: dict[str, tuple[Callable[[Member, Any], None], str]] = {
    "no certificate": (lambda m, a: dialled(m, a, bare=True), "shows no certificate"),
    "another's certificate": (lambda m, a: dialled(impostor(m, 9), a), "not of a peer in this place"),
    "the listener's own certificate": (lambda m, a: dialled(impostor(m, 0), a), "not of a peer in this place"),
    "TLS 1.2": (lambda m, a: dialled(m, a, ssl.TLSVersion.TLSv1_2), "older TLS than 1.3"),
    "plain TCP": (plain(b"MBnd" + bytes(200)), "no TLS"),
    "HTTP": (plain(b"GET / HTTP/1.1\r\n\r\n"), "HTTP"),
    "silence": (plain(b""), "left in the middle"),
    "its own bytes": (echoed, "says things of TLS out of turn"),
    "another number": (
        lambda m, a: says(m, a, lambda own: framed(replace(own, node=2).pack())), "calls itself node 2 and means node 0"
    ),
    "for another": (
        lambda m, a: says(m, a, lambda own: framed(replace(own, to=2).pack())), "calls itself node 1 and means node 2"
    ),
    "another session": (
        lambda m, a: says(m, a, lambda own: framed(replace(own, session="\x1b[2Jlast").pack())), "in session '?[2Jlast'"
    ),
    "a hello of another certificate": (
        lambda m, a: says(m, a, lambda own: framed(replace(own, mine=own.yours).pack())), "another certificate than"
    ),
    "a hello of before": (lambda m, a: says(m, a, lambda own: framed(_old(own))), "another certificate than"),
    "a hello that was recorded": (replayed, "does not speak TLS as it should"),
    "4 GB": (lambda m, a: says(m, a, lambda own: framed(b"", length=1 << 32)), "no hello of at most"),
    "64 kB": (lambda m, a: says(m, a, lambda own: framed(b"[" * hello.LIMIT)), "no hello of this release"),
    "64 kB and a byte": (
        lambda m, a: says(m, a, lambda own: framed(b"[" * (hello.LIMIT + 1))), "no hello of at most 65,536 bytes"
    ),
    "garbage": (lambda m, a: says(m, a, lambda own: bytes(range(256)) * 40), "no message of this protocol"),
    "no JSON": (lambda m, a: says(m, a, lambda own: framed(b"[" * 5000)), "no hello of this release"),
    "not a number": (
        lambda m, a: says(m, a, lambda own: framed(own.pack().replace(b'"arms": 3', b'"arms": 1e999'))), "no hello"
    ),
    "data": (lambda m, a: says(m, a, lambda own: framed(own.pack(), Kind.DATA)), "no hello of at most"),
}  # fmt: skip


def _old(own: Hello) -> bytes:
    """What somebody recorded of a node that had another key then."""
    return replace(own, nonce="0" * 64, mine=hello.digest_of({})).pack()


@pytest.mark.parametrize(("call", "reason"), STRANGERS.values(), ids=STRANGERS)
def test_strangers_are_refused_in_a_line_and_the_run_goes_on(
    call: Callable[[Member, Any], None], reason: str
) -> None:  # fmt: skip
    members, listeners = session_of(3)
    address = listeners[0].getsockname()
    with waiting(members[0], listeners[0]) as (said, results):
        call(members[1], address)
        lines = refusals(said)
        rest = [lambda p=p: Tls.join(members[p], listeners[p], timeout=300).close() for p in (1, 2)]
        others = side_by_side(*rest)
    assert [outcome.error for outcome in (*others, *results)] == [None] * 3
    assert any(reason in line for line in lines) and lines[0].startswith("refused 127.0.0.1:"), lines
    assert all(line.isprintable() and len(line) < 300 for line in said)


def test_of_more_strangers_than_fill_a_log_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert door._REFUSED == 1000
    monkeypatch.setattr(door, "_REFUSED", 3)
    members, listeners = session_of(2)
    with waiting(members[0], listeners[0]) as (said, results):
        for _ in range(5):
            plain(b"GET / HTTP/1.1\r\n\r\n")(members[1], listeners[0].getsockname())
        joined = side_by_side(lambda: Tls.join(members[1], listeners[1], timeout=300).close())
    lines = [line for line in said if line.startswith("refused")]
    assert [line.endswith("; of others nothing is said from here on") for line in lines] == [False, False, True], lines
    assert [outcome.error for outcome in (*joined, *results)] == [None, None]


def test_a_party_that_no_node_calls_refuses_whoever_does() -> None:
    """The last of a session without clients calls all others; it ended with who called it."""
    members, listeners = session_of(2)
    with waiting(members[1], listeners[1]) as (said, results):
        plain(b"GET / HTTP/1.1\r\n\r\n")(members[0], listeners[1].getsockname())
        lines = refusals(said)
        others = side_by_side(lambda: Tls.join(members[0], listeners[0], timeout=300).close())
    assert [outcome.error for outcome in (*others, *results)] == [None] * 2
    assert lines[0].startswith("refused 127.0.0.1:") and lines[0].endswith(": no node calls this one")


def test_whoever_says_nothing_or_little_keeps_nobody_out() -> None:
    """100 who say nothing, and some who give a byte now and then: the eldest are turned out, nobody is delayed.

    The last one is a peer whose hello drips.
    """
    members, listeners = session_of(2)
    address = listeners[0].getsockname()
    with waiting(members[0], listeners[0]) as (said, results):
        strangers = [socket.create_connection(address) for _ in range(100)]
        context, over = members[1].context([0], ssl.PROTOCOL_TLS_CLIENT), threading.Event()
        drops = [*strangers[40::5], context.wrap_socket(socket.create_connection(address))]

        def drips() -> None:
            for byte in framed(members[1].hello(0).pack()):
                for stranger in drops:
                    with contextlib.suppress(OSError):
                        stranger.sendall(bytes([byte]))
                if over.wait(0.02):
                    break

        dripping = threading.Thread(target=drips)
        dripping.start()
        joined = side_by_side(lambda: Tls.join(members[1], listeners[1], timeout=300).close())
        assert len(refusals(said, 36)) >= 36, "64 are heard at once"
        over.set()
        dripping.join(300)
        for stranger in (*strangers, *drops):
            stranger.close()
    assert [outcome.error for outcome in (*joined, *results)] == [None, None]


def test_a_stranger_on_the_port_before_us_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens there shows another certificate, then leaves; the caller says what it saw, and goes on calling."""
    monkeypatch.setattr(door, "_REMIND", 0.1)
    members, listeners = session_of(2)
    address = listeners[0].getsockname()
    listeners[0].close()
    said: list[str] = []
    seen = f"party 0 ({address[0]}:{address[1]} shows a certificate that is not of a peer in this place)"
    stranger = socket.create_server(address)
    stranger.settimeout(300)
    context = impostor(members[0], 9).context([1], ssl.PROTOCOL_TLS_SERVER)

    def squats() -> None:
        with stranger:
            while not any(seen in line for line in list(said)):
                sock, _ = stranger.accept()
                with contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as served:
                    served.recv(1)

    def comes_late() -> None:
        squats()
        with contextlib.suppress(ConfigError):
            threading.Event().wait(0.2)
        Tls.join(members[0], listen_on(*address), timeout=300).close()

    outcomes = side_by_side(
        comes_late, lambda: Tls.join(members[1], listeners[1], timeout=300, log=said.append).close()
    )
    assert [outcome.error for outcome in outcomes] == [None, None]


@contextlib.contextmanager
def listening(context: ssl.SSLContext, listener: socket.socket, answer: bytes) -> Iterator[None]:
    """Whoever calls there meets this context, and is told this once it has said something."""
    over = threading.Event()

    def answers() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with context.wrap_socket(sock, server_side=True) as served:
                    served.settimeout(300)
                    while not select.select([served], [], [], 0.05)[0] and not over.is_set():
                        pass
                    served.sendall(answer)
                    over.wait(0.2)

    listener.settimeout(0.1)
    thread = threading.Thread(target=answers)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(300)
        listener.close()


def test_an_answer_to_another_hello_is_none() -> None:
    """A peer's word of another meeting, from whoever has its key: it echoes another nonce."""
    members, listeners = session_of(2)
    before = framed(members[0].hello(1, echo=members[1].hello(0).nonce).pack())
    refused = pytest.raises(ConfigError, match="party 0 answers another hello than this one")
    with listening(members[0].context([1], ssl.PROTOCOL_TLS_SERVER), listeners[0], before), refused:
        Tls.join(members[1], listeners[1], timeout=10)


def test_a_certificate_that_is_trusted_is_another_party_s_all_the_same() -> None:
    """Whatever OpenSSL takes for proven: what counts is that it is the one of the node that is called."""
    members, listeners = session_of(2)
    own, said = door.Door(members[1], 2.0, lambda _: None), impostor(members[0], 9)
    own._calls[0].load_verify_locations(cadata=identity(9)[1].pem)
    answer = framed(replace(said, node=0).hello(1).pack())
    refused = pytest.raises(PeerLost, match="shows a certificate that is not party 0's")
    with listening(said.context([1], ssl.PROTOCOL_TLS_SERVER), listeners[0], answer), refused:
        own.call(0, time.monotonic() + 2.0)


def test_no_router_forgets_a_link() -> None:
    """Some forget one that is silent for four minutes."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        tuning.prepare(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) and tuning.KEEP_ALIVE < 240
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert 0 < sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 240


def test_a_refusal_names_a_client_as_it_is_called() -> None:
    members, listeners = session_of(2, ["puller"])
    with waiting(members[0], listeners[0]) as (said, results):
        says(members[2], listeners[0].getsockname(), lambda own: bytes(range(256)) * 40)
        lines = refusals(said)
        rest = [
            lambda: Tls.join(members[1], listeners[1], timeout=300).close(),
            lambda: TlsClient.join(members[2], timeout=300).close(),
        ]
        others = side_by_side(*rest)
    assert [outcome.error for outcome in (*others, *results)] == [None] * 3
    assert ": what puller sends is no message of this protocol" in lines[0]


def test_both_hear_on_what_they_disagree_with_both_values() -> None:
    members, listeners = session_of(2)
    members[1] = replace(members[1], public={"arms": 4, "eps": 0.1})
    outcomes = over_tls(members, listeners, lambda session: None)
    first, second = (str(outcome.error) for outcome in outcomes)
    assert all(isinstance(outcome.error, ConfigError) for outcome in outcomes)
    assert "party 1 disagrees on what is public: arms = 4 at party 1, 3 here; eps = 0.1 at party 1, nothing" in first
    assert "party 0 disagrees on what is public: arms = 3 at party 0, 4 here" in second


@pytest.mark.parametrize("other", [1, 4])
def test_all_hear_on_what_two_disagree(other: int) -> None:
    """Also those that have no link with who does not agree: nobody waits until time is over."""
    members, listeners = session_of(3, ["puller", "payer"])
    members[other] = replace(members[other], public={"arms": 4})
    clients = {name: lambda link: None for name in ("puller", "payer")}
    outcomes = over_tls(members, listeners, lambda session: None, clients=clients)
    for outcome in outcomes:
        assert isinstance(outcome.error, ConfigError), outcome.error
        assert "disagrees on what is public: arms = " in str(outcome.error)
    heard = [str(outcome.error) for outcome in outcomes if "the start is over for all: " in str(outcome.error)]
    assert all(" has ended: " in each and each.count("has ended") == 1 for each in heard)


def test_who_ends_a_start_leaves_one_that_never_stops_talking() -> None:
    ours, theirs = socket.socketpair()
    over, heard = threading.Event(), list[bytes]()

    def talks() -> None:
        with contextlib.suppress(OSError):
            heard.append(theirs.recv(1 << 16))
            while not over.is_set():
                theirs.sendall(bytes(1 << 10))

    with ours, theirs:
        talker = threading.Thread(target=talks, daemon=True)
        talker.start()
        of = SimpleNamespace(aware=set(), _member=SimpleNamespace(node=0))
        (ended,) = side_by_side(lambda: door.Door.ended(of, door.StartOver("here", "all hear"), {1: ours}))  # type: ignore[arg-type]
        over.set()
        ours.close()
        talker.join(PATIENCE)
    assert ended.error is None and of.aware == {1} and heard[0].endswith(b"all hear")


def test_who_calls_when_two_have_disagreed_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_LAST_WORDS", 30.0)
    members, listeners = session_of(3)
    members[1] = replace(members[1], public={"arms": 4})
    ended = threading.Event()

    def said(line: str) -> None:
        if "those who call in the next 30 s hear it" in line:
            ended.set()

    def late() -> None:
        assert ended.wait(300)
        Tls.join(members[2], listeners[2], timeout=300)

    joins = [lambda at=at: Tls.join(members[at], listeners[at], timeout=300, log=said) for at in range(2)]
    outcomes = side_by_side(*joins, late)
    assert all(isinstance(outcome.error, ConfigError) for outcome in outcomes), outcomes
    assert re.match(
        r"the start is over for all: party . has ended: .* here(: agree on one, and start again)?$",
        str(outcomes[2].error),
    )


def test_another_session_is_said_to_who_calls() -> None:
    members, listeners = session_of(2)
    other = replace(members[1], session="of last week")
    with waiting(members[0], listeners[0]) as (said, results):
        called = side_by_side(lambda: Tls.join(other, listen_on("127.0.0.1", 0), timeout=300))
        joined = side_by_side(lambda: Tls.join(members[1], listeners[1], timeout=300).close())
    assert "party 1 is in session 'of last week', this one in 'tests'" in refusals(said)[0]
    assert isinstance(called[0].error, ConfigError) and "turned this process away" in str(called[0].error)
    assert joined[0].error is None and results[0].error is None


def test_who_is_missing_is_listed() -> None:
    members, listeners = session_of(3, ["puller"])
    for sock in (listeners[0], listeners[2]):
        sock.close()
    said: list[str] = []
    with pytest.raises(PeerLost) as raised:
        Tls.join(members[1], listeners[1], timeout=4.0, log=said.append)
    text = str(raised.value)
    assert text.startswith("not all are there after 4 s: party 0 (127.0.0.1:") and raised.value.peer == 0
    assert text.endswith("does not answer (Connection refused)), party 2 (has not called), puller (has not called)")
    assert said and said[0].startswith("waiting for party 0 (")
    with pytest.raises(PeerLost, match=r"not all are there after 0.5 s: party 0 .*, party 1 .*, party 2 "):
        TlsClient.join(members[3], timeout=0.5)


def test_whoever_leaves_before_all_are_there_is_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The party that others call ends as soon as party 1 has met it, and is started again while party 1 waits."""
    members, listeners = session_of(2, ["customer"])
    first, both_met = threading.Event(), threading.Event()
    real = door.Door.answer

    def answer(*given: Any, **named: Any) -> str:
        why = real(*given, **named)
        if given[0]._member.node == 1:
            both_met.set()
        elif not first.is_set():
            first.set()
            raise ConfigError("it ends early")
        return why

    monkeypatch.setattr(door.Door, "answer", answer)
    address = listeners[0].getsockname()

    def party_1() -> Any:
        with seeded(Tls.join(members[1], listeners[1], timeout=300), roles=("customer",)) as session:
            return asked(session)

    def others() -> Any:
        with pytest.raises(ConfigError, match="it ends early"):
            Tls.join(members[0], listeners[0], timeout=300)
        return serve(TlsClient.join(members[2], timeout=300), customer())

    def party_0() -> Any:
        assert both_met.wait(300)
        with seeded(Tls.join(members[0], listen_on(*address), timeout=300), roles=("customer",)) as session:
            return asked(session)

    outcomes = side_by_side(party_1, others, party_0)
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert [outcome.value for outcome in outcomes] == [2, [3.0, -4.0], 2]


def test_whoever_has_met_all_waits_while_others_still_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The customer reaches party 0 alone and ends; party 0 had met all by then, and waits for the one that follows."""
    monkeypatch.setattr(door, "_REMIND", 0.2)
    members, listeners = session_of(2, ["customer"])
    with contextlib.closing(listen_on("127.0.0.1", 0)) as nobody:
        nowhere = replace(members[2].peers[1], address=nobody.getsockname())
    astray = replace(members[2], peers={**members[2].peers, 1: nowhere})
    said: list[str] = []

    def party(node: int) -> Any:
        joined = Tls.join(members[node], listeners[node], timeout=300, log=said.append if node == 0 else lambda _: None)
        with seeded(joined, roles=("customer",)) as session:
            return asked(session)

    def comes_again() -> Any:
        with pytest.raises(PeerLost, match=r"not all are there after 3 s: .*party 1 \(127.0.0.1:.* does not answer"):
            TlsClient.join(astray, timeout=3)
        return serve(TlsClient.join(members[2], timeout=300), customer())

    outcomes = side_by_side(lambda: party(0), lambda: party(1), comes_again)
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert [outcome.value for outcome in outcomes] == [2, 2, [3.0, -4.0]]
    assert any("party 1 (is there, and waits for customer)" in line for line in said), said


def test_a_client_hears_which_other_client_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no link with it: the parties say so, and it says so itself when they have given up."""
    monkeypatch.setattr(door, "_REMIND", 0.2)
    over, both = threading.Event(), [f"party {node} (is there, and waits for clerk)" for node in range(2)]
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + 1e6 * over.is_set(), sleep=time.sleep
    )  # time is over when both said so
    monkeypatch.setattr(gathering, "time", clock)
    members, listeners = session_of(2, ["customer", "clerk"])

    def hear(line: str) -> None:
        if all(words in line for words in both):
            over.set()

    outcomes = side_by_side(
        *(lambda node=node: Tls.join(members[node], listeners[node], timeout=300) for node in range(2)),
        lambda: TlsClient.join(members[2], timeout=300, log=hear),
    )
    assert over.is_set(), outcomes
    for outcome in outcomes:
        assert isinstance(outcome.error, PeerLost) and "clerk" in str(outcome.error), outcome
    waits = r"party 1 \((is there, and waits|.*; it had waited) for clerk\)"  # it may have given up first
    assert re.search(waits, str(outcomes[2].error)), outcomes[2].error


def test_a_client_that_is_started_twice_takes_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first connection still stands, as after a power cut, when it calls again; party 1 comes after both."""
    members, listeners = session_of(2, ["customer"])
    calls, twice, real = list[str](), threading.Event(), door.Door.answer

    def answer(*given: Any, **named: Any) -> str:
        calls.append(real(*given, **named))
        if len(calls) == 2:
            twice.set()
        return calls[-1]

    monkeypatch.setattr(door.Door, "answer", answer)

    def party_1() -> None:
        assert twice.wait(300)
        Tls.join(members[1], listeners[1], timeout=300).close()

    with waiting(members[0], listeners[0]) as (_, results):
        context = members[2].context([0], ssl.PROTOCOL_TLS_CLIENT)
        words = members[2].hello(0).pack()
        with context.wrap_socket(socket.create_connection(listeners[0].getsockname())) as sock:
            sock.settimeout(300)
            sock.sendall(pack(Kind.HELLO, 2, Stamp(0, bytes(8), "joining"), len(words)) + words)
            assert sock.recv(4) == b"MBnd"
            joined = side_by_side(party_1, lambda: TlsClient.join(members[2], timeout=300).close())
    assert [outcome.error for outcome in (*joined, *results)] == [None] * 3


def test_a_session_needs_all_its_certificates_each_of_one_node() -> None:
    members, listeners = session_of(2)
    with pytest.raises(ConfigError, match="party 1 is no peer here"):
        Tls.join(replace(members[0], peers={}), listeners[0])
    twice = {1: replace(members[0].peers[1], certificate=members[0].certificate)}
    with pytest.raises(ConfigError, match="party 1 and party 0 have one certificate"):
        Tls.join(replace(members[0], peers=twice), listeners[0])
    listeners[1].close()


def test_a_secret_stays_out_of_what_is_shown() -> None:
    members, listeners = session_of(2)
    for sock in listeners:
        sock.close()
    assert "key_file" not in repr(members[0])


def test_only_records_of_tls_travel_and_shares_do_not() -> None:
    """What a wire between the two carries: a handshake, then records of application data alone."""
    members, listeners = session_of(2)
    real, relay = listeners[0].getsockname(), socket.create_server(("127.0.0.1", 0))
    seen: list[bytearray] = [bytearray(), bytearray()]

    def pump(source: socket.socket, to: socket.socket, into: bytearray) -> None:
        with contextlib.suppress(OSError):
            while more := source.recv(1 << 16):
                into += more
                to.sendall(more)
            to.shutdown(socket.SHUT_WR)

    def relays() -> None:
        outer, _ = relay.accept()
        inner = socket.create_connection(real)
        back = threading.Thread(target=pump, args=(inner, outer, seen[1]), daemon=True)
        back.start()
        pump(outer, inner, seen[0])
        back.join(300)

    threading.Thread(target=relays, daemon=True).start()
    peer = members[1].peers[0]
    members[1] = replace(members[1], peers={0: replace(peer, address=relay.getsockname())})
    values(over_tls(members, listeners, lambda session: session.run(rounds(session, 3))))
    for raw in map(bytes, seen):
        kinds, at = [], 0
        while at + 5 <= len(raw):
            kind, _, length = struct.unpack_from("!BHH", raw, at)
            kinds.append(kind)
            at += 5 + length
        assert at == len(raw) and set(kinds) <= {20, 22, 23} and kinds.count(22) == 1, kinds
        assert b"MBnd" not in raw and b"tests" not in raw


def test_what_is_sent_in_front_of_a_cut_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record is handed on by itself: the library tells nothing of those that went out before one that failed."""
    given: list[int] = []

    def write(_: ssl.SSLSocket, data: memoryview) -> int:
        given.append(len(data))
        if len(given) > 2:
            raise ssl.SSLEOFError("cut")
        return len(data)

    monkeypatch.setattr(ssl.SSLSocket, "write", write)
    sock = TlsSocket.__new__(TlsSocket)
    assert sock.send(bytes(100_000)) == 2 << 14
    assert given == [1 << 14] * 3
    with pytest.raises(ssl.SSLEOFError):
        sock.send(bytes(1))


def test_a_connection_of_tls_does_as_a_plain_one_where_nothing_is_there() -> None:
    members, listeners = session_of(2)
    both = threading.Barrier(2, timeout=300)

    def looks(session: Session) -> Any:
        both.wait()
        sock = session.transport._peers[1 - session.hosted[0]]  # type: ignore[attr-defined]
        assert isinstance(sock, TlsSocket)
        with pytest.raises(BlockingIOError):
            sock.recv(1)
        with pytest.raises(BlockingIOError):
            sock.recv_into(bytearray(1))
        both.wait()
        return sock.version()

    assert values(over_tls(members, listeners, looks)) == ["TLSv1.3"] * 2


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system has one way to find a window")
@pytest.mark.parametrize("near", [True, False])
def test_a_near_link_finds_its_window_as_usual(near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """bbr spreads messages over a round trip, which costs more than it saves where that is short."""
    monkeypatch.setattr(tuning, "_WINDOW" if not near else "_WINDOWS_NEAR", b"reno" if not near else (b"none", b"reno"))
    if not near:
        monkeypatch.setattr(tuning, "_NEAR", -1.0)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        assert tuning.round_trip(sock) > 0.0
        assert tuning.round_trip(sock) < tuning._NEAR or not near
        tuning.prepare(sock)
        found = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert found.rstrip(b"\0") == b"reno"  # which every system has
    with socket.socket() as sock:
        assert tuning.round_trip(sock) == 0.0  # it has met nobody


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system has one way to find a window")
def test_whether_a_window_is_kept_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = tmp_path / "restarts"
    monkeypatch.setattr(tuning, "_RESTARTS", restarts)
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        restarts.write_text("1\n")
        assert not tuning.keeps_window(sock)
        restarts.write_text("0\n")
        assert tuning.keeps_window(sock)
        restarts.unlink()
        assert not tuning.keeps_window(sock)
        monkeypatch.setattr(tuning, "_WINDOW", b"reno")
        assert tuning.keeps_window(sock)

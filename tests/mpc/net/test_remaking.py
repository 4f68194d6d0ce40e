"""Links that are cut are made again, and the rounds go on where they were, whatever the byte; strangers take none."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpc.client import Receive, Send, serve
from mpc.errors import STOPPED, Desync, PeerLost, StoppedTogether, Told
from mpc.net import client_mesh, mesh
from mpc.net.cutting import Wire
from mpc.net.door import Door
from mpc.net.frames import Kind, noted_stamp, pack
from mpc.net.links import Link
from mpc.net.member import Member
from mpc.net.memory import Memory
from mpc.net.mesh import Mesh
from mpc.net.remaking import Keeper, meet_lasting
from mpc.net.tls import Tls, TlsClient
from mpc.net.transport import Stamp
from mpc.rounds import Input, Open, Reveal
from mpc.session import Session
from tests.parties.members import impostor, session_of
from tests.parties.programs import seeded
from tests.parties.threads import Outcome, side_by_side, values


def wired(parties: int, cuts: Sequence[int], clients: Sequence[str] = ()) -> tuple[list[Member], list[Any], Wire]:
    """A session whose last node reaches party 0 over a wire."""
    members, listeners = session_of(parties, clients)
    wire = Wire(listeners[0].getsockname(), cuts)
    last = len(members) - 1
    peers = {**members[last].peers, 0: replace(members[last].peers[0], address=wire.address)}
    members[last] = replace(members[last], peers=peers)
    return members, listeners, wire


def over_lasting(
    members: Sequence[Member], listeners: Sequence[socket.socket], program: Callable[[Session], Any],
    clients: Sequence[Callable[..., Any]] = (), *, grace: float = 20.0, timeout: float = 20.0,
    log: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:  # fmt: skip
    names = members[0].names[len(listeners) :]

    def party(node: int) -> Callable[[], Any]:
        def run() -> Any:
            met = meet_lasting(members[node], listeners[node], grace=grace, timeout=timeout, starting=300, log=log)
            with seeded(Tls.over(members[node], met, timeout, log), roles=names) as session:
                return program(session)

        return run

    def client(at: int, behave: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            member = members[len(listeners) + at]
            met = meet_lasting(member, None, grace=grace, timeout=timeout, starting=300, log=log)
            link = TlsClient.over(member, met, timeout, log)
            return behave(link) if behave.__code__.co_argcount else serve(link, behave())

        return run

    return side_by_side(
        *(party(node) for node in range(len(listeners))), *(client(at, each) for at, each in enumerate(clients))
    )


def sums(session: Session, sizes: Sequence[int]) -> list[int]:
    """Rounds of words that say which round they are of, and from whom."""

    def program() -> Any:
        told = []
        for at, size in enumerate(sizes):
            own = np.array([[1000 * at + party + 1] * size for party in session.hosted], np.uint64)
            told.append(int((yield Open(own)).sum()))
        return told

    return session.run(program())  # type: ignore[no-any-return]


def alone(parties: int, sizes: Sequence[int]) -> list[int]:
    return [size * sum(1000 * at + party + 1 for party in range(parties)) for at, size in enumerate(sizes)]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 12_000), min_size=1, max_size=3),
    st.lists(st.sampled_from([1, 30, 3000]), min_size=2, max_size=8),
)
def test_cut_at_any_byte_the_rounds_give_the_same(cuts: list[int], sizes: list[int]) -> None:
    """Also in the middle of the handshake of a link that is being made again."""
    members, listeners, wire = wired(2, cuts)

    def program(session: Session) -> list[int]:
        sums(session, [1])
        wire.begins.set()
        return sums(session, sizes)

    outcomes = over_lasting(members, listeners, program)
    wire.close()
    assert values(outcomes) == [alone(2, sizes)] * 2


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("slow_calls", [False, True])
def test_cut_while_each_says_that_it_has_met_all(
    parties: int, slow_calls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two has heard it of the other and begins; what it said is lost, and the other meets it once more."""
    members, listeners, wire = wired(parties, [])
    ends = {0, parties - 1}
    (slow,) = {parties - 1} if slow_calls else {0}
    (quick,) = ends - {slow}
    gathered, has_met_all, lost = Door.gathered, Door._has_met_all, list[socket.socket]()

    def hears(door: Door, node: int, sock: socket.socket) -> bool:
        if (door.member.node, node) == (slow, quick):
            lost.extend([] if lost else [sock])
            if sock is lost[0]:
                has_met_all(door, node, sock)
                door._heard[sock] = b""
                return False
        return has_met_all(door, node, sock)

    def sees(door: Door, found: dict[int, socket.socket]) -> bool:
        over = gathered(door, found)
        if over and door.member.node == quick:
            wire.cut()
        return over

    monkeypatch.setattr(Door, "_has_met_all", hears)
    monkeypatch.setattr(Door, "gathered", sees)
    said = list[str]()
    outcomes = over_lasting(members, listeners, lambda session: sums(session, [1, 3000, 1]), log=said.append)
    wire.close()
    assert values(outcomes) == [alone(parties, [1, 3000, 1])] * parties, said
    assert wire.made == 2 and any("is made again" in line for line in said), said


def test_large_messages_go_on_and_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways at once; each is larger than what may be kept before the other says that it came."""
    monkeypatch.setattr(mesh, "_KEPT", 1 << 12)
    monkeypatch.setattr(mesh, "_TELL", 1 << 10)
    most = [0]
    real = Link.send

    def send(link: Link, data: Any, flags: int = 0) -> int:
        most[0] = max(most[0], link.kept)
        return real(link, data, flags)

    monkeypatch.setattr(Link, "send", send)
    sizes = [1 << 15, 1, 1 << 15, 1 << 14]
    members, listeners, wire = wired(3, [200_000, 100_000])

    def program(session: Session) -> list[int]:
        wire.begins.set()
        return sums(session, sizes)

    outcomes = over_lasting(members, listeners, program)
    wire.close()
    assert values(outcomes) == [alone(3, sizes)] * 3
    assert wire.made >= 2, "it was cut"
    assert most[0] < 2 * (8 << 15) + (1 << 14)


def test_a_client_that_only_sends_and_one_that_only_hears_are_let_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "_KEPT", 1 << 10)
    monkeypatch.setattr(mesh, "_TELL", 1 << 9)

    def asked(session: Session) -> None:
        wire.begins.set()

        def program() -> Any:
            for _ in range(20):
                x = yield Input("customer", (20,), 20)
                yield Reveal(x, to="customer", what="it", why="it asked")
            for _ in range(20):
                yield Reveal(x, to="customer", what="it", why="it asked")

        session.run(program())

    def customer() -> Any:
        told = []
        for at in range(20):
            yield Send([float(at)] * 20, 20)
            told.append((yield Receive((20,), 20))[0])
        for _ in range(20):
            told.append((yield Receive((20,), 20))[0])  # noqa: PERF401  a comprehension cannot yield
        return told

    members, listeners, wire = wired(2, [6000, 9000], ["customer"])
    *_, told = values(over_lasting(members, listeners, asked, [customer]))
    wire.close()
    assert [float(each) for each in told] == [*map(float, range(20)), *[19.0] * 20] and wire.made >= 2


def test_a_link_that_stays_cut_is_given_up_after_the_grace() -> None:
    members, listeners, wire = wired(2, [])
    said: list[str] = []

    def program(session: Session) -> None:
        sums(session, [1])
        if session.hosted == (0,):
            wire.closed.set()
            wire.cut()
        sums(session, [1, 1])

    outcomes = over_lasting(members, listeners, program, grace=0.5, log=said.append)
    wire.close()
    for node, outcome in enumerate(outcomes):
        assert isinstance(outcome.error, PeerLost) and outcome.error.peer == 1 - node
        text = f"the link to party {1 - node} was cut, and not made again within 0.5 s"
        assert text in str(outcome.error) or "closed its connection" in str(outcome.error), outcome
    assert any("is cut: waiting up to 0.5 s" in line for line in said)


def test_a_peer_that_was_started_anew_goes_on_with_no_link() -> None:
    """Its hello is as at a first meeting: the others hear at once that it began anew, without waiting out the grace."""
    members, listeners = session_of(2)
    met = threading.Event()

    def party_0() -> None:
        links = meet_lasting(members[0], listeners[0], grace=30.0, starting=300)
        with seeded(Tls.over(members[0], links, 30.0)) as session:
            met.set()
            sums(session, [1, 1])

    def party_1() -> None:
        links = meet_lasting(members[1], listeners[1], grace=30.0, starting=300)
        session = seeded(Tls.over(members[1], links, 30.0))
        assert met.wait(300)
        for sock in links.values():
            sock._leaving = True  # type: ignore[attr-defined]
            sock.close()
        del session
        again = replace(members[1], session=members[1].session)
        with pytest.raises(PeerLost):
            meet_lasting(again, socket.create_server(("127.0.0.1", 0)), grace=30.0, starting=1.5)

    first, second = side_by_side(party_0, party_1)
    assert second.error is None, second.error
    assert isinstance(first.error, PeerLost) and "party 1 was started again" in str(first.error), first.error


def test_what_a_peer_said_is_read_after_it_reset_the_connection() -> None:
    """A peer that leaves with bytes unread resets it: what it had said is there, and is counted as received."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        link = Link(socket.create_connection(listener.getsockname()), "theirs")
        peer, _ = listener.accept()
    link.send(b"unread")
    peer.sendall(b"last words")
    assert select.select([link], [], [], 10)[0]
    peer.close()
    with pytest.raises(BlockingIOError):
        while True:
            link.send(b"more")
    assert not link.up and link.left == b"last words" and link.received == 10
    assert link.unread() and link.recv(100) == b"last words" and not link.left
    link.close()


def test_one_that_is_sending_hears_why_its_peer_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dealer with material under way: the parties stop, and read nothing more of it."""
    monkeypatch.setattr(mesh, "_LAST_WORDS", 0.0)
    members, listeners = session_of(2, ["dealer"])
    sending = threading.Event()

    def party(node: int) -> Callable[[], None]:
        def run() -> None:
            tls = Tls.over(members[node], meet_lasting(members[node], listeners[node], grace=20.0, starting=300), 20.0)
            assert sending.wait(300)
            time.sleep(0.2)  # most of the message is still to be sent then, or all of it: both are well
            tls.close(reason=Told(STOPPED, "7"))

        return run

    def dealer() -> None:
        link = TlsClient.over(members[2], meet_lasting(members[2], None, grace=20.0, starting=300), 20.0)
        sending.set()
        try:
            link.send_to(0, bytes(1 << 26), "material")
            link.await_end()
        finally:
            link.close()

    *parties, last = side_by_side(party(0), party(1), dealer)
    assert [each.error for each in parties] == [None, None]
    assert isinstance(last.error, StoppedTogether) and last.error.done == 7, last.error


def test_who_looks_after_links_that_were_closed_before_it_began_ends_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[Keeper] = []

    def begins_late(keeper: Keeper) -> None:
        late.append(keeper)

    monkeypatch.setattr(Keeper, "start", begins_late)
    members, listeners = session_of(2)
    assert values(over_lasting(members, listeners, lambda session: sums(session, [3]))) == [alone(2, [3])] * 2
    for keeper in late:
        keeper.run()
    assert len(late) == 2 and all(listener.fileno() < 0 for listener in listeners)


def test_one_that_is_not_waited_for_is_missed_at_once() -> None:
    """Party 0 waits for party 1, which may wait for a client: it hears that the client is lost."""
    members, listeners = session_of(2, ["customer"])
    over = threading.Event()

    def party(node: int) -> Callable[[], Any]:
        def run() -> Any:
            links: Any = meet_lasting(members[node], listeners[node], grace=30.0, starting=300)
            with seeded(Tls.over(members[node], links, 30.0), roles=["customer"]) as session:
                if node == 1:
                    over.wait(300)
                    return None
                threading.Timer(0.3, links[2].end, ["customer was started again"]).start()
                return sums(session, [1])

        return run

    def customer() -> None:
        links: Any = meet_lasting(members[2], None, grace=30.0, starting=300)
        over.wait(300)
        for link in links.values():
            link.leave()
            link.close()

    def watched() -> Any:
        try:
            return party(0)()
        finally:
            over.set()

    first, *_ = side_by_side(watched, party(1), customer)
    assert isinstance(first.error, PeerLost) and first.error.peer == 2, first.error
    assert "customer was started again" in str(first.error)


@pytest.mark.parametrize("changed", [{"life": "0" * 16}, {"knows": "0" * 16}, {"received": 1 << 40}])
def test_nobody_takes_a_link_over(changed: dict[str, Any]) -> None:
    """Not even who has the peer's key: without the names of both ends, or beyond what was sent, it gets nothing."""
    members, listeners = session_of(2)
    address, tried = listeners[0].getsockname(), threading.Event()
    said: list[str] = []

    def party_0() -> Any:
        links = meet_lasting(members[0], listeners[0], grace=5.0, starting=300, log=said.append)
        with seeded(Tls.over(members[0], links, 20.0)) as session:
            first = sums(session, [1])
            assert tried.wait(300)
            return [*first, *sums(session, [1])]

    def party_1() -> Any:
        links: Any = meet_lasting(members[1], listeners[1], grace=5.0, starting=300)
        with seeded(Tls.over(members[1], links, 20.0)) as session:
            first = sums(session, [1])
            own = members[1].hello(0, life="1" * 16, knows=links[0].theirs, received=0)
            context = members[1].context([0], ssl.PROTOCOL_TLS_CLIENT)
            with context.wrap_socket(socket.create_connection(address)) as sock:
                words = replace(own, **changed).pack()
                sock.settimeout(300)
                sock.sendall(pack(Kind.HELLO, 1, Stamp(0, bytes(8), "joining"), len(words)) + words)
                heard = sock.recv(6)
            tried.set()
            assert heard[4:5] in (b"", bytes([Kind.ABORT])), heard
            return [*first, *sums(session, [1])]

    assert values(side_by_side(party_0, party_1)) == [[3, 3]] * 2
    assert any("goes on with a link of before" in line for line in said), said


def test_the_end_is_heard_of_one_where_a_link_to_another_carries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party ends when all parties have all; that a link is silent is shown by nothing else."""
    monkeypatch.setattr(client_mesh, "_MOMENT", 0.3)
    members, listeners, wire = wired(2, [], ["dealer"])
    silent = threading.Event()

    def party(node: int) -> Callable[[], None]:
        def run() -> None:
            tls = Tls.over(members[node], meet_lasting(members[node], listeners[node], grace=20.0, starting=300), 20.0)
            assert silent.wait(300)
            tls.close()

        return run

    def dealer() -> None:
        link = TlsClient.over(members[2], meet_lasting(members[2], None, grace=20.0, starting=300), 20.0)
        wire.silent.set()
        silent.set()
        link.await_end()
        link.close()

    outcomes = side_by_side(party(0), party(1), dealer)
    wire.close()
    assert [each.error for each in outcomes] == [None] * 3


STRANGERS: dict[str, tuple[int | None, bytes, str]] = {
    "no TLS": (None, b"GET / HTTP/1.1\r\n\r\n", "speaks plain HTTP, no TLS"),
    "another's certificate": (9, b"", "shows a certificate that is not of a peer in this place"),
    "garbage": (1, bytes(range(256)) * 40, "no message of this protocol"),
    "4 GB": (1, pack(Kind.HELLO, 1, Stamp(0, bytes(8), "joining"), 1 << 32), "no hello of at most"),
}


@pytest.mark.parametrize(("shows", "raw", "reason"), STRANGERS.values(), ids=STRANGERS)
def test_strangers_in_the_middle_of_a_run_are_refused_in_a_line(shows: int | None, raw: bytes, reason: str) -> None:
    """shows: whose certificate.  One who says nothing calls before it, and keeps nobody from being heard."""
    members, listeners = session_of(2)
    address, said, tried = listeners[0].getsockname(), list[str](), threading.Event()

    def stranger() -> None:
        with contextlib.suppress(OSError), socket.create_connection(address), socket.create_connection(address) as sock:
            call, own = sock, members[1] if shows in (1, None) else impostor(members[1], shows)
            if shows is not None:
                call = own.context([0], ssl.PROTOCOL_TLS_CLIENT).wrap_socket(sock)
            call.settimeout(300)
            call.sendall(raw)
            while call.recv(1 << 12):
                pass

    def program(session: Session) -> list[int]:
        first = sums(session, [1, 3000])
        if session.hosted == (1,):
            stranger()
            tried.set()
        assert tried.wait(300)
        return [*first, *sums(session, [1])]

    assert values(over_lasting(members, listeners, program, log=said.append)) == [[*alone(2, [1, 3000]), 3]] * 2
    assert len([line for line in said if line.startswith("refused 127.0.0.1:") and reason in line]) == 1, said


def test_it_costs_the_same_as_a_mesh_that_is_not_made_again() -> None:
    members, listeners = session_of(2)

    def counted(session: Session) -> Any:
        sums(session, [1, 3000])
        return session.meter.total.rounds, session.meter.total.sent_bytes, session.meter.total.frame_bytes

    told = values(over_lasting(members, listeners, counted))
    with seeded(Memory(2)) as session:
        sums(session, [1, 3000])
        assert {each[:2] for each in told} == {(session.meter.total.rounds, session.meter.total.sent_bytes)}


ENDS = Stamp(0, bytes(8), "the end of all")


def gone(mesh: Mesh) -> str:
    """What the kernel does to the links of a process that has died."""
    for link in mesh._peers.values():
        link.close()
    mesh._closed = True
    return "died"


@pytest.mark.parametrize("dies", ["party", "client", "nobody"])
@pytest.mark.parametrize("parties", [2, 3, 5])
def test_who_dies_between_its_last_words_to_two_parties_is_missed_by_none(
    parties: int, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mesh, "_FAREWELL", 0.1)  # nobody comes back for it

    def party(session: Session) -> str:
        transport = session.transport
        assert isinstance(transport, Tls)
        if dies == "party" and transport.node == parties - 1:
            transport.await_noted(parties, 7)
            transport._put(0, [pack(Kind.DATA, transport.node, ENDS, 0)], ENDS)
            return gone(transport)
        transport.end_together(ENDS, [parties], 7)
        return "all have all"

    def client(link: TlsClient) -> str:
        for party in range(1 if dies == "client" else parties):
            link._put(party, [pack(Kind.NOTED, link.node, noted_stamp(7), 0)], ENDS)
        if dies == "client":
            return gone(link)
        link.await_end()
        link.close()
        return "all have all"

    told = values(over_lasting(*session_of(parties, ["clerk"]), party, [client]))
    died = {"party": parties - 1, "client": parties}.get(dies)
    assert told == ["died" if node == died else "all have all" for node in range(parties + 1)]


def test_who_dies_before_its_last_word_is_missed() -> None:
    def party(session: Session) -> None:
        transport = session.transport
        assert isinstance(transport, Tls)
        transport.end_together(ENDS, [2], 7)

    def client(link: TlsClient) -> str:
        link._put(0, [pack(Kind.NOTED, link.node, noted_stamp(6), 0)], ENDS)
        return gone(link)

    *parties, clerk = over_lasting(*session_of(2, ["clerk"]), party, [client], grace=0.5)
    assert clerk.value == "died"
    assert all(isinstance(each.error, PeerLost) and each.error.peer == 2 for each in parties), parties


def test_who_goes_on_where_others_end_is_told_apart() -> None:
    def party(session: Session) -> None:
        transport = session.transport
        assert isinstance(transport, Tls)
        if transport.node:
            transport.exchange(Stamp(9, bytes(8), "one round more"), np.zeros((1, 0), np.uint8), {})
        transport.end_together(ENDS, [], 7)

    for outcome in over_lasting(*session_of(2), party):
        assert isinstance(outcome.error, Desync), outcome


def test_who_waits_for_a_silent_one_hears_what_another_said_before_it_left() -> None:
    """The clerk has all the time there is, as a dealer has; what party 1 knows lies before its link's end."""
    over = threading.Event()

    def party(session: Session) -> None:
        if session.transport.hosted == (1,):
            raise PeerLost("the clerk was silent", peer=2)
        assert over.wait(60.0)

    def client(link: TlsClient) -> None:
        link._timeout = 1e9
        try:
            link.receive(8, "which party 0 never sends")
        finally:
            over.set()

    *_, clerk = over_lasting(*session_of(2, ["clerk"]), party, [client])
    assert isinstance(clerk.error, PeerLost) and "the clerk was silent (reported by party 1)" in str(clerk.error)


def test_who_stopped_with_all_is_not_heard_before_what_others_still_send() -> None:
    """Party 1 has left after the last decision, and the clerk has not got party 0's message of it yet."""
    links: list[TlsClient] = []

    def party(session: Session) -> None:
        transport = session.transport
        assert isinstance(transport, Tls)
        if transport.node == 0:
            until = time.monotonic() + 60.0
            while not (links and links[0]._peers[1].parted) and time.monotonic() < until:  # type: ignore[attr-defined]
                time.sleep(0.01)
        transport.send_to_client(2, "the last", np.full((1, 8), transport.node, np.uint8))
        transport.close(reason=Told(STOPPED, "7"))

    def client(link: TlsClient) -> list[int]:
        links.append(link)
        rows = link.receive(8, "the last")
        with pytest.raises(StoppedTogether):
            link.receive(8, "one more")
        return [int(each) for each in rows[:, 0]]

    *_, clerk = over_lasting(*session_of(2, ["clerk"]), party, [client])
    assert clerk.value == [0, 1], clerk

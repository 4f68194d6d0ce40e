"""A streaming dealer: right results, keys alone to parties 1.., bounded run-ahead, and an end to every wait for it."""

from __future__ import annotations

import copy
import json
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from offline_parties import in_threads, over_tcp, right, step, step_plan, steps

from mpc.correlations import TruncationMask
from mpc.errors import ConfigError, MaskedError, OutOfMaterial, PeerLost
from mpc.net.channel import Channel, await_parties, call_dealer, listen
from mpc.net.frames import DEALER_NODE
from mpc.session import Session
from offline import InProcessDealer, Plan, Store, StoreSource, StreamSource, deal, serve
from tests.parties.threads import KEYS, side_by_side

HELLO_BYTES = 16 + 16 + 16 + 8 + 8 + 2 + 2
FIRST, SECOND = step_plan(2).items


def pair(what: str = "the dealer") -> tuple[Channel, Channel, socket.socket]:
    """The dealer's end, the party's end, and the dealer's socket."""
    ours, theirs = (socket.socket() for _ in range(2))
    with listen() as listener:
        theirs.connect(listener.getsockname())
        ours.close()
        ours, _ = listener.accept()
    return Channel(ours, "party"), Channel(theirs, what), ours


class Dealer:
    """A dealer in a thread; every wait for it is bounded."""

    def __init__(self, plan: Plan, blocks: int, block_steps: int = 1) -> None:
        self.listener = listen()
        self.address = self.listener.getsockname()
        self.plan, self.blocks, self.block_steps = plan, blocks, block_steps
        self.channels: dict[int, Channel] = {}
        self.sent: dict[int, list[bytes]] = {party: [] for party in range(plan.parties)}
        self.done = 0
        self.heard = b""
        self.ended: list[BaseException | None] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.channels = dict(await_parties(self.plan.parties, self.listener, KEYS[DEALER_NODE], timeout=300))
            for party, channel in self.channels.items():
                channel.send = self._noting(party, channel.send)  # type: ignore[method-assign]
            serve(self.plan, self.channels, blocks=self.blocks, block_steps=self.block_steps, progress=self._progress)
            self.ended.append(None)
        except BaseException as error:
            self.ended.append(error)
        finally:
            self.listener.close()

    def _noting(self, party: int, send: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def noted(message: bytes) -> None:
            self.sent[party].append(message)
            send(message)

        return noted

    def _progress(self, done: int, _: int) -> None:
        self.done = done
        for channel in self.channels.values():
            try:
                self.heard += channel._sock.recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue

    def sources(self, **rest: Any) -> list[Callable[[], StreamSource]]:
        return [
            lambda p=p: StreamSource(
                self.plan, call_dealer(p, self.address, KEYS[p], 300), party=p, timeout=300, **rest
            )
            for p in range(self.plan.parties)
        ]

    def end(self) -> BaseException | None:
        self.thread.join(300)
        assert not self.thread.is_alive()
        return self.ended[0]


@contextmanager
def opened(dealer: Dealer, **rest: Any) -> Iterator[list[StreamSource]]:
    """All parties' sources in this thread."""
    found = in_threads(dealer.sources(**rest))
    assert all(isinstance(source, StreamSource) for source in found), found
    try:
        yield found
    finally:
        for source in found:
            source.close()


def agree(sources: list[Any]) -> None:
    statements = [source.statement().ljust(64, b"\0") for source in sources]
    for source in sources:
        source.agree(statements)


def draw(sources: list[StreamSource], count: int = 1) -> None:
    for source in sources:
        for _ in range(count):
            source.draw(FIRST)
            source.draw(SECOND)


@pytest.mark.parametrize("block_steps", [1, 3])
def test_parties_with_a_dealer_get_right_results_to_the_last_step(parties: int, block_steps: int) -> None:
    dealer = Dealer(step_plan(parties), 12 // block_steps, block_steps)
    used: list[list[tuple[int, int]]] = [[] for _ in range(parties)]
    makers = [
        lambda p=p: StreamSource(
            dealer.plan, call_dealer(p, dealer.address, KEYS[p], 300), party=p, used=lambda *at: used[p].append(at)
        )
        for p in range(parties)
    ]
    assert over_tcp(makers, steps(12)) == [12] * parties
    assert dealer.end() is None
    assert used == [[(b, i) for b in range(12 // block_steps) for i in range(2 * block_steps)]] * parties


def test_the_dealer_sends_keys_and_hears_nothing(parties: int) -> None:
    """Parties 1.. are sent one message; party 0 the corrections on top; nobody another's key; nothing flows back."""
    dealer = Dealer(step_plan(parties), 10)
    assert over_tcp(dealer.sources(), steps(10)) == [10] * parties
    assert dealer.end() is None and dealer.heard == b""
    keys = [sent[0][:16] for sent in dealer.sent.values()]
    assert len(set(keys)) == parties
    for party, sent in dealer.sent.items():
        assert len(sent[0]) == HELLO_BYTES and len(sent) == (11 if party == 0 else 1)
        assert all(key not in b"".join(sent) for other, key in enumerate(keys) if other != party)
    assert {len(block) for block in dealer.sent[0][1:]} == {dealer.plan.step_bytes}


def test_running_out_is_an_error_with_numbers(parties: int) -> None:
    dealer = Dealer(step_plan(parties), 2, 2)
    for party, error in enumerate(over_tcp(dealer.sources(), steps(5))):
        assert isinstance(error, OutOfMaterial)
        assert f"party {party}: all steps of 'step' are used up" in str(error)
        assert "TruncationMask(shape=(3,), bits=20)" in str(error) and "start the dealer for more steps" in str(error)


def test_a_run_may_take_exactly_the_steps_that_are_left() -> None:
    with opened(Dealer(step_plan(2), 3, 2)) as sources:
        agree(sources)
        draw(sources, 2)
        for party, source in enumerate(sources):
            source.want(4)
            with pytest.raises(OutOfMaterial, match=f"party {party}: 4 steps of 'step' are left, 5 wanted"):
                source.want(5)
        draw(sources, 4)


def test_another_program_than_planned_costs_nothing() -> None:
    dealer = Dealer(step_plan(2), 4)
    with opened(dealer) as sources:
        agree(sources)
        for source in sources:
            with pytest.raises(OutOfMaterial, match=r"draws TruncationMask.*has ProductMask"):
                source.draw(SECOND)
        draw(sources, 4)


BIG = Plan("big", 2, (TruncationMask((250_000,), 20),))  # 3 MB a block: more than a connection holds


def test_the_dealer_runs_ahead_but_only_so_far() -> None:
    """ahead = 2 blocks in the queue, one in the reader's hand, one in the dealer's, and less than two on the way."""
    dealer = Dealer(BIG, 40)
    with opened(dealer, ahead=2) as sources:
        agree(sources)
        limit = time.monotonic() + 300
        while dealer.done < 3 and time.monotonic() < limit:
            time.sleep(0.01)
        assert dealer.done >= 3, "it does not wait to be asked"
        for used in range(12):
            time.sleep(0.03)  # what a dealer without a bound would use to run away
            assert dealer.done <= used + 6
            sources[0].draw(BIG.items[0])
    assert isinstance(dealer.end(), PeerLost)


def test_closing_frees_the_reader_and_the_dealer() -> None:
    dealer = Dealer(BIG, 40)
    with opened(dealer, ahead=1) as sources:
        agree(sources)
        sources[0].draw(BIG.items[0])
        sources[0].close()
        sources[0].close()
        assert sources[0]._reader is not None and not sources[0]._reader.is_alive()
        ended = dealer.end()
        assert isinstance(ended, PeerLost) and "party 0 closed its connection" in str(ended)
        with pytest.raises(ConfigError, match="closed"):
            sources[0].draw(BIG.items[0])


DEALER = """
import json, os, signal, sys
from offline import Plan, serve
from pathlib import Path
from mpc.net.channel import await_parties, listen
from mpc.net.keys import Keys
plan = Plan.load(Path(sys.argv[1]))
sock = listen()
print(sock.getsockname()[1], flush=True)
def progress(done, total):
    if done == 3:
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
keys = Keys.from_json(json.loads(sys.argv[3]))
serve(plan, await_parties(plan.parties, sock, keys, timeout=300), blocks=10, progress=progress)
"""


@contextmanager
def dealer_process(plan: Plan, end: str, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A dealer in a process of its own that ends itself after three blocks."""
    plan.save(tmp_path / "plan.json")
    command = [sys.executable, "-c", DEALER, str(tmp_path / "plan.json"), end, json.dumps(KEYS[DEALER_NODE].as_json())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 300)[0]
        yield "127.0.0.1", int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("end, words", [
    ("SIGKILL", "the dealer left after 3 of 10 blocks: it died or was stopped"),
    ("SIGSTOP", "the dealer was silent for 1 s after 3 of 10 blocks: it hangs"),
])  # fmt: skip
def test_a_dealer_that_dies_or_hangs_is_named_by_all(end: str, words: str, parties: int, tmp_path: Path) -> None:
    plan = step_plan(parties)
    with dealer_process(plan, end, tmp_path) as address:
        right_ones: list[int] = []
        sources: list[StreamSource] = []

        def program(session: Session) -> None:
            for at in range(10):
                if at == 3 and end == "SIGSTOP":  # no more blocks come; until then a busy machine has its time
                    for each in sources:
                        each._timeout = 1
                right_ones.append(right(session.run(step(session))))

        def source(party: int) -> StreamSource:
            sources.append(StreamSource(plan, call_dealer(party, address, KEYS[party], 300), party=party, timeout=300))
            return sources[-1]

        errors = over_tcp([lambda p=p: source(p) for p in range(parties)], program)
    assert len(errors) == parties and all(isinstance(error, PeerLost) and words in str(error) for error in errors), (
        errors
    )
    assert errors[0].peer == -1 and str(errors[0]) == words
    assert all("party 0" in str(error) and error.peer == -1 for error in errors[1:])
    assert len(right_ones) == 3 * parties and all(right_ones)


def test_a_party_says_that_it_waits_for_its_dealer_before_it_loses_it() -> None:
    plan, said = step_plan(2), list[str]()
    ours, theirs, _ = pair()
    ours.send(hello(plan))
    source = StreamSource(plan, theirs, party=0, timeout=0.2, starting=300)
    source.waiting = said.append
    with pytest.raises(PeerLost, match=r"the dealer was silent for 0\.2 s after 0 of 9 blocks: it hangs"):
        source.draw(FIRST)
    assert said == ["the dealer"]
    ours.send(bytes(plan.step_bytes))
    while source._queue.empty():  # its reader may take longer than `timeout`
        time.sleep(0.005)
    source.draw(FIRST)
    assert said == ["the dealer"], "nobody waits for what is there"
    source.close()
    ours.close()


def test_a_lost_dealer_stays_lost() -> None:
    plan = step_plan(2)
    ours, theirs, _ = pair()
    ours.send(hello(plan))
    with_block = StreamSource(plan, theirs, party=0, timeout=100)
    ours.close()
    for _ in range(3):
        with pytest.raises(PeerLost, match="the dealer left after 0 of 9 blocks"):
            with_block.draw(FIRST)
    with_block.close()


def hello(plan: Plan, **changes: Any) -> bytes:
    """What a dealer greets with, field by field."""
    fields = {
        "key": b"k" * 16,
        "deal": b"d" * 16,
        "digest": plan.digest,
        "blocks": 9,
        "steps": 1,
        "party": 0,
        "parties": 2,
    }
    return struct.pack("<16s16s16sQQHH", *{**fields, **changes}.values())


GREETINGS: dict[str, tuple[Callable[[Plan], bytes | None], type[MaskedError], str]] = {
    "another plan": (lambda plan: hello(plan, digest=b"x" * 16), ConfigError, "deals for another plan"),
    "another number of parties": (lambda plan: hello(plan, parties=3), ConfigError, "deals for another plan"),
    "another party": (lambda plan: hello(plan, party=1), ConfigError, "takes party 0 for party 1"),
    "nothing": (lambda plan: None, PeerLost, "left before it sent a key"),
    "too short": (lambda plan: hello(plan)[:-1], PeerLost, "left before it sent a key"),
    "too long": (lambda plan: hello(plan) + b"!", PeerLost, f"announces {HELLO_BYTES + 1} bytes where {HELLO_BYTES}"),
}


@pytest.mark.parametrize("message, kind, words", GREETINGS.values(), ids=GREETINGS.keys())
def test_greetings_that_do_not_fit(message: Any, kind: type[MaskedError], words: str) -> None:
    plan = step_plan(2)
    ours, theirs, _ = pair()
    raw = message(plan)
    ours.close() if raw is None else ours.send(raw)
    with pytest.raises(kind, match=words) as refusal:
        StreamSource(plan, theirs, party=0, timeout=100)
    assert "kkkk" not in str(refusal.value)
    with pytest.raises(PeerLost):
        theirs.receive(timeout=300)  # it has hung up


def test_a_dealer_that_does_not_greet_is_not_waited_for() -> None:
    ours, theirs, _ = pair()
    with pytest.raises(PeerLost, match=r"the dealer was silent for 0.05 s"):
        StreamSource(step_plan(2), theirs, party=1, timeout=0.05)
    ours.close()


@pytest.mark.parametrize(
    "length, words", [(63, "sent 63 bytes for a block of 64"), (65, "announces 65 bytes where 64")]
)
def test_blocks_of_another_size_are_refused(length: int, words: str) -> None:
    plan = step_plan(2)
    ours, theirs, _ = pair()
    ours.send(hello(plan))
    ours.send(bytes(length))
    source = StreamSource(plan, theirs, party=0, timeout=100)
    with pytest.raises(PeerLost, match=words):
        source.draw(FIRST)
    source.close()
    ours.close()


def test_a_block_cut_short_is_a_lost_dealer() -> None:
    plan = step_plan(2)
    ours, theirs, sock = pair()
    ours.send(hello(plan))
    sock.sendall(struct.pack("<Q", 64) + bytes(10))
    ours.close()
    source = StreamSource(plan, theirs, party=0, timeout=100)
    with pytest.raises(PeerLost, match="the dealer closed its connection in the middle of a message"):
        source.draw(FIRST)
    source.close()


def test_two_dealers_of_one_plan_do_not_mix() -> None:
    one, two = (Dealer(step_plan(2), 4) for _ in range(2))
    with opened(one) as left, opened(two) as right_:
        with pytest.raises(ConfigError, match="party 1's material is of another deal"):
            agree([left[0], right_[1]])
        with pytest.raises(ConfigError, match="party 0 draws the material of party 1"):
            agree([left[1], left[0]])
        with pytest.raises(ConfigError, match="for 2 parties, this session has 3"):
            agree([*left, left[1]])
        agree(left)


def test_a_stream_and_another_kind_of_source_refuse_each_other(tmp_path: Path) -> None:
    homes = deal(step_plan(2), 4, tmp_path)
    with opened(Dealer(step_plan(2), 4)) as sources, Store(homes[1]) as store:
        for other in (StoreSource(store), InProcessDealer(2)):
            with pytest.raises(ConfigError, match="party 1 does not draw from a streaming dealer"):
                sources[0].agree([sources[0].statement().ljust(64, b"\0"), other.statement().ljust(64, b"\0")])
            with pytest.raises(MaskedError, match="party 0 d"):
                other.agree([sources[0].statement().ljust(64, b"\0"), other.statement().ljust(64, b"\0")])


def test_a_second_session_goes_on_or_moves_forward_together() -> None:
    reports: list[str] = []
    used: list[tuple[int, int]] = []
    with opened(Dealer(step_plan(2), 8, 2), report=reports.append, used=lambda *at: used.append(at)) as sources:
        agree(sources)
        draw(sources)
        agree(sources)
        draw(sources)
        assert used[-1] == (0, 3) and not reports
        draw([sources[1]], 3)  # party 1 is a block and a half ahead
        agree(sources)
        used.clear()
        draw(sources)
        assert used == [(3, 0), (3, 1)] * 2
        assert reports == ["block 2 was not used to its end: the rest of its 2 steps is skipped"]
        r = [source.draw(FIRST) for source in sources]
        a, b, c = (x + y for x, y in zip(*r, strict=True))
        assert (c == a * b).all()


@pytest.mark.parametrize("arguments, words", [
    ({"blocks": 0}, "at least 1 block of 1 step, not 0 of 1"),
    ({"blocks": 1, "block_steps": 0}, "at least 1 block of 1 step, not 1 of 0"),
])  # fmt: skip
def test_dealers_that_cannot_be(arguments: dict[str, int], words: str) -> None:
    ends = [pair() for _ in range(2)]
    with pytest.raises(ConfigError, match=words):
        serve(step_plan(2), {p: ours for p, (ours, _, _) in enumerate(ends)}, **arguments)
    assert all(theirs.receive(timeout=300) is None for _, theirs, _ in ends), "it hangs up on those who wait"


def test_a_dealer_needs_all_parties_and_something_to_deal() -> None:
    ours, _, _ = pair()
    with pytest.raises(ConfigError, match=r"for 3 parties, connected are \[0\]"):
        serve(step_plan(3), {0: ours}, blocks=1)
    ends = [pair() for _ in range(2)]
    with pytest.raises(ConfigError, match="draws nothing"):
        serve(Plan("idle", 2, ()), {p: ours for p, (ours, _, _) in enumerate(ends)}, blocks=1)


def test_a_party_is_greeted_though_another_has_not_called() -> None:
    """So it goes on to where the parties meet, and misses the other there: the dealer is not to blame."""
    plan, greeted = step_plan(2), threading.Event()

    def party() -> int:
        source = StreamSource(plan, call_dealer(1, address, KEYS[1], 300), party=1, timeout=300)
        greeted.set()
        return source.party

    def calling() -> Iterator[tuple[int, Channel]]:
        yield next(await_parties(2, listener, KEYS[DEALER_NODE], timeout=300))
        raise PeerLost("party 0 did not call", peer=0) if greeted.wait(300) else ConfigError("party 1 waits in vain")

    with listen() as listener:
        address = listener.getsockname()
        dealer, one = side_by_side(lambda: serve(plan, calling(), blocks=1), party)
    assert isinstance(dealer.error, PeerLost), dealer.error
    assert one.value == 1


def test_nobody_waits_for_a_dealer_that_is_not_there() -> None:
    with listen() as closed:
        address = closed.getsockname()
    with pytest.raises(PeerLost, match=rf"the dealer.* at 127.0.0.1:{address[1]} did not answer: is it started"):
        call_dealer(0, address, KEYS[0], timeout=0.1)
    with listen() as listener, pytest.raises(PeerLost, match="did not call"):
        dict(await_parties(2, listener, KEYS[DEALER_NODE], timeout=0.1))


def test_keys_are_not_shown_and_not_pickled() -> None:
    dealer = Dealer(step_plan(2), 2)
    with opened(dealer) as sources:
        key = dealer.sent[0][0][:16]
        for dump in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="never pickled"):
                dump(sources[0])
        assert repr(sources[0]) == "StreamSource(party=0, program='step')"
        assert all(key not in source.statement() for source in sources)


def test_a_dealer_that_is_gone_is_said_at_once() -> None:
    """It listens before any party starts, so a refused connection is not tried again until the timeout."""
    listener = listen()
    address = listener.getsockname()
    listener.close()
    with pytest.raises(PeerLost, match="the dealer"):
        call_dealer(0, address, KEYS[0], timeout=1e6)

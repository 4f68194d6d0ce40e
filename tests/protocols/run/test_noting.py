"""A client that notes what it learned holds the parties at a checkpoint until it has: a run that ends can go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpc.client import ClientProgram, Receive
from mpc.errors import PeerLost
from mpc.net.joining import listen
from mpc.net.tcp import Tcp, TcpClient
from mpc.rounds import Reveal, Rounds
from mpc.session import Session
from offline import StreamSource
from protocols.run import role_process
from protocols.run.checkpoint import numbers
from protocols.run.dealer_process import Nothing
from protocols.run.folder import begin, homes, reached
from protocols.run.program import Arrays, Desk, Role
from protocols.run.role_process import Task, kind_of

from ...parties.threads import KEYS, side_by_side
from .adding import Adding, Parties

CLERK, DAYS, EVERY = "clerk", 40, 5


class Posting(Adding):
    """A sum is told to a clerk, who notes it day by day.  before: what the clerk does first on a day."""

    before: Callable[[int], Any] = staticmethod(lambda day: None)

    def __init__(self) -> None:
        super().__init__(2, [], DAYS, late=False)
        self.roles = (Role(CLERK, notes="days.bin"),)

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        return {}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Parties:
        return Posters(session, self, kept, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        for day in range(desk.start, self.decisions):
            self.before(day)
            desk.note((yield Receive()))


class Posters(Parties):
    def finish(self) -> None:
        """Nothing is left."""

    def _day(self) -> Rounds[None]:
        self.total = self.total + 1
        yield Reveal(self.total, to=CLERK, what="sum so far", why="it is noted")


def played(
    keep: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    timeout: float,
    over: threading.Event,
    source: Callable[[], Nothing] = Nothing,
) -> tuple[list[BaseException | None], list[int | str]]:
    """Two parties and the clerk, each in a thread: what each ended with; when notes were flushed and word was given.

    over: set when both parties have ended.  source: makes a party's.
    """
    program, said, ended = Posting(), list[int | str](), list[int]()
    monkeypatch.setattr("os.fdatasync", lambda file: said.append("flushed"))
    run = begin(program, keep, material=False)
    task = Task(kind_of(program), program.public(), run, 0, EVERY, keep, timeout, draws=False)
    listeners = [listen() for _ in range(2)]
    addresses = [sock.getsockname() for sock in listeners]

    def party(node: int) -> None:
        def joined() -> Tcp:
            return Tcp.join(
                node, addresses, keys=KEYS[node], clients=1, listener=listeners[node], timeout=timeout, starting=300
            )

        try:
            role_process.computing_party(program, task, node, source(), {}, joined, lambda _: False)
        finally:
            ended.append(node)
            if len(ended) == 2:
                over.set()

    def clerk() -> None:
        link = TcpClient.join(2, addresses, keys=KEYS[2], timeout=300)
        word = link.say_noted
        monkeypatch.setattr(link, "say_noted", lambda done: (said.append(done), word(done)))
        role_process.client(program, task, keep.parent, program.roles[0], 2, link)

    outcomes = side_by_side(lambda: party(0), lambda: party(1), clerk)
    return [outcome.error for outcome in outcomes], said


def test_the_clerk_gives_word_at_checkpoints_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, said = played(tmp_path / "keep", monkeypatch, timeout=300, over=threading.Event())
    assert errors == [None] * 3
    assert said == [each for done in range(EVERY, DAYS + 1, EVERY) for each in ("flushed", done)] + ["flushed"]
    assert reached(Posting(), tmp_path / "keep") == DAYS


def test_a_clerk_that_freezes_is_named_and_all_have_kept_a_decision_that_it_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parties only send to it: they would go on to the end, and drop what they kept before."""
    over, keep = threading.Event(), tmp_path / "keep"
    monkeypatch.setattr(Posting, "before", staticmethod(lambda day: day != 12 or over.wait(300)))
    errors, _ = played(keep, monkeypatch, timeout=3.0, over=over)
    assert all(isinstance(error, PeerLost) and error.peer == 2 for error in errors[:2]), errors
    assert all(numbers(home) == {5, 10} for home in homes(Posting(), keep))
    assert reached(Posting(), keep) == 10


def test_a_source_s_word_goes_to_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that waits for its dealer says so to whom it plays with."""
    sources: list[Beside] = []

    class Beside(Nothing, StreamSource):  # type: ignore[misc]
        def __init__(self) -> None:
            self.waiting = lambda _: None
            sources.append(self)

    errors, _ = played(tmp_path / "keep", monkeypatch, timeout=300, over=threading.Event(), source=Beside)
    assert errors == [None] * 3
    assert {getattr(source.waiting, "__func__", None) for source in sources} == {Tcp.say_waiting}

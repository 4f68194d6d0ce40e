"""Runs participants: all in one process, or one of them over links to the others.  Knows bytes, clocks; no content."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from mpc.errors import Desync, PeerLost

T = TypeVar("T")
N = TypeVar("N", bound=str)
_LONGEST = 1 << 30

PREPARATION, STEPS, SUM = "preparation", "steps", "sum"
"""Parts of a run: until a participant names another one, the steps that choose an arm, and what comes after them."""


class Send(NamedTuple):
    """Give a message to another participant."""

    to: str
    raw: bytes


class Receive(NamedTuple):
    """Wait for the next message of a participant; it is sent back into the generator.

    patient: for as long as the sender lives, where the message comes when all else is done.
    """

    sender: str
    patient: bool = False


class Part(NamedTuple):
    """From here on the seconds belong to this part of the run."""

    name: str


Play = Generator["Send | Receive | Part", Any, T]
"""A participant: no yield, no message."""

Watch = Callable[[int], None]
"""Is told how many pulls are done."""


@dataclass
class Spent:
    """Seconds of a participant in one part of a run.

    own: in which it computes, between two things it asks for.  wall: on the clock, waiting with it.  processor: of its
    process, whoever shares that.
    """

    own: float = 0.0
    wall: float = 0.0
    processor: float = 0.0


Times = dict[str, Spent]
"""By part."""


class Link(Protocol):
    """A connection to one participant."""

    def send(self, message: bytes, *, timeout: float | None = None) -> None:
        """Give it a message."""

    def receive(self, *, timeout: float | None = None, limit: int = _LONGEST) -> bytes | None:
        """Its next message; None where it has ended."""


class _Clock:
    """The part of the run that a participant is in, and what it spent in each; `own` is its driver's to add up."""

    def __init__(self) -> None:
        self.part = Spent()
        self.times: Times = {PREPARATION: self.part}
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def enter(self, name: str) -> None:
        """Another part begins."""
        self.leave()
        self.part = self.times.setdefault(name, Spent())

    def leave(self) -> None:
        """The part that runs ends here."""
        wall, processor = time.perf_counter(), time.process_time()
        self.part.wall += wall - self._wall
        self.part.processor += processor - self._processor
        self._wall, self._processor = wall, processor


class _Participant:
    """One of those that share a process."""

    def __init__(self, name: str, play: Play[Any]) -> None:
        self.name, self.play, self.clock = name, play, _Clock()
        self.waits_for = ""
        self.ended = False
        self.outcome: Any = None
        self.inbox: dict[str, deque[bytes]] = {}


def in_one_process(plays: Mapping[N, Play[T]]) -> tuple[dict[N, T], dict[N, Times]]:
    """What each participant ends with, and its seconds; each goes on for as long as it has what it waits for."""
    everyone: dict[str, _Participant] = {name: _Participant(name, play) for name, play in plays.items()}
    astray: list[str] = []
    ready = deque(everyone.values())
    now = time.perf_counter
    while ready:
        one = ready.popleft()
        reply: bytes | None = None
        if one.waits_for:
            reply = one.inbox[one.waits_for].popleft()
            one.waits_for = ""
        send, clock = one.play.send, one.clock
        started = now()
        try:
            while True:
                want = send(reply)
                reply = None
                if isinstance(want, Send):
                    other = everyone.get(want.to)
                    if other is None:
                        astray.append(f"{one.name} sends to {want.to}, which does not take part")
                        continue
                    other.inbox.setdefault(one.name, deque()).append(want.raw)
                    if other.waits_for == one.name and len(other.inbox[one.name]) == 1:
                        ready.append(other)
                elif isinstance(want, Receive):
                    box = one.inbox.get(want.sender)
                    if not box:
                        one.waits_for = want.sender
                        one.inbox.setdefault(want.sender, deque())
                        break
                    reply = box.popleft()
                else:
                    clock.part.own += now() - started
                    clock.enter(want.name)
                    started = now()
        except StopIteration as stop:
            one.ended, one.outcome = True, stop.value
            clock.leave()
        clock.part.own += now() - started
    waiting = [f"{one.name} for {one.waits_for}" for one in everyone.values() if not one.ended]
    if waiting or astray:
        said = [f"nobody can go on, {', '.join(waiting)}"] if waiting else []
        raise Desync("; ".join([*said, *astray[:1]]) + ": run the same release everywhere")
    return {name: everyone[name].outcome for name in plays}, {name: everyone[name].clock.times for name in plays}


def over_links(
    play: Play[T], links: Mapping[str, Link], *, timeout: float, first: float | None = None, nodes: Sequence[str] = ()
) -> tuple[T, Times]:  # fmt: skip
    """What this process's participant ends with, and its seconds: its own are those of the processor.

    timeout: seconds of silence of one it waits for.  first: of the first one, who may wait for others to start.  nodes:
    names of all, where they are processes that were launched together.
    """
    patience = timeout if first is None else first
    reply: bytes | None = None
    clock = _Clock()
    try:
        while True:
            want = play.send(reply)
            reply = None
            if isinstance(want, Send):
                links[want.to].send(want.raw, timeout=timeout)
            elif isinstance(want, Receive):
                reply = links[want.sender].receive(timeout=None if want.patient else patience, limit=_LONGEST)
                patience = timeout
                if reply is None:
                    peer = nodes.index(want.sender) if nodes else -1
                    raise PeerLost(f"{want.sender} has ended before its time: look at what it said", peer=peer)
            else:
                clock.enter(want.name)
    except StopIteration as stop:
        clock.leave()
        for part in clock.times.values():
            part.own = part.processor
        return stop.value, clock.times

"""Runs participants: all of them in one process, or one over channels to the others.  Knows bytes; no content.

Seconds of a participant are those in which it computes: between two things it asks for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from mpc.errors import Desync, PeerLost

T = TypeVar("T")
_LONGEST = 1 << 28


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

Seconds = dict[str, float]
"""By part."""


class Link(Protocol):
    """A connection to one participant."""

    def send(self, message: bytes) -> None:
        """Give it a message."""

    def receive(self, *, timeout: float | None = None, limit: int = _LONGEST) -> bytes | None:
        """Its next message; None where it has ended."""


class _Player:
    """One participant in the common process."""

    def __init__(self, name: str, play: Play[Any]) -> None:
        self.name, self.play = name, play
        self.seconds: Seconds = {}
        self.part = "preparation"
        self.waits_for = ""
        self.ended = False
        self.outcome: Any = None
        self.inbox: dict[str, deque[bytes]] = {}


def _missing(name: str, by: str) -> NoReturn:
    raise Desync(f"{by} sends to {name}, which does not take part: run the same release everywhere")


def in_one_process(plays: Mapping[str, Play[T]]) -> tuple[dict[str, T], dict[str, Seconds]]:
    """What each participant ends with, and its seconds; each goes on for as long as it has what it waits for."""
    players = {name: _Player(name, play) for name, play in plays.items()}
    ready = deque(players.values())
    clock = time.perf_counter
    while ready:
        player = ready.popleft()
        reply: bytes | None = None
        if player.waits_for:
            reply = player.inbox[player.waits_for].popleft()
            player.waits_for = ""
        send, seconds = player.play.send, player.seconds
        started = clock()
        try:
            while True:
                want = send(reply)
                reply = None
                if isinstance(want, Send):
                    other = players.get(want.to) or _missing(want.to, player.name)
                    other.inbox.setdefault(player.name, deque()).append(want.raw)
                    if other.waits_for == player.name and len(other.inbox[player.name]) == 1:
                        ready.append(other)
                elif isinstance(want, Receive):
                    box = player.inbox.get(want.sender)
                    if not box:
                        player.waits_for = want.sender
                        player.inbox.setdefault(want.sender, deque())
                        break
                    reply = box.popleft()
                else:
                    now = clock()
                    seconds[player.part] = seconds.get(player.part, 0.0) + now - started
                    started, player.part = now, want.name
        except StopIteration as stop:
            player.ended, player.outcome = True, stop.value
        seconds[player.part] = seconds.get(player.part, 0.0) + clock() - started
    if waiting := [player for player in players.values() if not player.ended]:
        said = ", ".join(f"{player.name} for {player.waits_for}" for player in waiting)
        raise Desync(f"nobody can go on, {said}: run the same release everywhere")
    return (
        {name: player.outcome for name, player in players.items()},
        {name: player.seconds for name, player in players.items()},
    )


def over_links(
    play: Play[T], links: Mapping[str, Link], *, timeout: float, first: float | None = None
) -> tuple[T, Seconds]:  # fmt: skip
    """What this process's participant ends with, and its seconds of processor time.

    timeout: seconds of silence of one it waits for.  first: of the first one, who may wait for others to start.
    """
    patience = timeout if first is None else first
    reply: bytes | None = None
    seconds: Seconds = {}
    part, started = "preparation", time.process_time()
    try:
        while True:
            want = play.send(reply)
            reply = None
            if isinstance(want, Send):
                links[want.to].send(want.raw)
            elif isinstance(want, Receive):
                reply = links[want.sender].receive(timeout=None if want.patient else patience, limit=_LONGEST)
                patience = timeout
                if reply is None:
                    raise PeerLost(f"{want.sender} has ended before its time: look at what it said", peer=-1)
            else:
                now = time.process_time()
                seconds[part] = seconds.get(part, 0.0) + now - started
                part, started = want.name, now
    except StopIteration as stop:
        seconds[part] = seconds.get(part, 0.0) + time.process_time() - started
        return stop.value, seconds

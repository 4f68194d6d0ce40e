"""Runs participants: all four in one process, or one of them over channels to the others.  Knows bytes; no content."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol, TypeVar

from mpc.errors import Desync, PeerLost

from .messages import Role
from .roles import Play, Receive, Send

T = TypeVar("T")
_LONGEST = 1 << 30


class Link(Protocol):
    """A connection to one participant."""

    def send(self, message: bytes) -> None:
        """Give it a message."""

    def receive(self, *, timeout: float | None = None, limit: int = _LONGEST) -> bytes | None:
        """Its next message; None where it has ended."""


def in_one_process(plays: Mapping[Role, Play[T]]) -> dict[Role, T]:
    """What each participant ends with; each goes on for as long as it has what it waits for."""
    sent: dict[tuple[Role, Role], deque[bytes]] = {}
    wants: dict[Role, Send | Receive] = {}
    ended: dict[Role, T] = {}

    def advance(role: Role, reply: bytes | None) -> None:
        try:
            wants[role] = plays[role].send(reply)
        except StopIteration as stop:
            wants.pop(role, None)
            ended[role] = stop.value

    for role in plays:
        advance(role, None)
    while wants:
        moved = False
        for role, want in list(wants.items()):
            if isinstance(want, Send):
                sent.setdefault((role, want.to), deque()).append(want.raw)
                advance(role, None)
                moved = True
            elif box := sent.get((want.sender, role)):
                advance(role, box.popleft())
                moved = True
        if not moved:
            waiting = ", ".join(
                f"{role} for {want.sender}" for role, want in wants.items() if isinstance(want, Receive)
            )
            raise Desync(f"nobody can go on, {waiting}: run the same release everywhere")
    return ended


def over_links(play: Play[T], links: Mapping[Role, Link], *, timeout: float) -> T:
    """What this process's participant ends with.  timeout: seconds of silence of one it waits for."""
    reply: bytes | None = None
    try:
        while True:
            want = play.send(reply)
            reply = None
            if isinstance(want, Send):
                links[want.to].send(want.raw)
            else:
                reply = links[want.sender].receive(timeout=None if want.patient else timeout, limit=_LONGEST)
                if reply is None:
                    raise PeerLost(f"{want.sender} has ended before its time: look at what it said", peer=-1)
    except StopIteration as stop:
        return stop.value

"""Roles that do not compute: they share inputs to the parties and receive reveals.  Knows one client's side.

A client is a generator as well.  It yields `Receive` and is sent back what was revealed to it, or yields `Send` and
its value is shared to the parties.  In a simulation the session hosts it; on a network `serve` drives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from . import ring
from .errors import ConfigError, RangeError, Told, told_by_client
from .prg import Prg, fresh_key


@dataclass(frozen=True)
class Receive:
    """Wait for a reveal of this shape and scale."""

    shape: tuple[int, ...] = ()
    scale: int = 0


@dataclass(frozen=True)
class Send:
    """Share a value to the parties; `bound` is checked here, at the owner's edge.

    of: what else both ends must say alike of the value, in a few words.
    """

    value: Any
    scale: int = 0
    bound: float | None = None
    of: str = ""

    def __repr__(self) -> str:
        return f"Send(value hidden, scale={self.scale})"

    def words(self, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """The encoded value, of the shape the parties wait for."""
        words = ring.encode(self.value, self.scale, bound=self.bound)
        if shape is not None and words.shape != shape:
            raise RangeError(f"the parties wait for shape {shape}, the client sends {words.shape}")
        return words


def link_text(kind: str, shape: tuple[int, ...], scale: int, of: str = "") -> str:
    """What both ends of a client's link say of a message, so that a disagreement is found and named."""
    return f"{kind} of shape {shape} with {scale} fraction bits{of and f', {of}'}"


ClientProgram = Generator["Receive | Send", Any, Any]


class HostedClient:
    """A client in the same process as all parties.

    It goes on when it learns something, and otherwise only when the program meets it again: what it sends is worked out
    no earlier than it is asked for.
    """

    def __init__(self, role: str, program: ClientProgram) -> None:
        self.role = role
        self._program = program
        self._wants: Receive | Send | None = None
        self._due = True  # whether it stands at a yield that has been answered, or before its first

    def _meet(self) -> Receive | Send | None:
        """What it wants now."""
        if self._due:
            self._step(None)
        return self._wants

    def _step(self, reply: Any) -> None:
        self._due = False
        try:
            self._wants = self._program.send(reply)
        except StopIteration:
            self._wants = None

    def learn(self, words: np.ndarray, scale: int) -> None:
        """Hand it a reveal."""
        wants = self._meet()
        if not isinstance(wants, Receive):
            raise ConfigError(f"a value is revealed to {self.role!r}, which waits for {_name(wants)}")
        if wants.shape != words.shape or wants.scale != scale:
            raise ConfigError(
                f"{self.role!r} waits for shape {wants.shape} at scale {wants.scale}, "
                f"revealed is {words.shape} at {scale}"
            )
        self._step(ring.decode(words, scale))

    def give(self, shape: tuple[int, ...], scale: int) -> np.ndarray:
        """Take the value it sends."""
        wants = self._meet()
        if not isinstance(wants, Send):
            raise ConfigError(f"the parties wait for an input of {self.role!r}, which waits for {_name(wants)}")
        if wants.scale != scale:
            raise RangeError(f"{self.role!r} sends {wants.scale} fraction bits, the parties wait for {scale}")
        words = wants.words(shape)
        self._due = True
        return words

    def finish(self) -> None:
        """Let it do what follows its last answer."""
        if self._due:
            self._step(None)


def _name(wants: Receive | Send | None) -> str:
    return {Receive: "a reveal", Send: "the parties to take its input"}.get(type(wants), "nothing: it has ended")


class ClientLink(Protocol):
    """A client's end of a transport; `what` says what a message carries and must be the same at both ends."""

    parties: int

    def send(self, payloads: np.ndarray, what: str) -> None:
        """Row p of (parties, n) bytes to party p."""

    def receive(self, count: int, what: str) -> np.ndarray:
        """(parties, count) bytes, row p from party p."""

    def say_waiting(self, whom: str) -> None:
        """Between two messages, tell the parties that this client waits for somebody who is none of them."""

    def say_noted(self, done: int) -> None:
        """Tell the parties that what this client noted is on its disk, up to decision `done`."""

    def close(self, reason: Told | None = None) -> None:
        """Leave; with a reason, tell the parties why first."""


def serve(link: ClientLink, program: ClientProgram, leaving: Callable[[], None] = lambda: None) -> Any:
    """Drive a client's program over a network until it ends; gives its result.  leaving: done before it leaves.

    Of an error that ends it the parties hear the kind, and whom it lost; the words are the client's own.
    """
    prg = Prg(fresh_key())
    reply: Any = None
    try:
        while True:
            wants = program.send(reply)
            prg.require_own()
            if isinstance(wants, Receive):
                count = math.prod(wants.shape)
                rows = link.receive(8 * count, link_text("reveal", wants.shape, wants.scale)).view(np.uint64)
                words = rows.sum(axis=0, dtype=np.uint64).reshape(wants.shape)
                reply = ring.decode(words, wants.scale)
            else:
                words = wants.words()
                shares = prg.words((link.parties, words.size))
                shares[0] += words.reshape(-1) - shares.sum(axis=0, dtype=np.uint64)
                link.send(shares.view(np.uint8), link_text("input", words.shape, wants.scale, wants.of))
                reply = None
    except StopIteration as stop:
        try:
            leaving()
        except BaseException as error:
            _fail(link, prg, error)
            raise
        link.close()
        return stop.value
    except BaseException as error:
        _fail(link, prg, error)
        raise


def _fail(link: ClientLink, prg: Prg, error: BaseException) -> None:
    if not prg.forked:  # else the link is the parent's
        link.close(reason=told_by_client(error))

"""What a transport does.  Knows bytes and node numbers; no shares.

Nodes 0..parties-1 are the computing parties, the numbers behind them are clients.  In one round a party sends each
peer one message: what it sends to all, followed by what it sends to that peer alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import ConfigError, Told

DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where a message belongs: the round's number, a digest of what is exchanged, and the program's position."""

    round: int
    digest: bytes
    position: str


class Transport(Protocol):
    """Moves the messages of the parties that this process hosts."""

    @property
    def parties(self) -> int:
        """N."""

    @property
    def hosted(self) -> tuple[int, ...]:
        """The parties this process plays."""

    @property
    def frame_bytes(self) -> int:
        """Bytes of headers sent so far."""

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """One round.  common: (hosted, n) bytes for every party; direct[q]: (hosted, m) bytes for party q alone.

        Gives (parties, n), and for each hosted q in `direct` its (parties, m): row p is what party p sent.
        """

    def send_to_client(self, node: int, what: str, payload: np.ndarray) -> None:
        """Send (1, n) bytes to a client."""

    def receive_from_client(self, node: int, what: str, count: int) -> np.ndarray:
        """Receive (1, count) bytes from a client."""

    def await_noted(self, node: int, done: int) -> None:
        """Between two rounds, wait until a client says that its notes are on its disk up to decision `done`."""

    def say_waiting(self, whom: str) -> None:
        """Between two rounds, tell the peers that this party waits for somebody who is none of them."""

    def close(self, reason: Told | None = None) -> None:
        """Leave; with a reason, tell the peers why first."""


def check_timeout(seconds: float) -> None:
    """A wait has an end."""
    if not 0 < seconds < 1e7:
        raise ConfigError(f"a timeout is a positive number of seconds, not {seconds:g}")

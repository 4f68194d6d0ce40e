"""All parties in one process: a round is already over when it begins.  Knows no peers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import ConfigError, Told
from .transport import Stamp


class Memory:
    """Hosts every party; what they send is handed back as it is."""

    frame_bytes = 0

    def __init__(self, parties: int) -> None:
        if parties < 2:
            raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")
        self.parties = parties
        self.hosted = tuple(range(parties))

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Every row is already here."""
        return common, dict(direct)

    def send_to_client(self, node: int, what: str, payload: np.ndarray) -> None:
        raise ConfigError("in memory, clients are programs in the same process: hand them to the session")

    def receive_from_client(self, node: int, what: str, count: int) -> np.ndarray:
        raise ConfigError("in memory, clients are programs in the same process: hand them to the session")

    def await_noted(self, node: int, done: int) -> None:
        raise ConfigError("in memory, clients are programs in the same process: what they note is kept with the rest")

    def say_waiting(self, whom: str) -> None:
        """Nobody waits."""

    def close(self, reason: Told | None = None) -> None:
        """Nothing is held."""

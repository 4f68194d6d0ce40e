"""What the clients of a run hold, and what was paid."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.ppcb import clients
from protocols.ppcb.clients import Tally, check_memory
from protocols.ppcb.settings import Settings


def test_memory_for_episodes_is_for_every_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million steps of ten replicas are some ten GB of contexts and outcomes, and of one replica two."""
    monkeypatch.setattr(clients, "_free_memory", lambda: 5 * 10**9)
    check_memory(Settings(10, 20), 1_000_000)
    with pytest.raises(ConfigError, match=r"of memory, and 5\.0 GB are free: about .* steps fit, or fewer --replicas"):
        check_memory(Settings(10, 20, replicas=10), 1_000_000)
    monkeypatch.setattr(clients, "_free_memory", lambda: 20 * 10**9)
    check_memory(Settings(10, 20, replicas=10), 1_000_000)


def test_a_tally_counts_what_was_added() -> None:
    tally = Tally()
    tally.add(np.array([1.0, 0.0]))
    tally.add(np.array([[0.5], [0.5]]))
    assert (tally.count, tally.total, tally.average) == (4, 2.0, 0.5)

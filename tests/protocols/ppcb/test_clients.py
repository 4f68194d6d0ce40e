"""What the clients of a run hold, and what was paid."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.client import Send
from mpc.errors import ConfigError, RangeError
from protocols.ppcb import clients
from protocols.ppcb.clients import Tally, check_memory, payer
from protocols.ppcb.settings import Settings
from protocols.run.desk import MemoryDesk, World


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


def test_what_the_world_pays_lies_in_the_declared_range() -> None:
    world = World()
    world.told.extend(np.array([[reward]]) for reward in (1.0, -0.9))
    program = payer(None, Settings(2, 2, delay=1), 3, MemoryDesk(world))
    first, second = next(program), program.send(None)
    assert isinstance(first, Send) and isinstance(second, Send)
    assert first.value.tolist() == [[0.0]] and second.value.tolist() == [[1.0]], "of the first one nothing came yet"
    with pytest.raises(RangeError, match="declared is 0 to 1"):
        program.send(None)

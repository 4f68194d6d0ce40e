"""The short form of `scripts/fuzz`."""

from __future__ import annotations

from mpc.net.fuzzing import fuzz


def test_a_peer_that_sends_anything_meets_declared_errors_alone() -> None:
    ends = fuzz(1200, 7)
    assert ends.total() == 1200 and {"Desync", "PeerLost", "ConfigError", "accepted"} <= ends.keys(), ends

"""What tests of launched processes share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure all others end by themselves, however busy the machine is; who needs no such time says so."""
    monkeypatch.setattr("mpc.launch._GRACE", 60.0)

"""What the tests of programs and commands lean on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """A command takes SIGTERM, SIGHUP and SIGINT for itself: give them back."""
    before = {how: signal.getsignal(how) for how in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for how, handler in before.items():
        signal.signal(how, handler)

"""What the tests of programs and commands lean on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from mpc.lifeline import ENDS


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """A command takes the signals that end it for itself: give them back."""
    before = {how: signal.getsignal(how) for how in ENDS}
    yield
    for how, handler in before.items():
        signal.signal(how, handler)

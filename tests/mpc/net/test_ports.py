"""Ports for later: nobody who draws beside is given the same one."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import pytest

from mpc.net import ports
from mpc.net.joining import listen
from tests.parties.processes import ENVIRONMENT


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance draws the first that there are."""
    drawn = count()
    monkeypatch.setattr(ports.secrets, "randbelow", lambda _: next(drawn))


@pytest.mark.skipif(sys.platform != "linux", reason="the names are Linux'")
def test_a_port_that_was_drawn_is_not_drawn_by_another_process(in_order: None) -> None:
    drawn = [ports.free_port() for _ in range(3)]
    assert sorted(set(drawn)) == drawn
    says = (
        "from itertools import count; from mpc.net import ports; drawn = count()\n"
        "ports.secrets.randbelow = lambda _: next(drawn)\nprint(ports.free_port())"
    )
    command = [sys.executable, "-c", says]
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True)
    assert int(done.stdout) not in drawn


def test_one_that_somebody_listens_at_is_not_drawn(in_order: None) -> None:
    taken = ports.free_port()
    with listen(port=taken + 1):
        assert ports.free_port() not in (taken, taken + 1)

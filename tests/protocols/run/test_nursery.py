"""What is loaded for the roles of all programs, once for all of them, leaves a process that may be forked."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from bandits.environments import synthetic_linear
from mpc import nursery
from mpc.nursery import Nurseries, Nursery
from protocols.ppcb.run import Bandit
from protocols.ppcb.settings import Settings
from protocols.run.launch import Processes, launch
from tests.parties.processes import ENVIRONMENT

_LOADS = """
import importlib, json, os, sys, threading
for module in sys.argv[1:]:
    importlib.import_module(module)
print(json.dumps([len(os.listdir("/proc/self/task")), threading.active_count(), "torch" in sys.modules]))
"""
LOADED = (
    "protocols.run.role_process", "protocols.published.participant", "protocols.cli", "protocols.commands.dealer",
    "protocols.commands.operation", "protocols.ppcb.program", "protocols.samba.mpc.program",
    "protocols.linucb_ds.mpc.run", "protocols.helba.program", "protocols.samba.classic.cast",
    "protocols.linucb_ds.classic.cast",
)  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no nursery")
def test_it_has_one_thread_and_no_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, *LOADED], capture_output=True, text=True, timeout=300,
        env={**os.environ, **ENVIRONMENT}, check=True,
    )  # fmt: skip
    assert done.stdout == "[1, 1, false]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no nursery")
def test_a_dealer_is_of_the_same_nursery_as_the_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not it was said how many threads a process may have."""
    made, new = list[Nursery](), Nursery.new

    def counted(*given: Any) -> Nursery:
        made.append(new(*given))
        return made[-1]

    program = Bandit.on(synthetic_linear(3, 2, seed=5), Settings(3, 2, eps=0.2), parties=2, steps=3, seed=5)
    for threads in (None, "1"):
        with monkeypatch.context() as patch:
            patch.delenv("OMP_NUM_THREADS", raising=False)
            if threads is not None:
                patch.setenv("OMP_NUM_THREADS", threads)
            patch.setattr(nursery, "NURSERIES", nurseries := Nurseries())
            patch.setattr(Nursery, "new", counted)
            launch(program, Processes(60.0))
            nurseries._end()
        assert len(made) == 1, threads
        made.clear()

"""What is loaded for the roles of all programs, once for all of them, leaves a process that may be forked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
        [sys.executable, "-c", _LOADS, *LOADED], capture_output=True, text=True, timeout=100,
        env={**os.environ, **ENVIRONMENT}, check=True,
    )  # fmt: skip
    assert done.stdout == "[1, 1, false]\n"

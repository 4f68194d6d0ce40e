"""What ties a process to its launcher: no launcher, no process; Ctrl-C is heard; tidying up is not broken off."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mpc.lifeline import ENDS, lifeline, to_the_end
from tests.parties.processes import DEAF, ENVIRONMENT, ended, script

_WAITS = """
import time
from mpc.launch import party_main
def main():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
party_main(main)
"""
# In short waits: a signal that comes between Python's last look and a wait is heard when that wait is over.


def started(text: str, *, deaf: bool = False) -> subprocess.Popen[str]:
    """A process that runs Python text; deaf: as a shell starts what stands in the background."""
    command = [*(DEAF if deaf else []), *script(text)]
    return subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True)


def test_a_launcher_keeps_no_descriptor() -> None:
    with lifeline() as (read, _):
        os.fstat(read)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)


def test_a_process_that_has_not_joined_ends_with_its_launcher(tmp_path: Path) -> None:
    """One that computes or loads before it looks for the others."""
    launcher = started(f"""
import sys
from mpc.launch import launch
launch([sys.executable, "-c", {_WAITS!r}], 2, started=lambda pids: print(*pids, flush=True),
       output=lambda name, line: print(line, flush=True))
""")
    try:
        assert launcher.stdout is not None
        pids = [int(pid) for pid in launcher.stdout.readline().split()]
        assert [launcher.stdout.readline() for _ in pids] == ["ready\n"] * 2
    finally:
        launcher.kill()
        launcher.communicate(timeout=300)
    for pid in pids:
        assert ended(pid), f"process {pid} has outlived its launcher"


def test_ctrl_c_is_heard_in_the_background() -> None:
    process = started(_WAITS, deaf=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    finally:
        process.kill()
        process.communicate(timeout=300)


@pytest.mark.parametrize("how", ENDS, ids=lambda how: how.name)
def test_a_signal_waits_for_the_end_and_then_does_what_it_did(how: signal.Signals) -> None:
    class Ended(Exception):
        pass

    def end(*_: object) -> None:
        raise Ended

    done = []
    before = signal.signal(how, end)
    try:
        with pytest.raises(Ended), to_the_end():
            signal.raise_signal(how)
            signal.raise_signal(how)
            done.append("all of it")
        assert done and signal.getsignal(how) is end
    finally:
        signal.signal(how, before)

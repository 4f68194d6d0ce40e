"""How a command ends: one line and exit code 2 for a user's mistake, 130 for Ctrl-C, 0 for a reader who left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from mpc.errors import ConfigError
from mpc.lifeline import ENDS, lifeline
from protocols.run.exits import exit_codes
from tests.parties.processes import DEAF

from .harness import LIMIT, ROOT

Output = pytest.CaptureFixture[str]
_SMALLER = "choose smaller sizes, such as fewer arms, dimensions or steps"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("at least 1 step"), 2, "error: at least 1 step\n"),
        (KeyError("mine"), 2, "error: 'mine'\n"),
        (FileNotFoundError(2, "No such file or directory", "a/b"), 2, "error: a/b: No such file or directory: move\n"),
        (OSError("full"), 2, "error: full: move\n"),
        (MemoryError(), 2, f"error: there is not the memory for this: {_SMALLER}\n"),
        (KeyboardInterrupt(), 130, "stopped here\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_an_end_has_a_code_and_a_line(error: BaseException, code: int, said: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as end, exit_codes(KeyError, place="move", stopped="stopped here"):
        raise error
    assert end.value.code == code
    assert capsys.readouterr().err == said


def test_ctrl_c_on_the_way_out_says_nothing_more(capsys: Output) -> None:
    with pytest.raises(SystemExit) as end, exit_codes():
        try:
            raise SystemExit(3)
        finally:
            raise KeyboardInterrupt
    assert end.value.code == 3
    assert capsys.readouterr().err == ""


def test_what_is_nobodys_mistake_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="ours"), exit_codes():
        raise ValueError("ours")


_WAITS = """
import argparse, runpy, sys, time
def wait(*_, **__):
    print('waits', flush=True)
    while True:
        time.sleep(0.05)
"""
# In short waits: a signal that comes between Python's last look and a wait is heard when that wait is over.
_MOMENTS = {
    "loading": """
class Finder:
    def find_spec(self, name, path=None, target=None):
        return wait() if name == 'protocols.cli' else None
sys.meta_path.insert(0, Finder())
""",
    "making its options": "argparse.ArgumentParser.add_subparsers = wait\n",
}


@pytest.mark.parametrize("moment", _MOMENTS)
@pytest.mark.parametrize(("ctrl_c", "code", "said"), [(False, 1, ""), (True, 130, "stopped\n")])
def test_a_command_that_does_nothing_yet_ends_with_its_launcher_and_of_ctrl_c(
    ctrl_c: bool, code: int, said: str, moment: str
) -> None:  # fmt: skip
    """A dealer beside a run is such a command, and loads for seconds on a busy machine."""
    waits = f"{_WAITS}{_MOMENTS[moment]}runpy.run_module('protocols', run_name='__main__')\n"
    with lifeline() as (held, tied):
        process = subprocess.Popen(
            [*DEAF, sys.executable, "-c", waits], env={**os.environ, **tied}, pass_fds=[held], cwd=ROOT,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        if ctrl_c:
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT)
    try:
        assert process.wait(LIMIT) == code
    finally:
        process.kill()
        _, complained = process.communicate()
    assert complained == said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_when_all_is_done_ends_it_without_a_word(how: signal.Signals) -> None:
    """Python may take a while to end, as it waits for what had loaded the modules of its processes."""
    waits = f"{_WAITS}import atexit\natexit.register(wait)\nsys.argv = ['masked', '--help']\n"
    process = subprocess.Popen(
        [*DEAF, sys.executable, "-c", f"{waits}runpy.run_module('protocols', run_name='__main__')\n"], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and any(line == "waits\n" for line in process.stdout)
        process.send_signal(how)
        assert process.wait(LIMIT) == -how
    finally:
        process.kill()
        _, complained = process.communicate()
    assert complained == ""


def test_a_commands_end_leaves_signals_as_they_were() -> None:
    before = [signal.getsignal(how) for how in ENDS]
    with exit_codes():
        assert [signal.getsignal(how) for how in ENDS] != before
    assert [signal.getsignal(how) for how in ENDS] == before


@pytest.mark.parametrize(("spared", "code"), [(False, 129), (True, 130)])
def test_a_closed_terminal_ends_a_command_but_under_nohup(spared: bool, code: int) -> None:
    own = "signal.signal(signal.SIGHUP, signal.SIG_IGN)" if spared else ""
    waits = f"{_WAITS}{_MOMENTS['making its options']}import signal\n{own}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{waits}runpy.run_module('protocols', run_name='__main__')\n"], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGHUP)
        if spared:
            process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == code
    finally:
        process.kill()
        process.communicate()

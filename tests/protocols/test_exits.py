"""How a command ends: one line and exit code 2 for a user's mistake, 130 for Ctrl-C, 0 for a reader who left."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mpc.errors import ConfigError
from mpc.lifeline import lifeline
from protocols.run.exits import exit_codes

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


def test_what_is_nobodys_mistake_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="ours"), exit_codes():
        raise ValueError("ours")


def test_a_command_that_is_still_loading_ends_with_its_launcher() -> None:
    """A dealer beside a run is such a command, and loads for seconds on a busy machine."""
    loads_for_ever = (
        "import runpy, sys, time\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'protocols.cli':\n"
        "            print('loading', flush=True)\n"
        "            time.sleep(1000)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('protocols', run_name='__main__')\n"
    )
    with lifeline() as (held, tied):
        process = subprocess.Popen(
            [sys.executable, "-c", loads_for_ever], env={**os.environ, **tied}, pass_fds=[held], cwd=ROOT,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "loading\n"
    try:
        assert process.wait(LIMIT) == 1
    finally:
        process.kill()
        process.communicate()

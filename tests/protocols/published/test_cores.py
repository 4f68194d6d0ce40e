"""Work on several cores: the same answers, no secret drawn twice, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpc.errors import ConfigError, MaskedError
from protocols.published.cores import MOST, Cores


def form(*row: int) -> int:
    return sum((place + 1) * value for place, value in enumerate(row))


def drawn() -> int:
    return int.from_bytes(os.urandom(16), "big")


def slow(seconds: int) -> int:
    time.sleep(seconds)
    return seconds


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_answers_come_in_their_order(cores: int) -> None:
    """Of any number of rows, signs and lengths, and of lists that no pipe holds."""
    with Cores(cores, drawn, form, least=0.0) as spread:
        for count in (0, 1, 2, 4, 7, 1000):
            rows = [(number, -(1 << 4000) * number, 1 << (8 * number % 4096)) for number in range(count)]
            assert spread.map(form, rows) == [form(*row) for row in rows]
        assert len(set(spread.map(drawn, [()] * 40))) == 40


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def children(of: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{of}/task/{of}/children").read_text().split()]


def test_helpers_hold_nothing_but_their_pipes_and_end(tmp_path: Path) -> None:
    before = set(children(os.getpid()))
    with (tmp_path / "a file of the role").open("w"):
        spread = Cores(3, form, least=0.0)
        helpers = set(children(os.getpid())) - before
        assert len(helpers) == 2 and spread.map(form, [(1,), (2,), (3,)]) == [1, 2, 3]
        for pid in helpers:
            held = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
            assert {name.partition(":")[0] for name in held} == {"/dev/null", "pipe"}
            assert sum(name.startswith("pipe") for name in held) == 3
        spread.close()
    assert all(gone(pid) for pid in helpers)


def test_a_helper_that_was_killed_is_told() -> None:
    before = set(children(os.getpid()))
    with Cores(2, form, least=0.0) as spread:
        (helper,) = set(children(os.getpid())) - before
        os.kill(helper, signal.SIGKILL)
        with pytest.raises(MaskedError, match=f"process {helper}, which helps with --cores, has ended"):
            spread.map(form, [(1,), (2,)])


def test_helpers_end_with_a_role_that_is_killed_while_they_work(tmp_path: Path) -> None:
    role = (
        "import sys; from tests.protocols.published.test_cores import *\n"
        "spread = Cores(3, slow)\n"
        "print(*children(os.getpid()), flush=True)\n"
        "spread.map(slow, [(1000,)] * 3)\n"
    )
    with subprocess.Popen([sys.executable, "-c", role], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        helpers = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(helpers) == 2
    deadline = time.monotonic() + 300
    while not all(gone(pid) for pid in helpers):
        assert time.monotonic() < deadline, "helpers outlive their role"
        time.sleep(0.02)


def test_a_short_list_stays_with_its_role() -> None:
    """By what its like took: the first one goes to helpers, and says that it was not worth it."""
    before = set(children(os.getpid()))
    with Cores(2, form, least=60.0) as spread:
        (helper,) = set(children(os.getpid())) - before
        assert spread.map(form, [(1,), (2,)]) == [1, 2]
        os.kill(helper, signal.SIGKILL)
        assert spread.map(form, [(number,) for number in range(9)]) == list(range(9))


@pytest.mark.parametrize("cores", [0, -1, MOST + 1, 10**9])
def test_as_many_cores_as_no_machine_has_are_refused(cores: int) -> None:
    with pytest.raises(ConfigError, match=f"--cores is 1 to {MOST}, not {cores}"):
        Cores(cores, form)

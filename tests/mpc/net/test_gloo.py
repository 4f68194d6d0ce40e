"""The start and end of a gloo group.  What goes through it is tested beside the other transports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mpc.net.frames import HEADER_BYTES
from tests.parties.processes import ENVIRONMENT, Launched, script
from tests.parties.torchrun import torchrun

pytestmark = pytest.mark.needs("torch")

_START = """
import os, sys
import torch.distributed as dist
from mpc.errors import ConfigError
from mpc.net.gloo import Gloo
"""


def python(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _START + text], env={**ENVIRONMENT, "PATH": "/usr/bin:/bin", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_group_that_does_not_start_says_why(tmp_path: Path) -> None:
    """A world of one, a group that stands already, a number outside, a peer that never comes, a foolish timeout."""
    done = python(f"""
def tries(**how):
    try:
        Gloo(**how)
    except ConfigError as error:
        print(error, dist.is_initialized())
tries(init_method="file://{tmp_path}/one", party=0, parties=1, timeout=200)
tries(init_method="file://{tmp_path}/two", party=2, parties=2, timeout=1)
tries(init_method="file://{tmp_path}/three", party=0, parties=2, timeout=1)
tries(init_method="file://{tmp_path}/four", party=0, parties=2, timeout=0, starting=1)
dist.init_process_group("gloo", init_method="file://{tmp_path}/five", rank=0, world_size=1)
tries(init_method="file://{tmp_path}/six", party=0, parties=2, timeout=1)
dist.destroy_process_group()
""")
    assert done.returncode == 0, done.stderr
    one, two, three, four, five = done.stdout.splitlines()
    assert "at least 2 parties" in one and one.endswith("False")
    assert "torch.distributed could not start" in two and two.endswith("False")
    assert "torch.distributed could not start" in three and three.endswith("False")
    assert "a timeout is a positive number" in four
    assert "already has a process group" in five and five.endswith("True")


TORCHRUN = """
import os, sys
from pathlib import Path
from mpc.launch import join, party_main
from tests.parties.programs import every_operation, rounds, seeded

def main():
    transport = join()
    if sys.argv[1] == "closes":
        with seeded(transport) as session:
            said = every_operation(session)["learned"]
    else:  # leaves the session open
        session = seeded(transport)
        said = str(session.run(rounds(session, 3)))
    Path(__file__).with_name(os.environ["RANK"]).write_text(said)

party_main(main)
"""


@pytest.mark.parametrize("how", ["closes", "leaves"])
def test_torchrun_runs_a_session_and_ends_in_peace(tmp_path: Path, how: str) -> None:
    file = tmp_path / "party.py"
    file.write_text(TORCHRUN)
    done = torchrun(2, str(file), how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text() != ""
    for word in ("destroy_process_group", "Traceback", "SIGABRT", "terminate called"):
        assert word not in done.stderr


LOCAL = """
import json, os
from pathlib import Path
from mpc.errors import ConfigError
from mpc.launch import join
from mpc.rounds import Input
from tests.parties.programs import *

def listens():
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    inodes = {os.readlink(link)[8:-1] for link in links if os.path.islink(link)}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/self/net/{table}").open()]
    return sorted({row[1].split(":")[0] for row in rows if row[9] in inodes})

def asks():
    yield Input("patient")

session = seeded(join(), roles=("patient",))
before = session.transport.frame_bytes
session.run(rounds(session, 5, (16,)))
headers = [session.transport.frame_bytes - before, session.meter.total.frame_bytes - before]
addresses, refusals = listens(), []
for call in (lambda: session.transport.send_to_client(2, "", np.zeros((1, 8), np.uint8)),
             lambda: session.run(asks())):
    try:
        call()
    except ConfigError as error:
        refusals.append(str(error))
print(json.dumps({"headers": headers, "addresses": addresses, "refusals": refusals}))
"""


@pytest.fixture(scope="module")
def told() -> list[dict]:
    """What each of two local parties found."""
    launched = Launched(script(LOCAL), 2, transport="gloo")
    assert launched.error is None
    return [launched.outcome(f"party {p}") for p in range(2)]


def test_each_message_has_one_header(told: list[dict]) -> None:
    """16 words are 128 bytes, as many as a header has."""
    assert [each["headers"] for each in told] == [[5 * HEADER_BYTES] * 2] * 2


def test_local_groups_stay_on_this_machine(told: list[dict]) -> None:
    """Gloo listens on the address of the host's name, which may be a public one; the launcher names loopback."""
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    for each in told:
        assert each["addresses"]
        assert set(each["addresses"]) <= loopback


def test_gloo_carries_no_clients(told: list[dict]) -> None:
    """Other clients, that is, than the ranks which it was started with."""
    for each in told:
        assert len(each["refusals"]) == 2
        assert all(
            line.startswith("gloo carries no clients but those it was started with, 0:") for line in each["refusals"]
        )

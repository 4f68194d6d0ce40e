"""Roles with a network between them: the same arms over links with delay, and what somebody on the wire sees."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mpc.errors import ConfigError
from mpc.net import door
from mpc.net.cutting import Wire
from protocols.bench.delay_line import Line, delayed
from protocols.ppcb.program import PAYER, PULLER
from protocols.run.launch import Processes, launch

from ...parties.processes import ENVIRONMENT
from ..machines import Machines, good
from .trial import STEPS, bandit, paying, session

_HANDSHAKE, _CHANGE, _DATA = 22, 20, 23
_IN_HANDSHAKE = 3, 5
"""Messages of TLS that the caller, and who is called, encrypt already: their signatures differ in length anyhow."""
_ALERT = 24
"""Who finds that the other side has closed says so in an alert, of two bytes: which side that is, is the clock's."""
_VERSION_1_3 = bytes([0, 43, 0, 2, 3, 4])  # as who is called chooses it


@pytest.fixture
def line() -> Iterator[Line]:
    with ExitStack() as around:
        try:
            yield around.enter_context(delayed(5, 5.0))
        except ConfigError as error:
            pytest.skip(str(error))


def test_the_bandit_in_namespaces_with_delay_gives_the_arms_of_a_launched_run(line: Line, tmp_path: Path) -> None:
    machines = session(tmp_path, 3)
    copied, names = machines.dealt(), machines.apart.names
    for path in machines.files.values():
        text = path.read_text()
        for node, port in enumerate(machines.ports):
            text = text.replace(f"127.0.0.1:{port}", f"{line.address(node)}:7700")
        path.write_text(text)
    roles = {
        role: subprocess.Popen(
            line.inside([sys.executable, "-m", "protocols", "party", "--config", str(machines.files[role])], node),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )
        for node, role in enumerate(names)
    }  # fmt: skip
    try:
        world = threading.Thread(target=_be, args=(roles[PULLER], roles[PAYER]), daemon=True)
        world.start()
        others = [roles[role] for role in names if role not in (PULLER, PAYER)]
        told = {process.pid: process.communicate(timeout=300)[1] for process in others}
        for role in (PULLER, PAYER):
            roles[role].wait(300)
        world.join(300)
    finally:
        for process in roles.values():
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in roles.values()), told
    assert machines.result("party 0")["seconds_per_step"] > 10 * 0.005, "its 12 rounds took no time"
    launched = launch(bandit(3), Processes(60.0, copied))
    assert machines.result(PULLER)["learned"] == launched.arms.reshape(STEPS, 1).tolist()


def _be(puller: subprocess.Popen[str], payer: subprocess.Popen[str]) -> None:
    """What is between the two."""
    assert puller.stdout is not None and payer.stdin is not None
    for said in puller.stdout:
        payer.stdin.write(json.dumps(paying(3)(json.loads(said))) + "\n")
        payer.stdin.flush()


def test_the_wire_shows_tls_1_3_alone_and_the_same_sizes_for_other_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs with the same public parameters, and other features, coins and rewards, hence other arms."""
    monkeypatch.setattr(door, "_REMIND", 1e9)  # for whom one waits is said by the clock: one that starts late is seen
    first, arms = captured(tmp_path / "first", 5)
    second, others = captured(tmp_path / "second", 6)
    assert arms != others
    assert first.keys() == second.keys() and len(first) == 9
    for link, ways in first.items():
        assert ways == second[link], link


def captured(folder: Path, seed: int) -> tuple[dict[tuple[str, int], list[list[int]]], list[list[int]]]:
    """The sizes of all that was sealed on each link, there and back; the arms that were pulled."""
    machines = session(folder, 3, seed=seed)
    machines.dealt()
    wires = {
        (role, node): tapped(machines, role, node)
        for at, role in enumerate(machines.apart.names)
        for node in range(min(at, 3))
    }
    machines = patient(machines)
    good(machines.play(worlds=[(PULLER, PAYER, paying(3, seed))]))
    sizes = {}
    for link, wire in wires.items():
        wire.close()
        ((there, back),) = [ways for ways in wire.carried if ways[1]]  # who called too early was not answered
        sizes[link] = [sealed(bytes(raw), before) for raw, before in zip((there, back), _IN_HANDSHAKE, strict=True)]
        assert _VERSION_1_3 in back[: record_sizes(bytes(back))[0][1]], "what was agreed on"
    return sizes, machines.result(PULLER)["learned"]


def tapped(machines: Machines, role: str, node: int) -> Wire:
    """A wire on which this role reaches that node."""
    wire, path = Wire(("127.0.0.1", machines.ports[node])), machines.files[role]
    known = f'address = "127.0.0.1:{machines.ports[node]}"'
    text = path.read_text()
    assert known in text
    path.write_text(text.replace(known, f'address = "127.0.0.1:{wire.address[1]}"'))
    return wire


def patient(machines: Machines) -> Machines:
    """Nobody says meanwhile that it waits, however busy this machine is."""
    for path in machines.files.values():
        path.write_text(re.sub(r"^(start|round) = .*$", r"\1 = 1000.0", path.read_text(), flags=re.M))
    return machines


def record_sizes(raw: bytes) -> list[tuple[int, int]]:
    """The kind and size of each record of TLS; nothing else may be there."""
    found, at = [], 0
    while at < len(raw):
        kind, version, size = struct.unpack_from(">BHH", raw, at)
        assert kind in (_HANDSHAKE, _CHANGE, _DATA) and version in (0x0301, 0x0303), raw[at : at + 20]
        found.append((kind, 5 + size))
        at += 5 + size
    assert at == len(raw), "a record was cut off"
    return found


def sealed(raw: bytes, before: int) -> list[int]:
    """Sizes of all messages, which are encrypted, behind the handshake; in front of it one hello in the clear, as TLS
    1.3 has it."""
    kinds, sizes = zip(*record_sizes(raw), strict=True)
    assert kinds.count(_HANDSHAKE) == 1 and kinds[0] == _HANDSHAKE, "one message in the clear"
    assert kinds.count(_CHANGE) == 1 and set(kinds[2:]) == {_DATA}
    return list(sizes[2 + before : -1 if sizes[-1] == _ALERT else None])

"""A dealer beside a run ends with its launcher, and is named, within the timeout, by all that wait for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from mpc.correlations import TruncationMask
from mpc.errors import DEALER, PeerLost
from mpc.launch import Place, join, join_as_client
from mpc.net.channel import await_parties, listen
from mpc.net.frames import DEALER_NODE
from mpc.net.keys import KEY_BYTES, keys_for
from mpc.nursery import Started, start
from mpc.prg import fresh_key
from offline import Plan
from offline.stream import _HELLO
from protocols.run.dealer_process import source_for
from tests.parties.processes import ENVIRONMENT, ended, script
from tests.parties.threads import side_by_side

from ..harness import LIMIT, awaited, children, masked, without_progress
from ..ppcb.commands import SMALL

PLAN = Plan("waits", 2, (TruncationMask((3,), 20),))
Output = pytest.CaptureFixture[str]


def test_a_dealer_ends_with_its_launcher_before_any_party_has_called(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "given.json")
    launcher = subprocess.Popen(
        script(f"""
import threading
from pathlib import Path
from offline import Plan
from protocols.run.dealer_process import dealer_beside
with dealer_beside(Plan.load(Path({str(tmp_path / "given.json")!r})), 5, Path({str(tmp_path)!r})):
    print("ready", flush=True)
    threading.Event().wait(600)
"""),
        env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert launcher.stdout is not None and launcher.stdout.readline() == "ready\n"
        (dealer,) = awaited(lambda: children(launcher.pid, "dealer"))
        launcher.kill()
        gone = ended(dealer)
        if not gone:
            os.kill(dealer, signal.SIGKILL)
    finally:
        launcher.kill()
        launcher.communicate(timeout=LIMIT)
    assert gone, "the dealer has outlived its launcher"


def test_a_party_waits_for_its_dealer_no_longer_than_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen one still listens: the kernel takes the call, and nobody answers."""
    PLAN.save(tmp_path / "plan.json")
    with listen() as frozen:
        where = json.dumps([frozen.getsockname(), {str(DEALER_NODE): "00" * KEY_BYTES}, str(tmp_path / "plan.json")])
        monkeypatch.setenv("MASKED_DEALER", where)
        here = Place(0, 2, "tcp", timeout=0.3, starting=0.5)
        (waits,) = side_by_side(lambda: source_for(here, None))  # it looks at its end after 40 s
    assert isinstance(waits.error, PeerLost)
    assert (waits.error.peer, waits.error.witness) == (DEALER, False)
    assert "the dealer" in str(waits.error)


@pytest.mark.parametrize("seconds", [0.5, 4.0, 15.0, 70.0])
def test_who_waits_for_another_gives_up_first(seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dealer that froze when it had greeted one party is named by the other, and not that one by the first."""
    PLAN.save(tmp_path / "plan.json")
    limits = []

    class Noted(Exception):
        """The wait would begin here."""

    def noting(*_: object, starting: float, **__: object) -> None:
        limits.append(starting)
        raise Noted

    monkeypatch.setenv("MASKED_DEALER", json.dumps([["127.0.0.1", 1], {}, str(tmp_path / "plan.json")]))
    monkeypatch.setattr("protocols.run.dealer_process.call_dealer", lambda *_: None)
    monkeypatch.setattr("protocols.run.dealer_process.StreamSource", noting)
    monkeypatch.setattr("mpc.launch.Tcp.join", noting)
    monkeypatch.setattr("mpc.launch.TcpClient.join", noting)
    party, client = (Place(node, 2, "tcp", clients=1, starting=seconds) for node in (0, 2))
    for here, wait in ((party, lambda: source_for(party, None)), (party, join), (client, join_as_client)):
        monkeypatch.setattr("mpc.launch.place", lambda here=here: here)
        with pytest.raises(Noted):
            wait()
    greeted, met, joined = limits
    assert greeted < met < joined


def test_a_dealer_may_take_its_time_to_greet_and_a_round_s_time_for_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers, and loads on for longer than a round may take; then it greets, and deals nothing."""
    PLAN.save(tmp_path / "plan.json")
    keys, over = keys_for([(0, DEALER_NODE)]), threading.Event()

    def deals() -> None:
        ((_, channel),) = await_parties(1, door, keys[DEALER_NODE], 300)
        over.wait(1.0)
        fresh = fresh_key()
        channel.send(_HELLO.pack(fresh, fresh, PLAN.digest, 5, 1, 0, 2))
        over.wait(300)
        channel.close()

    def draws() -> None:
        source = source_for(Place(0, 2, "tcp", timeout=0.3, starting=300), None)
        try:
            source._next_block()
        finally:
            over.set()

    with listen() as door:
        where = json.dumps([door.getsockname(), keys[0].as_json(), str(tmp_path / "plan.json")])
        monkeypatch.setenv("MASKED_DEALER", where)
        _, draw = side_by_side(deals, draws)
    assert isinstance(draw.error, PeerLost) and "the dealer was silent for" in str(draw.error)
    assert "after 0 of 5 blocks" in str(draw.error)


@pytest.mark.parametrize(
    ("moment", "timeout", "words"),
    [("before the parties call", "2", "the dealer at "), ("in the middle", "5", "the dealer was silent for ")],
)
def test_a_frozen_dealer_is_named_and_no_party(
    moment: str, timeout: str, words: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def freeze() -> None:
        (dealer,) = awaited(lambda: children(os.getpid(), "dealer"))
        awaited(lambda: any(path.stat().st_size for path in tmp_path.rglob("arms.bin")))
        os.kill(dealer, signal.SIGSTOP)

    def frozen(*given: Any, **rest: Any) -> Started:
        process = start(*given, **rest)
        os.kill(process.pid, signal.SIGSTOP)
        return process

    thread = threading.Thread(target=freeze, daemon=True)
    if moment == "in the middle":
        thread.start()
    else:  # nobody meets there, and all wait for the whole time to start
        monkeypatch.setattr("mpc.launch._SECONDS_TO_START", 0.2)
        monkeypatch.setattr("protocols.run.dealer_process.start", frozen)
    how = (*SMALL, "--steps", "60000", "--refresh", "0", "--timeout", timeout, "--out", str(tmp_path))
    code, _, complained = masked(capsys, "launch", "ppcb", *how)
    if moment == "in the middle":
        thread.join(LIMIT)
    lines = without_progress(complained)
    assert code == 2 and len(lines) == 1
    assert words in lines[0], lines

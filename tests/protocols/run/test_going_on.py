"""A role between machines that dies is started again alone, while the others wait; all go on from one checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mpc.net.tls import Tls
from protocols.ppcb.player import Owners
from protocols.ppcb.program import PAYER, PULLER
from protocols.run.config import load, party_names
from protocols.run.member_process import play, prepared
from protocols.run.stopping import Stopped

from ...parties.processes import free_port
from ...parties.threads import Outcome, side_by_side
from .test_members import PPCB, STEPS, bandit, dealt, world, written


class Killed(BaseException):
    """As by kill -9: nobody says goodbye."""


def cut(transport: Tls) -> None:
    """What the kernel does to the connections of a process that is gone."""
    for sock in transport._peers.values():
        sock.shutdown(socket.SHUT_RDWR)
    transport._closed = True


def all_played(folder: Path, parties: int, roles: dict[str, Callable[..., Any]]) -> list[Outcome]:
    """All roles, each in a thread, and the world."""
    (arms_in, arms_out), (rewards_in, rewards_out) = os.pipe(), os.pipe()
    threading.Thread(target=world, args=(parties, arms_in, rewards_out), daemon=True).start()
    with os.fdopen(arms_out, "w") as told:
        calls = [lambda each=each: each(heard=rewards_in, told=told) for each in roles.values()]
        return side_by_side(*calls)


def playing(path: Path, *, resume: bool = False, **given: Any) -> Callable[..., Any]:
    return lambda **pipes: play(prepared(load(path), PPCB(), resume=resume), **pipes, **given)


def files_of(folder: Path, parties: int) -> dict[str, Path]:
    ports = [free_port() for _ in range(parties)]
    return {role: written(folder, parties, role, ports) for role in (*party_names(parties), PULLER, PAYER)}


def results(folder: Path, parties: int) -> list[dict[str, Any]]:
    return [json.loads((folder / f"party-{p}" / "out/result.json").read_text()) for p in range(parties)]


def more_material(folder: Path, parties: int) -> None:
    """Twice as many steps as the run has: what is drawn once is gone."""
    dealt(folder, parties, steps=2 * STEPS)


def test_a_party_that_dies_comes_back_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parties = 2
    more_material(tmp_path, parties)
    files, turn = files_of(tmp_path, parties), Owners.turn
    died = threading.Event()

    def dies(player: Any) -> None:
        if player.done == 7 and threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(player.session.transport)
            raise Killed
        turn(player)

    monkeypatch.setattr(Owners, "turn", dies)

    def party_1(**pipes: Any) -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            playing(files["party 1"])()
        playing(files["party 1"], resume=True)()

    roles = {role: playing(path) for role, path in files.items()} | {"party 1": party_1}
    for outcome in all_played(tmp_path, parties, roles):
        if outcome.error is not None:
            raise outcome.error
    puller = json.loads((tmp_path / PULLER / "out/result.json").read_text())
    assert len(puller["learned"]) == STEPS
    assert [each["decisions"] for each in results(tmp_path, parties)] == [STEPS] * parties
    again = json.loads((tmp_path / PULLER / "out/checkpoints/again.json").read_bytes().split(b"\n")[0])
    assert again == [[5, 7]], "the puller had learned two arms behind the checkpoint"


def test_a_wish_to_stop_is_heard_by_all_in_one_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parties = 2
    more_material(tmp_path, parties)
    files, asked = files_of(tmp_path, parties), threading.Event()
    turn = Owners.turn

    def asks(player: Any) -> None:
        if player.done == 7:
            asked.set()
        turn(player)

    monkeypatch.setattr(Owners, "turn", asks)

    @contextlib.contextmanager
    def wish() -> Iterator[Callable[[], bool]]:
        yield asked.is_set

    roles = {role: playing(path) for role, path in files.items()}
    roles["party 1"] = playing(files["party 1"], asked=wish)
    stopped = [outcome.error for outcome in all_played(tmp_path, parties, roles)]
    assert all(isinstance(error, Stopped) for error in stopped), stopped
    (done,) = {error.done for error in stopped}  # type: ignore[union-attr]
    assert done in (7, 8)
    monkeypatch.undo()
    for outcome in all_played(tmp_path, parties, {role: playing(path, resume=True) for role, path in files.items()}):
        if outcome.error is not None:
            raise outcome.error
    puller = json.loads((tmp_path / PULLER / "out/result.json").read_text())
    assert len(puller["learned"]) == STEPS
    assert not (tmp_path / PULLER / "out/checkpoints/again.json").exists(), "nothing was made twice"
    assert [each["rounds_per_step"] for each in results(tmp_path, parties)] == [12.0] * parties
    assert bandit(parties).decisions == STEPS

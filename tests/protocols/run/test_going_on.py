"""A role between machines that dies is started again alone, while the others wait; all go on from one checkpoint."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mpc.errors import ConfigError
from mpc.net.tls import Tls
from offline import TrustedDealer
from protocols.ppcb.player import Owners
from protocols.ppcb.program import PAYER, PULLER
from protocols.run import on_shares
from protocols.run.going_on import Kept
from protocols.run.stopping import Stopped

from ..machines import Machines, good
from .test_members import STEPS, late, paying, session


class Killed(BaseException):
    """As by kill -9: nobody says goodbye."""


def cut(transport: Tls) -> None:
    """What the kernel does to the connections of a process that is gone."""
    for link in transport._peers.values():
        link.close()
    transport._closed = True


def more_material(folder: Path) -> Machines:
    """Twice as many steps as the run has: what is drawn once is gone."""
    machines = session(folder)
    machines.dealt(2 * STEPS)
    return machines


def dying(machines: Machines, monkeypatch: pytest.MonkeyPatch, role: str = "party 1") -> dict[str, Callable[[], Any]]:
    """A party that is killed in its eighth decision, and started again."""
    turn, died = Owners.turn, threading.Event()

    def dies(player: Any) -> None:
        if player.done == 7 and threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(player.session.transport)
            raise Killed
        turn(player)

    monkeypatch.setattr(Owners, "turn", dies)

    def party() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing(role, heard=0)()
        machines.playing(role, heard=0, resume=True)()

    return {role: party}


@pytest.mark.parametrize("role", ["party 0", "party 1"])
def test_with_a_dealer_the_arms_are_those_of_an_undisturbed_run(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dealer has the same coins in every attempt, and fresh masks; the world is asked once for each decision."""
    learned, asked, drawn = list[Any](), list[int](), list[bytes]()
    coins = {"dealer": lambda _: bytes(range(32))}
    real = TrustedDealer.__init__

    def noted(dealer: TrustedDealer, *given: Any, **named: Any) -> None:
        real(dealer, *given, **named)
        drawn.extend(dealer.keys)

    monkeypatch.setattr(TrustedDealer, "__init__", noted)

    def world(said: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(said["decision"])
        return paying(2)(said)

    for name in ("undisturbed", "disturbed"):
        asked.clear()
        machines = session(tmp_path / name, dealer=True)
        instead = dying(machines, monkeypatch, role) if name == "disturbed" else {}
        good(machines.play(fresh=coins, worlds=[(PULLER, PAYER, world)], instead=instead))
        learned.append(machines.result(PULLER)["learned"])
        assert asked == list(range(STEPS))
    assert learned[0] == learned[1]
    assert len(set(drawn)) == len(drawn) >= 6, "no attempt has another's keys"


def test_a_party_that_dies_comes_back_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = more_material(tmp_path)
    instead = dying(machines, monkeypatch)
    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead=instead))
    assert len(machines.result(PULLER)["learned"]) == STEPS
    assert [machines.result(f"party {p}")["decisions"] for p in range(2)] == [STEPS] * 2
    again = json.loads((tmp_path / PULLER / "out/checkpoints/again.json").read_bytes().split(b"\n")[0])
    assert again == [[5, 7]], "the puller had learned two arms behind the checkpoint"


@pytest.mark.parametrize("resume", [False, True])
def test_who_dies_before_all_began_is_waited_for(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """All have met, and nobody has agreed on anything: it may be started as at first, or as the others say."""
    machines, real, died = more_material(tmp_path), on_shares.agree, threading.Event()

    def dies(mesh: Tls, *rest: Any) -> Any:
        if threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(mesh)
            raise Killed
        return real(mesh, *rest)

    monkeypatch.setattr(on_shares, "agree", dies)

    def party() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing("party 1", heard=0)()
        machines.playing("party 1", heard=0, resume=resume)()

    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead={"party 1": party}))
    assert len(machines.result(PULLER)["learned"]) == STEPS


def test_who_ends_by_an_error_of_its_own_before_all_began_ends_the_start(tmp_path: Path) -> None:
    machines = more_material(tmp_path)
    (tmp_path / "party-1" / "out" / "checkpoints").mkdir(parents=True)

    def party() -> None:
        given = machines.playing("party 1", heard=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Kept, "standing", lambda kept: fails() if kept.role == "party 1" else real(kept))
            given()

    def fails() -> Any:
        raise ConfigError("its checkpoints cannot be read")

    real, began = Kept.standing, time.monotonic()
    outcomes = machines.play(worlds=[(PULLER, PAYER, paying(2))], instead={"party 1": party})
    said = [str(outcome.error) for outcome in outcomes]
    assert all("its checkpoints cannot be read" in each for each in said), said
    assert time.monotonic() - began < machines.seconds, "nobody waited for it"


def test_late_rewards_of_before_the_checkpoint_are_still_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Of decisions 2, 3 and 4, which the parties that go on behind decision 5 have not learned from yet."""
    asked = list[int]()
    machines = session(tmp_path, dealer=True, delay=3)
    pays = paying(2)

    def world(said: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(said["decision"])
        return pays(said)

    instead = dying(machines, monkeypatch)
    good(machines.play(worlds=[(PULLER, PAYER, late(world, 2))], instead=instead))
    assert asked == list(range(STEPS - 2))
    assert machines.result("party 0")["decisions"] == STEPS


def test_a_wish_to_stop_is_heard_by_all_in_one_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines, asked, turn = more_material(tmp_path), threading.Event(), Owners.turn

    def asks(player: Any) -> None:
        if player.done == 7:
            asked.set()
        turn(player)

    monkeypatch.setattr(Owners, "turn", asks)

    @contextlib.contextmanager
    def wish() -> Iterator[Callable[[], bool]]:
        yield asked.is_set

    worlds, wishes = [(PULLER, PAYER, paying(2))], machines.playing("party 1", heard=0, asked=wish)
    stopped = [outcome.error for outcome in machines.play(worlds=worlds, instead={"party 1": wishes})]
    assert all(isinstance(error, Stopped) for error in stopped), stopped
    (done,) = {error.done for error in stopped}  # type: ignore[union-attr]
    assert done in (7, 8)
    monkeypatch.undo()
    good(machines.play(worlds=worlds, resume=True))
    assert len(machines.result(PULLER)["learned"]) == STEPS
    assert not (tmp_path / PULLER / "out/checkpoints/again.json").exists(), "nothing was made twice"
    assert [machines.result(f"party {p}")["rounds_per_step"] for p in range(2)] == [12.0] * 2

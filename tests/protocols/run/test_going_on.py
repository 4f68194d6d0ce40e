"""A role between machines that dies is started again alone, while the others wait; all go on from one checkpoint."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError, PeerLost
from mpc.net import mesh
from mpc.net.client_mesh import ClientMesh
from mpc.net.mesh import Mesh
from mpc.net.tls import Tls
from offline import TrustedDealer
from protocols.commands import party
from protocols.ppcb.player import Owners
from protocols.ppcb.program import PAYER, PULLER
from protocols.run import member_process, on_shares
from protocols.run.checkpoint import Checkpoint
from protocols.run.config import DEALER
from protocols.run.folder import DEALT, LEFT
from protocols.run.going_on import Kept, until_over
from protocols.run.line_desk import LineDesk, Lines
from protocols.run.log import Form, Log
from protocols.run.notes import Notes
from protocols.run.program import party_name
from protocols.run.role_process import Task
from protocols.run.standing import Standing, judged, times_told
from protocols.run.stopping import Stopped
from tests.forks import halves

from ..machines import Machines, good
from ..machines import _be as being
from .test_members import STEPS, late, paying, session


class Killed(BaseException):
    """As by kill -9: nobody says goodbye."""


def cut(transport: Mesh) -> None:
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
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dealer has the same coins in every attempt, and fresh masks; the world is asked once for each decision.

    Nothing that it keeps has a key of these masks: what was opened stays masked once its process has ended.
    """
    learned, asked, drawn, own, kept = list[Any](), list[int](), list[bytes](), list[bytes](), dict[Path, bytes]()
    coins = {"dealer": lambda _: bytes(range(32))}
    real, settle = TrustedDealer.__init__, on_shares.settle

    def noted(dealer: TrustedDealer, *given: Any, **named: Any) -> None:
        real(dealer, *given, **named)
        drawn.extend(dealer.keys)
        own.append(dealer._own_key)

    def looked_at(program: Any, keep: Path) -> None:
        if keep.parent.parent.name == "dealer":
            kept.update({path: path.read_bytes() for path in keep.parent.parent.rglob("*") if path.is_file()})
        settle(program, keep)

    monkeypatch.setattr(TrustedDealer, "__init__", noted)
    monkeypatch.setattr(on_shares, "settle", looked_at)

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
    said = capsys.readouterr().err
    assert "from 5 on are made again with the same coins and fresh masks" in said and "counts twice" not in said
    assert len(set(drawn)) == len(drawn) >= 6, "no attempt has another's keys"
    assert {path.name for path in kept} >= {"seeds.key", "dealt", "result.json"}
    for key in (*drawn, *own):
        assert not [path for path, raw in kept.items() if key in raw or key.hex().encode() in raw.lower()]


def test_a_party_that_dies_comes_back_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    machines = more_material(tmp_path)
    instead = dying(machines, monkeypatch)
    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead=instead))
    assert len(machines.result(PULLER)["learned"]) == STEPS
    assert [machines.result(f"party {p}")["decisions"] for p in range(2)] == [STEPS] * 2
    again = json.loads((tmp_path / PULLER / "out/checkpoints/again.json").read_bytes().split(b"\n")[0])
    assert again == [[5, 7]], "the puller had learned two arms behind the checkpoint"
    said = "2 decisions from 5 on are made again with other coins: what was learned of them counts twice"
    assert said in capsys.readouterr().err


def test_what_comes_of_an_arm_that_was_told_before_is_not_taken_for_that_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party dies while the world has decision 7; what comes of it comes when all have gone back to 5."""
    machines, turn, hear, dead = more_material(tmp_path), Owners.turn, Lines.hear, threading.Event()
    meshes, told, learned = list[Any](), list[dict[str, Any]](), dict[int, float]()
    (told_in, told_out), (heard_in, heard_out) = os.pipe(), os.pipe()

    def dies(player: Any) -> None:
        if threading.current_thread().name == "to die":
            meshes.append(player.session.transport)
        turn(player)

    def heard(lines: Lines, number: int, *rest: Any) -> np.ndarray:
        values = hear(lines, number, *rest)
        learned[number] = values.item()
        return values

    def pays(said: dict[str, Any]) -> dict[str, Any]:
        return {**said, "values": [said["values"][0] / 4]}

    def world() -> None:
        with os.fdopen(told_in) as lines, os.fdopen(heard_out, "w", buffering=1) as out:
            for said in map(json.loads, lines):
                told.append(said)
                if said["decision"] == 7 and not dead.is_set():
                    dead.set()
                    cut(meshes[-1])
                    continue
                if said["again"]:
                    out.write(json.dumps(pays(next(each for each in told if each["decision"] == 7))) + "\n")
                out.write(json.dumps(pays(said)) + "\n")

    def party() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises((PeerLost, OSError, ValueError)):
            machines.playing("party 1", heard=0)()
        threading.current_thread().name = "was dead"
        machines.playing("party 1", heard=0, resume=True)()

    def once(meet: Any, plays: Any, *rest: Any, **named: Any) -> Any:
        if threading.current_thread().name == "to die":
            return plays(meet(machines.seconds))
        return over(meet, plays, *rest, **named)

    over = on_shares.until_over
    monkeypatch.setattr(on_shares, "until_over", once)
    monkeypatch.setattr(Owners, "turn", dies)
    monkeypatch.setattr(Lines, "hear", heard)
    threading.Thread(target=world, daemon=True).start()

    def puller() -> None:
        with os.fdopen(told_out, "w") as lines:
            machines.playing(PULLER, heard=0, told=lines)()

    payer = machines.playing(PAYER, heard=heard_in)
    good(machines.play(instead={"party 1": party, PULLER: puller, PAYER: payer}))
    assert [(each["decision"], each["again"]) for each in told[7:11]] == [(7, 0), (5, 1), (6, 1), (7, 1)]
    arms = machines.result(PULLER)["learned"]
    assert [learned[at] for at in range(STEPS)] == [arm / 4 for (arm,) in arms]


def test_who_waits_for_another_keeps_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lets go of it, to take it again when all meet again, may find it taken."""
    machines, listened, real = more_material(tmp_path), Counter[int](), member_process.listen_on

    def noted(host: str, port: int) -> socket.socket:
        listened[port] += 1
        return real(host, port)

    monkeypatch.setattr(member_process, "listen_on", noted)
    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead=dying(machines, monkeypatch)))
    assert [listened[int(port)] for port in machines.ports[:2]] == [1, 2], "the second one was started again"


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


@pytest.mark.parametrize("role", [PULLER, "dealer"])
def test_of_an_error_before_all_agreed_the_parties_hear_the_kind_alone(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines, standing = session(tmp_path, dealer=True), Kept.standing

    def fails(kept: Kept) -> Standing:
        if kept.role == role:
            raise ConfigError("what was learned was arm 8675309: put it back")
        return standing(kept)

    monkeypatch.setattr(Kept, "standing", fails)
    outcomes = dict(zip(machines.files, machines.play(worlds=[(PULLER, PAYER, paying(2))]), strict=True))
    assert "8675309" in str(outcomes.pop(role).error)
    parties = [str(outcomes[party_name(party)].error) for party in range(2)]
    assert f"{role} stopped with ConfigError" in parties, parties
    assert not any("8675309" in str(outcome.error) for outcome in outcomes.values())


@pytest.mark.parametrize("anew", [True, False])
def test_nothing_is_said_of_a_checkpoint_before_all_began(anew: bool, tmp_path: Path) -> None:
    """Who was told to go on had begun before."""

    def alone(_: float) -> Any:
        raise PeerLost("not all are there after 3 s: party 1", peer=1)

    kept = Kept(tmp_path, "trial", "party 0", "party-0", None, anew)
    with pytest.raises(PeerLost) as lost:
        until_over(alone, lambda _: None, kept, first=3.0, back=3.0, say=lambda _: None)
    assert lost.value.begun is not anew
    given = Namespace(apart=None)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(PeerLost) as said:
        patch.setattr(party, "play", lambda *_, **__: raises(lost.value))
        party.played(given, Log("party 0", "trial", Form.JSON, io.StringIO()))  # type: ignore[arg-type]
    assert ("--resume goes on" in str(said.value)) is not anew


def raises(error: Exception) -> None:
    raise error


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


def test_a_party_that_cannot_keep_its_last_checkpoint_keeps_all_from_leaving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others have made all decisions and kept them, and still wait for it: what clients learn is not lost."""
    machines, failed, save = session(tmp_path, dealer=True), threading.Event(), Checkpoint.save

    def fails(made: Checkpoint, folder: Path) -> Path:
        if made.done == STEPS and threading.current_thread().name == "full" and not failed.is_set():
            failed.set()
            raise ConfigError("/out cannot be written (No space left on device): make room there")
        return save(made, folder)

    monkeypatch.setattr(Checkpoint, "save", fails)

    def party() -> None:
        threading.current_thread().name = "full"
        with pytest.raises(ConfigError, match="No space left"):
            machines.playing("party 1", heard=0)()
        machines.playing("party 1", heard=0, resume=True)()

    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead={"party 1": party}))
    assert failed.is_set() and len(machines.result(PULLER)["learned"]) == STEPS
    assert [machines.result(f"party {p}")["decisions"] for p in range(2)] == [STEPS] * 2


def coming_back(
    machines: Machines, role: str, words: str, monkeypatch: pytest.MonkeyPatch, **given: Any
) -> Callable[[], None]:  # fmt: skip
    """A role that dies when all have all, finds nobody at first, saying these words, then the others as they end.

    It has the words from a file; where that is missing it says no more than who is.
    """
    part, ends, ending = Mesh._part, ClientMesh.await_end, threading.Event()
    file = machines.home(role) / "out" / "checkpoints" / (DEALT if role == DEALER else LEFT)
    lost = "not all are there after 30 s: party 0"
    monkeypatch.setattr(mesh, "_FAREWELLS", 20.0)  # times: until it is there, on a busy machine

    def parts(one: Mesh, *rest: Any) -> Any:
        if one.node == 0:
            ending.set()
        return part(one, *rest)

    def dies(link: ClientMesh) -> None:
        if threading.current_thread().name != "to die":
            return ends(link)
        assert ending.wait(machines.seconds)
        cut(link)
        raise Killed

    def nobody(*_: Any, **__: Any) -> Any:
        raise PeerLost(lost, peer=0)

    def alone(words: str) -> None:
        with monkeypatch.context() as patch, pytest.raises(PeerLost, match=words):
            patch.setattr(on_shares, "until_over", nobody)
            machines.playing(role, resume=True, **given)()

    monkeypatch.setattr(Mesh, "_part", parts)
    monkeypatch.setattr(ClientMesh, "await_end", dies)

    def comes() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing(role, **given)()
        file.rename(elsewhere := file.with_name("elsewhere"))
        alone(f"^{lost}$")
        elsewhere.rename(file)
        alone(words)
        machines.playing(role, resume=True, **given)()

    return comes


def test_a_dealer_that_comes_back_when_the_others_end_hears_that_the_run_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has dealt all, so it ends as they do.  Where nobody is there to say so, it says what it knows."""
    machines = session(tmp_path, dealer=True)
    machines.logged = said = io.StringIO()
    dealer = coming_back(machines, "dealer", r"all was dealt before, so .* run is over", monkeypatch)
    good(machines.play(worlds=[(PULLER, PAYER, paying(2))], instead={"dealer": dealer}))
    assert "has come to its end and wants nobody any more: this run is over" in said.getvalue()
    assert len(machines.result(PULLER)["learned"]) == STEPS
    assert machines.result("dealer")["role"] == "dealer"


@pytest.mark.parametrize(("at", "delay"), [(7, 0), (9, 3)])
def test_an_arm_that_was_noted_when_its_role_died_is_told(
    at: int, delay: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Between its note and the world, in the middle and where a checkpoint is kept: nothing waits for it for ever."""
    machines, died = session(tmp_path, dealer=True, delay=delay), threading.Event()
    real, tell = on_shares.agree_as_client, LineDesk.tell
    links, told = dict[str, Any](), list[int]()

    def agreed(link: ClientMesh, *rest: Any) -> Any:
        links[threading.current_thread().name] = link
        return real(link, *rest)

    def dies(desk: LineDesk, words: np.ndarray) -> None:
        if desk._out == at and threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(links["to die"])
            raise Killed
        tell(desk, words)

    monkeypatch.setattr(on_shares, "agree_as_client", agreed)
    monkeypatch.setattr(LineDesk, "tell", dies)

    def world(said: dict[str, Any]) -> dict[str, Any] | None:
        told.append(said["decision"])
        return paying(2)(said)

    (told_in, told_out), (heard_in, heard_out) = os.pipe(), os.pipe()
    threading.Thread(target=being, args=(told_in, heard_out, world), daemon=True).start()

    def puller() -> None:
        threading.current_thread().name = "to die"
        with os.fdopen(told_out, "w") as lines:
            with pytest.raises(Killed):
                machines.playing(PULLER, heard=0, told=lines)()
            machines.playing(PULLER, heard=0, told=lines, resume=True)()

    good(machines.play(instead={PULLER: puller, PAYER: machines.playing(PAYER, heard=heard_in)}))
    assert died.is_set() and told == list(range(STEPS)), "each was told, and each once: the last had not been"


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


def test_how_often_decisions_were_told_outlives_the_puller(tmp_path: Path) -> None:
    """Killed in any attempt, also one that told nothing: what it tells next is told from all before."""
    spends, seen = Standing("party 0", (), None, False, spends=True), list[int]()
    for noted in (3, 0, 0, 2):
        kept = Kept(tmp_path, "trial", "puller", "", Notes(tmp_path / "arms.bin", (1,), who="puller"), False)
        agreed = judged([spends, kept.standing()])
        kept.begin(agreed, lambda _: None, "decision")
        seen.append(times_told(agreed.told, 1))
        notes = Notes(tmp_path / "arms.bin", (1,), who="puller")
        for arm in range(noted):
            notes.append(np.array([arm]))
        notes.close()
    assert seen == [0, 1, 2, 3]


def test_what_was_kept_under_other_options_is_not_gone_on_with(tmp_path: Path) -> None:
    """All roles may agree on them, and shares of another scale would be taken for shares."""
    given: dict[str, Any] = {"public": {}, "start": 0, "every": 1, "timeout": 1.0, "draws": True}
    task = Task(("", "", None), run="trial", keep=tmp_path, attempt="first", of="these", **given)
    arrays = {"table": np.zeros(2, np.uint64)}
    Checkpoint(3, task.signature("party-0"), arrays).save(tmp_path / "party-0")
    kept = Kept(tmp_path, "trial", "party 0", "party-0", None, False, of="these")
    assert kept.standing().saves == ((3, "first"),)
    with pytest.raises(ConfigError, match="kept under other options: put them back, at all roles"):
        Kept(tmp_path, "trial", "party 0", "party-0", None, False, of="others").standing()


def test_a_forked_half_of_a_role_leaves_its_parents_link_alone() -> None:
    said = halves(
        """
from protocols.run.going_on import left_with_a_word

class Link:
    left = None
    def close(self, reason=None): self.left = reason

link = Link()
def unwound():
    try:
        own.__exit__(ValueError, ValueError("it unwinds"), None)
    except ValueError:
        pass
    return link.left and link.left.kind

own = left_with_a_word(link)
own.__enter__()
half("link", unwound)
"""
    )
    assert said == {"link": "drew None", "link, parent": "drew 'ValueError'"}

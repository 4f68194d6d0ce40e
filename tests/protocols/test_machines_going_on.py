"""Every system between machines: a party that dies is started again alone, and all learn what they would have.

Where the dealer is a role all coins are the same in both runs, so all that is learned is.  Material that was dealt
before has other coins for decisions that are made again; what is learned then follows from what was played.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.helba import HELBA, Constants, play, toy
from mpc.errors import ConfigError, PeerLost
from mpc.net.client_mesh import ClientMesh
from protocols.bench.faults_trial import claimed_twice
from protocols.helba.command import Helba
from protocols.linucb_ds.command import LinUCBDS, SpectralUCBDS
from protocols.linucb_ds.problems import normal_arms, of
from protocols.ppcb.program import PAYER, PULLER
from protocols.run import on_shares
from protocols.run.going_on import Kept
from protocols.run.line_desk import Lines
from protocols.run.status import Status
from protocols.samba.command import Samba
from protocols.samba.owners import game_of

from .machines import Machines, World, good
from .run.test_going_on import Killed, coming_back, cut
from .run.trial import STEPS as STEPS_OF_PPCB
from .run.trial import paying, session

STEPS, DIES = 9, 7
LEARNED = ("learned", "left", "cumulative_reward")
Made = tuple[Machines, Sequence[tuple[str, str, World]]]


def coins(name: str) -> bytes:
    return name.encode().ljust(32, b".")[:32]


def ppcb(folder: Path, parties: int = 3, *, dealer: bool = True) -> Made:
    return session(folder, parties, dealer=dealer), [(PULLER, PAYER, paying(parties))]


PAID = np.random.default_rng(2).integers(0, 2, (STEPS, 3)).astype(float)


def samba(folder: Path, parties: int = 2, *, dealer: bool = True) -> Made:
    data = {f"owner {arm}": PAID[:, [arm]] for arm in range(3)}
    options = {"policy": "epsilon-greedy", "eps": 0.3, "arms": 3, "budget": STEPS}
    return Machines(folder, Samba(), options, parties, data=data, dealer=dealer), []


def outsourced(
    folder: Path, system: LinUCBDS, parties: int = 2, *, dealer: bool = True, mode: str = "mpc"
) -> Made:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    arms, theta = normal_arms(5, 3, 4)
    problem = of(system.name, arms, theta)
    np.save(folder / "arms.npy", arms)
    constants = asdict(problem.exploration)  # type: ignore[call-overload]
    bounds = {name: constants[name] for name in ("theta_norm", "smoothness") if name in constants}
    options = {"arms_file": str(folder / "arms.npy"), **bounds, "budget": STEPS}
    options |= {"seed": 9} if mode == "mpc" else {"bits": 1024}
    row = problem.theta if system.name == "linucb-ds" else arms @ theta
    return Machines(folder / "roles", system, options, parties, mode, data={"DO": row[None]}, dealer=dealer), []


PROBLEM = toy(Constants(), STEPS, 3, arms=2)


def helba(folder: Path, parties: int = 2, *, dealer: bool = True) -> Made:
    rows = np.concatenate([PROBLEM.features.reshape(STEPS, -1), PROBLEM.rewards], axis=1)
    return Machines(folder, Helba(), {"steps": STEPS}, parties, data={"user": rows}, dealer=dealer), []


SYSTEMS: dict[str, Callable[..., Made]] = {
    "ppcb": ppcb,
    "samba": samba,
    "linucb-ds": lambda folder, *given, **named: outsourced(folder, LinUCBDS(), *given, **named),
    "spectralucb-ds": lambda folder, *given, **named: outsourced(folder, SpectralUCBDS(), *given, **named),
    "helba": helba,
}


def dying(machines: Machines, role: str, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What a role does that is killed after its seventh decision, and started again."""
    meshes, died, made, keeps = dict[str, Any](), threading.Event(), Status.made, Kept.keeps

    def noting(agree: Callable[..., Any]) -> Callable[..., Any]:
        def agreed(mesh: Any, *rest: Any) -> Any:
            meshes[threading.current_thread().name] = mesh
            return agree(mesh, *rest)

        return agreed

    def dies(done: int) -> None:
        if done == DIES and threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(meshes["to die"])
            raise Killed

    def of_party(status: Status, done: int) -> None:
        dies(done)
        made(status, done)

    def of_client(*given: Any) -> Callable[[int, Any], bool]:
        keep = keeps(*given)

        def kept(done: int, state: Any) -> bool:
            dies(done)
            return keep(done, state)

        return kept

    patch.setattr(on_shares, "agree", noting(on_shares.agree))
    patch.setattr(on_shares, "agree_as_client", noting(on_shares.agree_as_client))
    patch.setattr(Status, "made", of_party)
    patch.setattr(Kept, "keeps", of_client)

    def killed() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing(role, coins, heard=0)()
        machines.playing(role, heard=0, resume=True)()

    return killed


WORLD_OF_OWNER = """
from pathlib import Path
import numpy as np
home = Path(__file__).parent
paid = np.load(home / "paid.npy")
def tell(decision, values, again):
    with (home / "told").open("a") as told:
        told.write(f"{decision} {int(values[0])} {again}\\n")
def hear(decision, again):
    of, arm, telling = (home / "told").read_text().split("\\n")[-2].split()
    assert (int(of), int(telling)) == (decision, again)
    return paid[decision, int(arm)]
"""


def meeting(folder: Path, *, dealer: bool, every: int = 5) -> Machines:
    """SAMBA's owners, two of them in one role, whose arms pay `PAID` when the world is told that they are pulled."""
    options = {"policy": "epsilon-greedy", "eps": 0.3, "arms": 3, "budget": STEPS, "hosts": 2}
    owners = {"owners 0 to 1": f"first_{folder.name}", "owner 2": f"second_{folder.name}"}
    more = {role: f'[world]\ntell = "{name}:tell"\nhear = "{name}:hear"' for role, name in owners.items()}
    machines = Machines(folder, Samba(), options, more=more, dealer=dealer, every=every)
    for role, name in owners.items():
        np.save(machines.home(role) / "paid.npy", PAID)
        (machines.home(role) / f"{name}.py").write_text(WORLD_OF_OWNER)
    if not dealer:
        machines.dealt(2 * machines.program.draws())
    return machines


def told(machines: Machines) -> list[tuple[int, ...]]:
    """What owners told their worlds: decision, arm, and which telling it was; in order of decisions."""
    roles = [role for role in machines.files if role.startswith("owner")]
    lines = [line for role in roles for line in (machines.home(role) / "told").read_text().splitlines()]
    return sorted(tuple(map(int, line.split())) for line in lines)


def pulled(machines: Machines) -> list[int]:
    """The arm of each decision, as the owners know it at the end; what it paid is what the world had for it."""
    left = [machines.result(role)["left"] for role in machines.files if role.startswith("owner")]
    played = game_of([{name: np.array(rows, np.int64) for name, rows in each.items()} for each in left], STEPS)
    arms = [int(arm) for arm in played.arms]
    assert played.sums.sum() == sum(PAID[decision, arm] for decision, arm in enumerate(arms))
    assert machines.result("DC")["cumulative_reward"] == played.sums.sum()
    return arms


@pytest.mark.parametrize("role", ["party 1", "owners 0 to 1", "owner 2"])
def test_an_owner_tells_the_world_each_pull_once_by_its_decision(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions are the game's, so an owner that is pulled now and then leaves some out; whoever died, none twice."""
    games = []
    for name in ("undisturbed", "disturbed"):
        machines = meeting(tmp_path / f"{name}_{role.replace(' ', '_')}", dealer=True)
        instead = {role: dying(machines, role, monkeypatch)} if name == "disturbed" else {}
        good(machines.play(fresh=dict.fromkeys(machines.files, coins), instead=instead))
        games.append(pulled(machines))
        assert told(machines) == [(decision, arm, 0) for decision, arm in enumerate(games[-1])]
    assert games[0] == games[1]


@pytest.mark.parametrize("role", ["party 1", "owners 0 to 1", "owner 2"])
def test_what_an_owner_tells_anew_says_so_where_coins_differ(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Material that was dealt before: what was pulled behind the checkpoint is pulled anew, perhaps another arm."""
    machines = meeting(tmp_path / f"anew_{role.replace(' ', '_')}", dealer=False)
    good(machines.play(fresh=dict.fromkeys(machines.files, coins), instead={role: dying(machines, role, monkeypatch)}))
    arms, lines = pulled(machines), told(machines)
    last = {decision: (arm, again) for decision, arm, again in sorted(lines, key=lambda line: line[2])}
    assert [last[at] for at in range(STEPS)] == [(arm, int(at >= 5)) for at, arm in enumerate(arms)]
    assert {(decision, again) for decision, _, again in lines if again == 0} == {(at, 0) for at in range(DIES)}


@pytest.mark.parametrize("resume", [False, True])
def test_a_dealer_that_lost_its_coins_has_all_told_and_paid_anew(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is gone before anybody kept a checkpoint: no arm is paid what another one was that it had before."""
    machines = session(tmp_path, dealer=True, every=100, eps=0.9)
    meshes, told, paid = list[Any](), list[dict[str, Any]](), dict[int, float]()
    died, met, over, hear = threading.Event(), on_shares.agree_as_client, on_shares.until_over, Lines.hear

    def agreed(link: Any, *rest: Any) -> Any:
        if threading.current_thread().name == "to die":
            meshes.append(link)
        return met(link, *rest)

    def once(meet: Any, plays: Any, *rest: Any, **named: Any) -> Any:
        if threading.current_thread().name == "to die":
            return plays(meet(machines.seconds))
        return over(meet, plays, *rest, **named)

    def heard(lines: Lines, number: int, *rest: Any) -> np.ndarray:
        values = hear(lines, number, *rest)
        paid[number] = values.item()
        return values

    def world(said: dict[str, Any]) -> dict[str, Any] | None:
        told.append(said)
        if said["decision"] == 3 and not died.is_set():
            died.set()
            cut(meshes[-1])
            return None
        return {**said, "values": [said["values"][0] / 4]}

    def dealer() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises((PeerLost, OSError, ValueError)):
            machines.playing("dealer", coins, heard=0)()
        threading.current_thread().name = "without its coins"
        shutil.rmtree(machines.home("dealer") / "out")
        machines.playing("dealer", lambda name: coins(f"other {name}"), heard=0, resume=resume)()

    monkeypatch.setattr(on_shares, "agree_as_client", agreed)
    monkeypatch.setattr(on_shares, "until_over", once)
    monkeypatch.setattr(Lines, "hear", heard)
    good(machines.play(worlds=[(PULLER, PAYER, world)], instead={"dealer": dealer}))
    arms = [arm for (arm,) in machines.result(PULLER)["learned"]]
    assert [paid[at] for at in range(STEPS_OF_PPCB)] == [arm / 4 for arm in arms]
    first, anew = ([said for said in told if said.get("again") == telling] for telling in (None, 1))
    assert [said["decision"] for said in anew] == [said["decision"] for said in first] == list(range(len(first)))
    assert [said["values"] for said in anew] != [said["values"] for said in first], "other coins, other arms"


CLIENTS = {"samba": "owner 1", "helba": "user"}
"""Those that keep a state."""


@pytest.mark.parametrize(("system", "role"), [*((system, "party 1") for system in SYSTEMS), *CLIENTS.items()])
def test_a_role_that_dies_comes_back_alone_and_all_learn_the_same(
    system: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = []
    for name in ("undisturbed", "disturbed"):
        machines, worlds = SYSTEMS[system](tmp_path / name)
        instead = {role: dying(machines, role, monkeypatch)} if name == "disturbed" else {}
        good(machines.play(fresh=dict.fromkeys(machines.files, coins), worlds=worlds, instead=instead))
        found = {role: machines.result(role) for role in machines.files}
        learned.append({role: {name: said.get(name) for name in LEARNED} for role, said in found.items()})
    assert learned[0] == learned[1]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_party_of_three_with_a_store_comes_back_alone(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines, worlds = SYSTEMS[system](tmp_path, 3, dealer=False)
    machines.dealt(2 * machines.program.draws())
    good(machines.play(worlds=worlds, instead={"party 1": dying(machines, "party 1", monkeypatch)}))
    found = {role: machines.result(role) for role in machines.files}
    ledgers = [found[f"party {party}"]["ledger"] for party in range(3)]
    assert ledgers[0] == ledgers[1] == ledgers[2] != []
    for party in range(3):
        cursor = machines.folder / "material" / f"party-{party}" / "cursor"
        assert claimed_twice(b"", cursor.read_bytes()) == 0, "no block of material is drawn twice"
    if system == "ppcb":
        assert len(found[PULLER]["learned"]) == found["party 1"]["decisions"] == STEPS_OF_PPCB
    if system == "samba":
        owners = (found[f"owner {arm}"]["left"] for arm in range(3))
        played = game_of([{name: np.array(rows, np.int64) for name, rows in each.items()} for each in owners], STEPS)
        assert found["DC"]["cumulative_reward"] == sum(PAID[step, arm] for step, arm in enumerate(played.arms))
    if system.endswith("ds"):
        assert np.isfinite(found["DC"]["cumulative_reward"])
    if system == "helba":
        assert found["user"]["learned"] == [[arm] for arm in play(HELBA(Constants()), PROBLEM).arms]


@pytest.mark.parametrize("dealer", [True, False], ids=["dealer", "store"])
def test_a_client_that_dies_before_it_has_learned_what_all_came_to_comes_back_and_learns_it(
    dealer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All decisions are made; nobody leaves before it has said that it has all."""
    machines, _ = outsourced(tmp_path, LinUCBDS(), dealer=dealer)
    if not dealer:
        machines.dealt(2 * machines.program.draws())
    died, say = threading.Event(), ClientMesh.say_noted

    def dies(link: ClientMesh, done: int) -> None:
        if threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(link)
            raise Killed
        say(link, done)

    monkeypatch.setattr(ClientMesh, "say_noted", dies)

    def customer() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing("DC", heard=0)()
        machines.playing("DC", heard=0, resume=True)()

    good(machines.play(instead={"DC": customer}))
    assert died.is_set() and np.isfinite(machines.result("DC")["cumulative_reward"])
    assert [machines.result(f"party {party}")["pulls"] for party in range(2)] == [STEPS] * 2


def test_a_client_that_comes_back_when_the_others_end_has_what_it_had_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It had said that it has all.  Where nobody is there to say that the run is over, it says what it knows."""
    machines, _ = outsourced(tmp_path, LinUCBDS())
    customer = coming_back(machines, "DC", r"all was learned before, so .* run is over", monkeypatch, heard=0)
    good(machines.play(instead={"DC": customer}))
    learned = machines.result("DC")["cumulative_reward"]
    said = [line for line in capfd.readouterr().out.splitlines() if line.startswith("cumulative reward: ")]
    assert len(said) == 2 and all(float(line.split()[-1].replace(",", "")) == pytest.approx(learned) for line in said)


def test_as_published_nothing_is_gone_on_with(tmp_path: Path) -> None:
    """Its keys are never written: who is told to go on says so, and when one dies all others end and name it."""
    pytest.importorskip("phe", reason="the extra 'paillier' is not installed")
    machines, _ = outsourced(tmp_path, LinUCBDS(), dealer=False, mode="classic")
    with pytest.raises(ConfigError, match="linucb-ds in mode 'classic' begins anew: leave out --resume"):
        machines.playing("P", resume=True)()

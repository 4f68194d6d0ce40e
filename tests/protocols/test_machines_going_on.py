"""Every system between machines: a party that dies is started again alone, and all learn what they would have.

The dealer is a role, and all coins are the same in both runs, so all that is learned is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.helba import Constants, toy
from mpc.errors import ConfigError
from protocols.helba.command import Helba
from protocols.linucb_ds.command import LinUCBDS, SpectralUCBDS
from protocols.linucb_ds.problems import normal_arms, of
from protocols.ppcb.program import PAYER, PULLER
from protocols.run import on_shares
from protocols.run.status import Status
from protocols.samba.command import Samba

from .machines import Machines, World, good
from .run.test_going_on import Killed, cut
from .run.test_members import paying, session

STEPS, DIES = 9, 7
LEARNED = ("learned", "left", "cumulative_reward")
Made = tuple[Machines, Sequence[tuple[str, str, World]]]


def coins(name: str) -> bytes:
    return name.encode().ljust(32, b".")[:32]


def ppcb(folder: Path) -> Made:
    return session(folder, 3, dealer=True), [(PULLER, PAYER, paying(3))]


def samba(folder: Path) -> Made:
    paid = np.random.default_rng(2).integers(0, 2, (STEPS, 3)).astype(float)
    data = {f"owner {arm}": paid[:, [arm]] for arm in range(3)}
    options = {"policy": "epsilon-greedy", "eps": 0.3, "arms": 3, "budget": STEPS}
    return Machines(folder, Samba(), options, data=data, dealer=True), []


def outsourced(folder: Path, system: LinUCBDS, mode: str = "mpc") -> Made:
    folder.mkdir(parents=True, exist_ok=True)
    arms, theta = normal_arms(5, 3, 4)
    problem = of(system.name, arms, theta)
    np.save(folder / "arms.npy", arms)
    constants = asdict(problem.exploration)  # type: ignore[call-overload]
    bounds = {name: constants[name] for name in ("theta_norm", "smoothness") if name in constants}
    options = {"arms_file": str(folder / "arms.npy"), **bounds, "budget": STEPS}
    options |= {"seed": 9} if mode == "mpc" else {"bits": 1024}
    row = problem.theta if system.name == "linucb-ds" else arms @ theta
    return Machines(folder / "roles", system, options, mode=mode, data={"DO": row[None]}, dealer=mode == "mpc"), []


def helba(folder: Path) -> Made:
    problem = toy(Constants(), STEPS, 3, arms=2)
    rows = np.concatenate([problem.features.reshape(STEPS, -1), problem.rewards], axis=1)
    return Machines(folder, Helba(), {"steps": STEPS}, data={"user": rows}, dealer=True), []


SYSTEMS: dict[str, Callable[[Path], Made]] = {
    "ppcb of three": ppcb,
    "samba": samba,
    "linucb-ds": lambda folder: outsourced(folder, LinUCBDS()),
    "spectralucb-ds": lambda folder: outsourced(folder, SpectralUCBDS()),
    "helba": helba,
}


def dying(machines: Machines, role: str, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What a party does that is killed after its seventh decision, and started again."""
    meshes, died, agree, made = dict[str, Any](), threading.Event(), on_shares.agree, Status.made

    def agreed(mesh: Any, *rest: Any) -> Any:
        meshes[threading.current_thread().name] = mesh
        return agree(mesh, *rest)

    def dies(status: Status, done: int) -> None:
        if done == DIES and threading.current_thread().name == "to die" and not died.is_set():
            died.set()
            cut(meshes["to die"])
            raise Killed
        made(status, done)

    patch.setattr(on_shares, "agree", agreed)
    patch.setattr(Status, "made", dies)

    def party() -> None:
        threading.current_thread().name = "to die"
        with pytest.raises(Killed):
            machines.playing(role, coins, heard=0)()
        machines.playing(role, heard=0, resume=True)()

    return party


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_party_that_dies_comes_back_alone_and_all_learn_the_same(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = []
    for name in ("undisturbed", "disturbed"):
        machines, worlds = SYSTEMS[system](tmp_path / name)
        instead = {"party 1": dying(machines, "party 1", monkeypatch)} if name == "disturbed" else {}
        good(machines.play(fresh=dict.fromkeys(machines.files, coins), worlds=worlds, instead=instead))
        found = {role: machines.result(role) for role in machines.files}
        learned.append({role: {name: said.get(name) for name in LEARNED} for role, said in found.items()})
    assert learned[0] == learned[1]


def test_as_published_nothing_is_gone_on_with(tmp_path: Path) -> None:
    """Its keys are never written: who is told to go on says so, and when one dies all others end and name it."""
    pytest.importorskip("phe", reason="the extra 'paillier' is not installed")
    machines, _ = outsourced(tmp_path, LinUCBDS(), "classic")
    with pytest.raises(ConfigError, match="linucb-ds in mode 'classic' begins anew: leave out --resume"):
        machines.playing("P", resume=True)()

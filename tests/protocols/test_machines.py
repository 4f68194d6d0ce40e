"""Every system on machines of their own gives what it gives when it is launched with the same coins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.helba import HELBA, Constants, toy
from bandits.helba import play as play_clear
from bandits.samba import BernoulliArms, Seeds
from bandits.samba.coins import derived
from protocols.helba.command import Helba
from protocols.helba.run import Encrypted
from protocols.linucb_ds.classic.run import play_classic as play_published
from protocols.linucb_ds.command import LinUCBDS, SpectralUCBDS
from protocols.linucb_ds.mpc.run import Outsourced
from protocols.linucb_ds.mpc.settings import Settings as LinearSettings
from protocols.linucb_ds.problems import made_up, normal_arms, of
from protocols.run import launch as launching
from protocols.run.launch import Processes, launch
from protocols.samba.classic.messages import Spec
from protocols.samba.classic.run import play_classic
from protocols.samba.command import Samba
from protocols.samba.mpc.run import Federation
from protocols.samba.owners import game_of

from .machines import Machines, good

ARMS = np.array([0.2, 0.9, 0.5])
KEY = bytes(range(16))
WORLD = """
from pathlib import Path
import numpy as np
rewards, arms = np.load(Path(__file__).with_name("rewards.npy")), []
def tell(decision, values):
    arms.extend(values)
def hear(decision):
    return rewards[decision, arms[decision]]
"""


def ledger_of(run: Any) -> list[list[Any]]:
    return [[entry.role, entry.what, entry.count, entry.why] for entry in run.ledger]


def told_ledger(machines: Machines, party: int = 0) -> list[list[Any]]:
    return [list(row.values()) for row in machines.result(f"party {party}")["ledger"]]


@pytest.mark.parametrize("policy", ["epsilon-greedy", "thompson"])
def test_samba_on_shares(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners of the launched run have means and a seed; here each has what its arm pays at each step."""
    steps = 12
    options = {"policy": policy, "arms": 3, "budget": steps, "hosts": 2, **({"eps": 0.5} if policy[0] == "e" else {})}
    monkeypatch.setattr(launching, "fresh_key", lambda: KEY)
    twin = Federation(Machines(tmp_path / "a", Samba(), options).program.settings, 2, 1, BernoulliArms(ARMS))
    seeds = twin.seeds(KEY)
    paid = np.array([[twin.arms.reward(seeds.rewards, arm, t) for arm in range(3)] for t in range(1, steps + 1)])
    machines = Machines(tmp_path / "b", Samba(), options, data={"owners 0 to 1": paid[:, :2], "owner 2": paid[:, 2:]})
    copied = machines.dealt()

    def fresh(name: str) -> bytes:
        return seeds.common if name == "common" else derived(seeds.noise, name)

    others = {role: (lambda name: bytes(32) if name == "common" else fresh(name)) for role in machines.files}
    good(machines.play(fresh={**others, "owners 0 to 1": fresh}))
    launched = launch(twin, Processes(60.0, copied))
    assert machines.result("DC")["cumulative_reward"] == launched.total
    assert told_ledger(machines) == ledger_of(launched)
    known = (machines.result(role)["left"] for role in ("owners 0 to 1", "owner 2"))
    games = [{name: np.array(rows, np.int64) for name, rows in each.items()} for each in known]
    assert game_of(games, steps).equals(launched.game)


def test_linucb_on_shares(tmp_path: Path) -> None:
    problem = made_up("linucb-ds", arms=5, dim=3, seed=4)
    settings = LinearSettings.of(problem, 6)
    np.save(tmp_path / "arms.npy", problem.arms)
    options = {
        "arms_file": str(tmp_path / "arms.npy"), "theta_norm": problem.exploration.theta_norm, "budget": 6, "seed": 9,
    }  # fmt: skip
    machines = Machines(tmp_path, LinUCBDS(), options, data={"DO": problem.theta[None]})
    launched = launch(Outsourced(settings, 2, 9, problem), Processes(60.0, machines.dealt()))
    good(machines.play())
    assert machines.result("DC")["left"] == launched.word
    assert machines.result("DC")["cumulative_reward"] == launched.cumulative_reward
    assert told_ledger(machines) == ledger_of(launched)


@pytest.mark.parametrize("known", [True, False], ids=["rewards", "functions"])
def test_helba_on_shares(known: bool, tmp_path: Path) -> None:
    steps = 5
    problem = toy(Constants(), steps, 3, arms=2)
    features = problem.features.reshape(steps, -1)
    rows = np.concatenate([features, problem.rewards], axis=1) if known else features
    world = '[world]\ntell = "world_of_users:tell"\nhear = "world_of_users:hear"'
    more = {} if known else {"user": world}
    machines = Machines(tmp_path, Helba(), {"steps": steps}, data={"user": rows}, more=more)
    np.save(machines.home("user") / "rewards.npy", problem.rewards)
    (machines.home("user") / "world_of_users.py").write_text(WORLD)
    launched = launch(
        Encrypted(machines.program.settings, 2, problem=problem), Processes(60.0, machines.dealt())
    )  # fmt: skip
    good(machines.play())
    assert machines.result("user")["learned"] == launched.arms.reshape(steps, 1).tolist()
    assert told_ledger(machines) == ledger_of(launched)


def test_samba_as_published(tmp_path: Path) -> None:
    """Each draws its own coins: here those of one seed, as a run on one machine has them."""
    pytest.importorskip("phe", reason="the extra 'paillier' is not installed")
    steps, seeds, arms = 10, Seeds.of(6), BernoulliArms(ARMS)
    options = {"policy": "epsilon-greedy", "eps": 0.4, "arms": 3, "budget": steps, "bits": 1024}
    paid = np.array([[arms.reward(seeds.rewards, arm, t) for arm in range(3)] for t in range(1, steps + 1)])
    data = {f"owner {arm}": paid[:, [arm]] for arm in range(3)}
    machines = Machines(tmp_path, Samba(), options, mode="classic", data=data)

    def fresh(name: str) -> bytes:
        return derived(seeds.noise, name) if name.startswith("noise") else getattr(seeds, name, bytes(32))

    good(machines.play(fresh=dict.fromkeys(machines.files, fresh)))
    alone = play_classic(Spec("epsilon-greedy", eps=0.4), arms, steps, seed=6, bits=1024)
    assert machines.result("DC")["cumulative_reward"] == alone.total
    for name, outcome in alone.outcomes.items():
        if name in data:
            assert machines.result(name)["outcome"]["state"] == outcome.state
    every = [tuple(row.values()) for name in machines.files for row in machines.result(name)["ledger"]]
    assert sorted(every) == sorted(tuple(vars(entry).values()) for entry in alone.ledger)


@pytest.mark.parametrize("system", [LinUCBDS(), SpectralUCBDS()], ids=["linucb", "spectralucb"])
def test_linucb_as_published(system: LinUCBDS, tmp_path: Path) -> None:
    pytest.importorskip("phe", reason="the extra 'paillier' is not installed")
    arms, theta = normal_arms(5, 3, 4)
    problem = of(system.name, arms, theta)
    np.save(tmp_path / "arms.npy", arms)
    constants = asdict(problem.exploration)  # type: ignore[call-overload]
    bounds = {name: constants[name] for name in ("theta_norm", "smoothness") if name in constants}
    options = {"arms_file": str(tmp_path / "arms.npy"), **bounds, "budget": 5, "bits": 1024}
    row = problem.theta if system.name == "linucb-ds" else arms @ theta
    machines = Machines(tmp_path / "roles", system, options, mode="classic", data={"DO": row[None]})
    good(machines.play(fresh={"P": lambda _: (8).to_bytes(16, "big") + bytes(16)}))
    alone = play_published(problem, 5, seed=8, bits=1024)
    assert machines.result("DC")["cumulative_reward"] == alone.cumulative_reward
    assert machines.result("P")["outcome"]["arms"] == alone.arms


def test_helba_on_ciphertexts(tmp_path: Path) -> None:
    pytest.importorskip("seal", reason="the extra 'ckks' is not installed")
    steps = 2
    problem = toy(Constants(), steps, 3, arms=2)
    rows = np.concatenate([problem.features.reshape(steps, -1), problem.rewards], axis=1)
    machines = Machines(tmp_path, Helba(), {"steps": steps, "degree": 8192}, mode="ckks", data={"user": rows})
    good(machines.play())
    assert machines.result("user")["outcome"]["arms"] == play_clear(HELBA(Constants()), problem).arms.tolist()

"""The classic protocol with a process for each participant."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.coins import Noise
from bandits.fixed_point import Scales
from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from bandits.spectral import neighbour_graph, spectral_problem
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from protocols.linucb_ds.classic.cast import ROLES, cast_of
from protocols.linucb_ds.classic.messages import Role
from protocols.linucb_ds.classic.run import play_classic
from protocols.published import participant
from protocols.published.participant import Cast, input_path
from tests.parties.processes import ENVIRONMENT, script

ROLE = own_command("protocols.published.participant", "protocols.linucb_ds.classic.cast:PUBLISHED")


def linucb(dim: int = 3, arms: int = 6) -> LinearProblem:
    rng = np.random.default_rng(0)
    rows, theta = rng.normal(size=(arms, dim)), rng.normal(size=dim)
    return LinearProblem(rows, theta, Confidence.of(rows, theta))


def spectral() -> LinearProblem:
    rng = np.random.default_rng(2)
    return spectral_problem(neighbour_graph(rng.normal(size=(5, 2)), 2), 3.0 + rng.normal(size=5), noise=0.3)


@pytest.mark.parametrize("problem", [linucb(), spectral()], ids=["linucb", "spectralucb"])
def test_four_processes_give_what_one_gives(problem: LinearProblem) -> None:
    given = {"seed": 3, "noise": Noise.NORMAL, "bits": 256, "insecure": True}
    run = play_classic(problem, 25, cores=2, processes=True, **given)  # type: ignore[arg-type]
    alone = play_classic(problem, 25, **given)  # type: ignore[arg-type]
    assert run.exact and run.arms == alone.arms and run.total == alone.total
    assert run.counts == alone.counts
    assert set(run.ledger) == set(alone.ledger)
    assert run.seconds_per_step > 0


def test_each_process_is_given_its_own_input_only(tmp_path: Path) -> None:
    problem = linucb()
    cast_of(problem, Scales(), budget=7, seed=12345, noise=Noise.SIGN, bits=256, insecure=True).write(tmp_path)
    texts = {role: input_path(tmp_path, role).read_text() for role in ROLES}
    for role, given in texts.items():
        own = set(json.loads(given)) - {"bits", "insecure", "cores"}
        assert own == {
            Role.DO: {"arms", "theta", "kind", "constants", "scales"}, Role.DC: {"budget"}, Role.P: {"seed", "noise"},
            Role.COMP: set(),
        }[role]  # fmt: skip
        assert input_path(tmp_path, role).stat().st_mode & 0o077 == 0
        assert (str(problem.theta[0]) in given) == (role is Role.DO)


@pytest.mark.parametrize(
    ("role", "change", "words"),
    [
        (Role.DC, {"bits": 512}, "sent a modulus of"),
        (Role.COMP, {"bits": 512}, "Comp sent a modulus of 512 bits"),
        (Role.DC, {"budget": 0}, "at least 1 pull, not 0"),
        (Role.DO, {"theta": [1.0]}, "3 dimensions and theta has shape"),
        (Role.COMP, {"bits": 512, "insecure": False}, "Comp failed with exit code 2: a key of 512 bits hides nothing"),
    ],
)
def test_the_first_cause_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, role: Role, change: dict[str, object], words: str
) -> None:
    write = Cast.write

    def changed(cast: Cast, folder: Path) -> None:
        write(cast, folder)
        path = input_path(folder, role)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    monkeypatch.setattr(Cast, "write", changed)
    with pytest.raises(ConfigError, match=words) as caught:
        play_classic(linucb(), 10, seed=1, bits=256, insecure=True, processes=True)
    assert "party" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_a_participant_that_never_comes_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpc.launch._SECONDS_TO_START", 1.0)
    cast_of(linucb(), Scales(), budget=7, seed=1, noise=Noise.SIGN, bits=256, insecure=True).write(tmp_path)
    role = "import protocols.published.participant as c; c.party_main(c.main)"
    absent = f"import json, os\nif json.loads(os.environ['MASKED_PLACE'])['node'] != 3:\n {role}"
    with pytest.raises(ConfigError, match="DC did not join"):
        launch([*script(absent), ROLE[-1], str(tmp_path)], 4, environment=ENVIRONMENT, timeout=1.0)


def test_a_customer_that_hangs_does_not_hold_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it before the end, and it waits for all."""
    before, customer = participant.launch, list[int]()

    def halting(*given: Any, **rest: Any) -> None:
        def hear(name: str, line: str) -> None:
            if customer and line.startswith("step "):
                os.kill(customer.pop(), signal.SIGSTOP)

        def started(pids: list[int]) -> None:
            customer.append(pids[ROLES.index(Role.DC)])

        before(*given, **{**rest, "started": started, "output": hear, "linger": 3.0})

    monkeypatch.setattr(participant, "launch", halting)
    with pytest.raises(ConfigError, match="DC was silent for 3 s after all others had ended: it hangs"):
        play_classic(linucb(), 2_000, seed=1, bits=256, insecure=True, processes=True)


def test_a_participant_alone_says_how_it_is_started(tmp_path: Path) -> None:
    done = subprocess.run([*ROLE, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and "masked launch linucb-ds" in done.stderr and "Traceback" not in done.stderr

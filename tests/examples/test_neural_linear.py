"""Features that CrypTen computes on shares go into our bandit: the arms are the twin's, and nothing else is learned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.linear import Choice
from bandits.linucb import LinUCB
from bandits.play import play
from examples.neural_linear import CLASSES, NeuralLinearSystem, digits
from mpc.interop.crypten import crypten_python
from protocols.cli import main as masked
from protocols.run.options import main
from tests.parties.torchrun import torchrun

pytestmark = pytest.mark.needs("torch", "sklearn")
ROOT = Path(__file__).resolve().parents[2]
STEPS = 12


def problem(parties: int) -> list[str]:
    return ["neural-linear", "--parties", str(parties), "--steps", str(STEPS), "--eps", "0"]


def test_features_of_an_encrypted_network_go_into_the_bandit(tmp_path: Path) -> None:
    """Between three parties: whose tensors become shares between two as well is tested beside `mpc.interop`."""
    three = problem(3)
    main(NeuralLinearSystem(), ["plan", *three, "-o", str(tmp_path / "plan.json")])
    dealt = ("--steps", str(STEPS), "--out", str(tmp_path / "material"))
    masked(("offline", "deal", str(tmp_path / "plan.json"), *dealt))
    done = torchrun(
        5, str(ROOT / "examples" / "neural_linear.py"), "run", *three, "--material", "material", "--out", "run",
        "--json", "--timeout", "280", cwd=tmp_path, load=["mpc.interop.crypten:load"], python=crypten_python(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    judge(json.loads(done.stdout), tmp_path / "run")


@pytest.mark.parametrize("parties", [2, 5])
def test_in_one_process_the_network_is_computed_in_the_clear(
    parties: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(NeuralLinearSystem(), ["run", *problem(parties), "--out", str(tmp_path / "run"), "--json"])
    judge(json.loads(capsys.readouterr().out), tmp_path / "run")


def judge(facts: dict[str, Any], folder: Path) -> None:
    """The coins are the dealer's alone: a policy in the clear, which learns what the run learned, judges the arms."""
    learned = [(entry["role"], entry["what"], entry["count"]) for entry in facts["ledger"]]
    assert learned == [("puller", "arm", STEPS), ("payer", "reward", STEPS)]
    assert (facts["steps"], facts["rounds_per_step"]) == (STEPS, 20)
    with np.load(folder / "steps.npz") as kept:
        arms, rewards = kept["arms"], kept["rewards"]
    policy, nothing = LinUCB(1, CLASSES, CLASSES), Choice.draw(np.random.default_rng(1), 1, CLASSES, 0.0)
    for x, arm, reward in zip(digits().neural.episode(STEPS, 1).contexts, arms, rewards, strict=True):
        scores = policy.scores(x[None, None], nothing)[0, 0]
        assert scores[arm[0]] > scores.max() - 2.0**-8 - 2.0**-10, "closer ones are drawn among"
        policy.update(x[None, None], arm[None], reward[None])


def test_neural_features_earn_more_than_linear_ones() -> None:
    """In the clear, by the policy that the parties play, in each of three orders of the images."""
    known = digits()
    for seed in (1, 2, 3):
        paid = []
        for environment in (known.neural, known.linear):
            rng = np.random.default_rng(seed)
            coins = (replace(Choice.draw(rng, 1, CLASSES, 0.05), unit=2.0**-12) for _ in range(300))
            records = play(LinUCB(1, CLASSES, environment.dim), [environment.episode(300, seed)], coins)
            paid.append(np.mean([record.rewards for record in records]))
        assert paid[0] > paid[1] + 0.04

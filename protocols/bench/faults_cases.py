"""What is launched in the fault campaign, and what a run that was disturbed must end with.

Knows command lines and documents (JSON, steps.npz); nothing of the code behind them.  A new system is a row of `CASES`.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bandits.data import load

from .greedy import NEAR, departure

PARTIES = ("party 0", "party 1")
_MEANS = (0.35, 0.65)
_OWNERS = tuple(f"owner {arm}" for arm in range(len(_MEANS)))
_LENGTHS = re.compile(r"(--(?:steps|budget|items|checkpoint-every)) (\d+)")
_SITTINGS = 4
"""Material lasts for so many runs: what a disturbed one has spent is not used again."""


@dataclass(frozen=True)
class Result:
    """What a run left: its JSON document, and steps.npz where there is one."""

    document: dict[str, Any]
    steps: dict[str, np.ndarray]

    @staticmethod
    def read(document: dict[str, Any], out: Path) -> Result:
        """The files of a run besides its document."""
        file = out / "steps.npz"
        if not file.is_file():
            return Result(document, {})
        with np.load(file) as steps:
            return Result(document, {name: steps[name] for name in steps.files})


@dataclass(frozen=True)
class Case:
    """A program as it is launched.

    command: behind `masked launch`, or behind a script's own name.  nodes: what its roles are called.
    same(run, undisturbed): what is not as it should be; "" if all is.  plan: the words that plan its material, where
    that is dealt beforehand, and for how many steps a run draws.  script: where it is no program of `masked`.
    keeps: whether it has --out.
    """

    system: str
    mode: str
    command: str
    nodes: tuple[str, ...]
    same: Callable[[Result, Result], str]
    plan: tuple[str, int] | None = None
    script: str = ""
    keeps: bool = True

    @property
    def name(self) -> str:
        """As it stands in reports."""
        return f"{self.system} {self.mode}"

    def longer(self, times: int) -> Case:
        """The same with so many times its steps, and as many between two checkpoints."""
        if times == 1:
            return self
        plan = self.plan and (_scaled(self.plan[0], times), self.plan[1] * times)
        return replace(self, command=_scaled(self.command, times), plan=plan)

    def words(self, home: Path, material: Path, timeout: float, *more: str) -> list[str]:
        """The command line of a run whose results are in home/out."""
        given = f"{self.command} --seed 1 --json".split()
        if "--mode" in given and self.system == "samba":
            file = home / "means.txt"
            file.write_text("\n".join(map(str, (len(_MEANS), *_MEANS))) + "\n")
            given += ["--arms-file", str(file)]
        given += ["--material", str(material)] if self.plan is not None else []
        given += ["--out", str(home / "out")] if self.keeps else []
        return [*([self.script] if self.script else []), "launch", *given, "--timeout", f"{timeout:g}", *more]

    def deal(self, folder: Path) -> None:
        """Its material, below folder/material."""
        if self.plan is None:
            return
        words, steps = self.plan
        plan = str(folder / "plan.json")
        for line in ([*words.split(), "-o", plan],
                     ["deal", plan, "--steps", str(_SITTINGS * steps), "--out", str(folder / "material")]):  # fmt: skip
            subprocess.run([sys.executable, "-m", "protocols", "offline", *line], stdout=subprocess.DEVNULL, check=True)


def _scaled(words: str, times: int) -> str:
    return _LENGTHS.sub(lambda found: f"{found[1]} {int(found[2]) * times}", words)


def _beside_twin(run: Result, undisturbed: Result) -> str:
    """The contextual bandit has fresh coins in each launch: its twin with the same coins made every decision so."""
    if (shape := run.steps["arms"].shape) != undisturbed.steps["arms"].shape:
        return f"arms of shape {shape}"
    parted = run.document["first_difference"]
    return "" if parted is None or parted["gap"] < NEAR else f"parts from its twin: {parted}"


def _beside_regression(run: Result, undisturbed: Result) -> str:
    """With coins of material there is no twin; without exploration an arm follows from those before, but for ties."""
    arms, rewards = (run.steps[name][:, 0] for name in ("arms", "rewards"))
    if (shape := run.steps["arms"].shape) != undisturbed.steps["arms"].shape:
        return f"arms of shape {shape}"
    episode = load("synthetic", arms=_ARMS, dim=_DIM).episode(len(arms), 1)
    unpaid = np.flatnonzero(rewards != episode.outcomes[np.arange(len(arms)), arms])
    return (
        f"decision {unpaid[0]} was not paid so"
        if len(unpaid)
        else departure(episode.contexts, arms.tolist(), rewards.tolist(), _ARMS)
    )


def _beside_policy(run: Result, _: Result) -> str:
    """SAMBA on shares has fresh coins in each launch: the plaintext policy with the same coins pulled so."""
    if not run.document["pulls_equal_reference"]:
        return "pulls differ from the reference"
    return _sum(run, run, "reference_cumulative_reward")


def _beside_policy_and_sum(run: Result, undisturbed: Result) -> str:
    return _beside_policy(run, undisturbed) or _sum(run, undisturbed)


def _beside_sum(run: Result, _: Result) -> str:
    """With arms hidden the noise is dealt, afresh in each launch: the reference with the same coins has this sum."""
    return _sum(run, run, "reference_cumulative_reward")


def _beside_arms(run: Result, undisturbed: Result) -> str:
    """All follows from the seed, but for ties, of which normal arms and sparse graphs have none."""
    differ = run.document["arms"] != undisturbed.document["arms"]
    return "arms differ" if differ else _sum(run, undisturbed)


def _beside_reference(run: Result, _: Result) -> str:
    """Arms of a graph tie: the reference with the same coins pulled so."""
    parted = run.document["first_difference"]
    return f"parts from its reference: {parted}" if parted else _beside_sum(run, run)


def _beside_all(run: Result, undisturbed: Result) -> str:
    """Whatever coins there are: all that it computes is the undisturbed run's, and its error against plaintext none."""
    facts = ("revenue", "surplus", "equal_twin", "steps", "max_error", "cumulative_reward", "reference_arms")
    differ = [name for name in facts if run.document.get(name) != undisturbed.document.get(name)]
    return f"{', '.join(differ)} differ" if differ else ""


def _beside_regret(run: Result, undisturbed: Result) -> str:
    """HELBA explores by no coins: all follows from the seed, but for ties, of which its problem has none."""
    differ = [name for name in ("regret", "updates") if run.document[name] != undisturbed.document[name]]
    return f"{', '.join(differ)} differ" if differ else ""


def _sum(run: Result, other: Result, key: str = "cumulative_reward") -> str:
    got, expected = run.document["cumulative_reward"], other.document[key]
    return "" if math.isclose(got, expected, abs_tol=1e-6) else f"a sum of {got}, not {expected}"


_ARMS, _DIM = 3, 4
_BANDIT = f"--data synthetic --arms {_ARMS} --dim {_DIM} --parties 2"
_GREEDY = f"--arms {_ARMS} --dim {_DIM} --parties 2 --steps 60 --eps 0 --tie-bits 0"
_SAMBA = "--parties 2 --hosts 1 --budget 90 --checkpoint-every 9"
_LINEAR = "--dim 3 --arms 5"
_HELBA = "--parties 2 --steps 24"
_CLIENTS = (*PARTIES, "puller", "payer")
_OUTSOURCED = (*PARTIES, "DO", "DC")
_HOSTED = (*PARTIES, "owners 0 to 1", "DC")
_BIDDERS = ("bidder 0", "bidder 1", "seller", "regulator")
CASES = (
    Case("ppcb", "recast", f"ppcb {_BANDIT} --steps 60 --checkpoint-every 6", _CLIENTS, _beside_twin),
    Case("ppcb", "material", f"ppcb --data synthetic {_GREEDY} --checkpoint-every 6", _CLIENTS, _beside_regression,
         (f"plan ppcb {_GREEDY}", 60)),
    Case("ppcb", "published", f"ppcb {_BANDIT} --variant published --steps 20 --checkpoint-every 2", _CLIENTS,
         _beside_twin),
    Case("samba", "classic", "samba --mode classic --bits 1024 --budget 90 --checkpoint-every 9",
         ("Controller", "Comp", "DC", *_OWNERS), _beside_policy_and_sum),
    Case("samba", "mpc", f"samba --mode mpc {_SAMBA}", _HOSTED, _beside_policy),
    Case("samba", "mpc material", f"samba --mode mpc {_SAMBA}", _HOSTED, _sum,
         (f"plan samba --parties 2 --budget 90 --arms {len(_MEANS)}", 88)),
    Case("linucb-ds", "classic", f"linucb-ds {_LINEAR} --mode classic --bits 1024 --budget 90",
         ("P", "Comp", "DO", "DC"), _beside_arms),
    Case("linucb-ds", "mpc", f"linucb-ds {_LINEAR} --mode mpc --budget 90 --checkpoint-every 9", _OUTSOURCED,
         _beside_arms),
    Case("linucb-ds", "mpc material", f"linucb-ds {_LINEAR} --mode mpc --budget 90 --checkpoint-every 9", _OUTSOURCED,
         _beside_arms, (f"plan linucb-ds {_LINEAR} --budget 90", 90)),
    Case("linucb-ds", "mpc hidden", f"linucb-ds {_LINEAR} --mode mpc --hide-arms --budget 40 --checkpoint-every 4",
         _OUTSOURCED, _beside_sum),
    Case("spectralucb-ds", "classic", "spectralucb-ds --dim 3 --arms 12 --mode classic --bits 1024 --budget 40",
         ("P", "Comp", "DO", "DC"), _beside_reference),
    Case("spectralucb-ds", "mpc", "spectralucb-ds --dim 3 --arms 12 --mode mpc --budget 40 --checkpoint-every 4",
         _OUTSOURCED, _beside_reference),
    Case("spectralucb-ds", "mpc material",
         "spectralucb-ds --dim 3 --arms 12 --neighbours 3 --mode mpc --budget 40 --checkpoint-every 4", _OUTSOURCED,
         _beside_arms, ("plan spectralucb-ds --dim 3 --arms 12 --neighbours 3 --budget 40", 40)),
    Case("helba", "dealer", f"helba {_HELBA} --checkpoint-every 3", (*PARTIES, "user"), _beside_regret),
    Case("helba", "material", f"helba {_HELBA} --checkpoint-every 3", (*PARTIES, "user"), _beside_regret,
         (f"plan helba {_HELBA}", 24)),
    Case("helba", "ckks", "helba --mode ckks --degree 8192 --steps 4", ("server", "user", "key owner"),
         _beside_regret),
    Case("argmax", "dealer", "argmax --parties 2 --steps 60", PARTIES, _beside_all, keeps=False),
    Case("argmax", "material", "argmax --parties 2 --steps 60", PARTIES, _beside_all, ("plan argmax --parties 2", 60),
         keeps=False),
    Case("auction", "script", "auction --items 50 --bidders 2 --checkpoint-every 5", (*PARTIES, *_BIDDERS),
         _beside_all, script="examples/auction.py"),
)  # fmt: skip

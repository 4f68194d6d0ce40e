"""What is launched in the fault campaign, and what a run that was disturbed must end with.

Knows command lines and documents (JSON, steps.npz); nothing of the code behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PARTIES = ("party 0", "party 1")
_MEANS = (0.2, 0.35, 0.5, 0.65)
_OWNERS = tuple(f"owner {arm}" for arm in range(len(_MEANS)))
_NEAR = 2.0**-10
"""Two scores of the contextual bandit closer than this may fall either way: its table's reciprocal is off by 1e-5."""


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
    """A system in a mode.

    nodes: whom an error names, by node.  same(run, undisturbed): what is not as it should be; "" if all is.
    """

    system: str
    mode: str
    options: str
    nodes: tuple[str, ...]
    same: Callable[[Result, Result], str]

    @property
    def name(self) -> str:
        """As it stands in reports."""
        return f"{self.system} {self.mode}"

    def arguments(self, folder: Path) -> list[str]:
        """The options; the file of SAMBA's arms is written below `folder`."""
        given = self.options.split()
        if self.system == "samba":
            file = folder / "means.txt"
            file.write_text("\n".join(map(str, (len(_MEANS), *_MEANS))) + "\n")
            given += ["--arms-file", str(file)]
        return given


def _beside_twin(run: Result, undisturbed: Result) -> str:
    """The contextual bandit has fresh coins in each launch: its twin with the same coins made every decision so."""
    if (shape := run.steps["arms"].shape) != undisturbed.steps["arms"].shape:
        return f"arms of shape {shape}"
    parted = run.document["first_difference"]
    return "" if parted is None or parted["gap"] < _NEAR else f"parts from its twin: {parted}"


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
    """All follows from the seed, but for ties, and normal arms have none."""
    differ = run.document["arms"] != undisturbed.document["arms"]
    return "arms differ" if differ else _sum(run, undisturbed) or _beside_sum(run, run)


def _sum(run: Result, other: Result, key: str = "cumulative_reward") -> str:
    got, expected = run.document["cumulative_reward"], other.document[key]
    return "" if math.isclose(got, expected, abs_tol=1e-6) else f"a sum of {got}, not {expected}"


_BANDIT = "--arms 3 --dim 4 --parties 2"
_OUTSOURCED = "--dim 3 --arms 5"
CASES = (
    Case("ppcb", "recast", f"{_BANDIT} --steps 300 --checkpoint-every 30", (*PARTIES, "puller", "payer"), _beside_twin),
    Case("ppcb", "published", f"{_BANDIT} --variant published --steps 100 --checkpoint-every 10",
         (*PARTIES, "puller", "payer"), _beside_twin),
    Case("samba", "classic", "--mode classic --bits 1024 --budget 1000 --checkpoint-every 100",
         ("Controller", "Comp", "DC", *_OWNERS), _beside_policy_and_sum),
    Case("samba", "mpc", "--mode mpc --parties 2 --hosts 2 --budget 1000 --checkpoint-every 100",
         (*PARTIES, "owners 0 to 1", "owners 2 to 3", "DC"), _beside_policy),
    Case("linucb-ds", "classic", f"{_OUTSOURCED} --mode classic --bits 1024 --budget 600",
         ("P", "Comp", "DO", "DC"), _beside_arms),
    Case("linucb-ds", "mpc", f"{_OUTSOURCED} --mode mpc --budget 1000 --checkpoint-every 100",
         (*PARTIES, "DO", "DC"), _beside_arms),
    Case("linucb-ds", "mpc hidden", f"{_OUTSOURCED} --mode mpc --hide-arms --budget 200 --checkpoint-every 20",
         (*PARTIES, "DO", "DC"), _beside_sum),
)  # fmt: skip

"""The world of a session between machines in the fault campaign: copied beside the files of those who meet it.

told     a line for each arm that the puller learned: decision, arm
heard    a line for each reward that the payer gave: decision, arm, reward
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

WORLD = Path(__file__).resolve().parents[1] / "world"
_PAUSE = 0.002  # seconds between two looks whether an arm was pulled


def tell(decision: int, values: list[float]) -> None:
    """An arm is pulled."""
    with (WORLD / "told").open("a") as told:
        told.write(f"{decision} {values[0]:.0f}\n")


def hear(decision: int) -> float:
    """What it pays."""
    while decision not in (pulled := dict(lines(WORLD / "told"))):
        time.sleep(_PAUSE)
    arm = int(pulled[decision])
    reward = float(np.load(WORLD / "outcomes.npy")[decision, arm])
    with (WORLD / "heard").open("a") as heard:
        heard.write(f"{decision} {arm} {reward}\n")
    return reward


def lines(file: Path) -> list[tuple[int, str]]:
    """Of each whole line, the decision and the rest."""
    raw = file.read_text() if file.exists() else ""
    given = (line.partition(" ") for line in raw[: raw.rfind("\n") + 1].splitlines())
    return [(int(decision), rest) for decision, _, rest in given]

"""The world of a session between machines in the fault campaign: copied beside the files of those who meet it.

told     a line for each arm that the puller learned: decision, arm, which telling
heard    a line for each reward that the payer gave: decision, arm, reward
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

WORLD = Path(__file__).resolve().parents[1] / "world"
_PAUSE = 0.002  # seconds between two looks whether an arm was pulled


def tell(decision: int, values: list[float], again: int = 0) -> None:
    """An arm is pulled."""
    with (WORLD / "told").open("a") as told:
        told.write(f"{decision} {values[0]:.0f} {again}\n")


def hear(decision: int, again: int = 0) -> float:
    """What it pays."""
    while (arm := arms(WORLD / "told").get((decision, again))) is None:
        time.sleep(_PAUSE)
    reward = float(np.load(WORLD / "outcomes.npy")[decision, arm])
    with (WORLD / "heard").open("a") as heard:
        heard.write(f"{decision} {arm} {reward}\n")
    return reward


def arms(file: Path) -> dict[tuple[int, int], int]:
    """By decision and telling."""
    told = ((decision, *map(int, rest.split())) for decision, rest in lines(file))
    return {(decision, again): arm for decision, arm, again in told}


def lines(file: Path) -> list[tuple[int, str]]:
    """Of each whole line, the decision and the rest."""
    raw = file.read_text() if file.exists() else ""
    given = (line.partition(" ") for line in raw[: raw.rfind("\n") + 1].splitlines())
    return [(int(decision), rest) for decision, _, rest in given]

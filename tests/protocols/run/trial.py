"""A small run of the bandit on machines of their own, and the same run as one program."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bandits.environments import synthetic_linear
from protocols.ppcb.clients import pulled
from protocols.ppcb.command import PPCB
from protocols.ppcb.player import split
from protocols.ppcb.run import Bandit
from protocols.ppcb.settings import Settings
from protocols.run.program import party_name

from ..machines import Machines, World

STEPS, ARMS, DIM = 12, 3, 6


@cache
def bandit(parties: int, seed: int = 5) -> Bandit:
    return Bandit.on(
        synthetic_linear(ARMS, DIM, seed=seed), Settings(ARMS, DIM, eps=0.2), parties=parties, steps=STEPS, seed=seed
    )


def session(
    folder: Path, parties: int = 2, *, seed: int = 5, named: bool = False, dealer: bool = False, every: int = 5,
    **changed: Any,
) -> Machines:  # fmt: skip
    """Owners with their features; named: rows have ids."""
    blocks = split(bandit(parties, seed).world.contexts, parties)
    data = {party_name(party): block.reshape(STEPS, -1) for party, block in blocks.items()}
    options = {"steps": STEPS, "arms": ARMS, "dim": DIM, "eps": 0.2, **changed}
    ids = {role: [f"patient-{4711 + at}" for at in range(STEPS)] for role in data if named}
    return Machines(folder, PPCB(), options, parties, data=data, ids=ids, dealer=dealer, every=every)


def paying(parties: int, seed: int = 5) -> World:
    """What is between the puller's stdout and the payer's stdin."""

    def paid(said: dict[str, Any]) -> dict[str, Any]:
        outcomes = bandit(parties, seed).world.outcomes[said["decision"]]
        rewards = pulled(outcomes, np.array(said["values"]).reshape(1, 1))
        return {**said, "values": rewards.reshape(-1).tolist()}

    return paid

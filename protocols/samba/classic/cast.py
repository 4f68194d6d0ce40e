"""Which participant is given what, and what it then plays in a process of its own.

    Controller   has  the seed of its permutations
    Comp         has  the seed of its coins, the key it shares with owners
    DC           has  the policy and the budget
    owner i      has  that key, the owners' seeds, the seed of its noise, its arm's mean

All of them talk to the Controller alone.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba import BernoulliArms, SambaError
from bandits.samba.coins import OrderCoins, PointCoins, derived
from bandits.samba.rewards import reward

from ...published.drive import Play, Watch
from ...published.participant import Cast, Published
from ...published.sealing import fresh_key
from ...run.folder import Keep
from ..owners import owners_name
from .checkpoints import OwnersKept, RunKept, home_of
from .masks import OwnerCoins
from .messages import COMP, CONTROLLER, CUSTOMER, Spec
from .outcome import Outcome
from .roles import comparator, controller, data_customer, owners

_OTHERS = 3  # nodes before the owners'


def cast_of(
    run: RunKept, arms: BernoulliArms, *, masks: bytes, bits: int, insecure: bool, start: int, keep: Keep | None
) -> Cast:
    """To each its own, an owner in each process."""
    common, key, seeds = {"arms": len(arms), "bits": bits}, fresh_key().hex(), run.seeds
    home = None if keep is None else {"folder": str(keep.folder.resolve()), "run": run.run, "every": keep.every}
    inputs: dict[str, dict[str, Any]] = {
        CONTROLLER: {**common, "seed": seeds.order.hex(), "start": start},
        COMP: {**common, "seed": seeds.point.hex(), "key": key},
        CUSTOMER: {**common, "spec": asdict(run.spec), "budget": run.budget, "insecure": insecure},
    }
    for i, mean in enumerate(arms.means.tolist()):
        inputs[owners_name(range(i, i + 1))] = {
            **common, "key": key, "common": seeds.common.hex(), "masks": masks.hex(), "rewards": seeds.rewards.hex(),
            "keep": home, "mean": mean, "noise": derived(seeds.noise, f"noise {i}").hex(),
        }  # fmt: skip
    calls = [(name, CONTROLLER) for name in inputs if name != CONTROLLER]
    return Cast(inputs, calls, centre=CONTROLLER, patient=CUSTOMER)


def play_of(node: int, given: dict[str, Any], watch: Watch) -> Play[Outcome]:
    """What a node plays."""

    def seed(name: str) -> bytes:
        return bytes.fromhex(given[name])

    arms, bits = given["arms"], given["bits"]
    if node == 0:
        hosts = [range(i, i + 1) for i in range(arms)]
        return controller(hosts, OrderCoins(seed("seed"), arms), bits, start=given["start"], watch=watch)
    if node == 1:
        return comparator(PointCoins(seed("seed")), seed("key"), bits)
    if node == 2:
        return data_customer(Spec(**given["spec"]), given["budget"], bits, insecure=given["insecure"])
    rows, paid, mean, keeper = range(node - _OTHERS, node - _OTHERS + 1), seed("rewards"), given["mean"], None
    if (keep := given["keep"]) is not None:
        keeper = OwnersKept(home_of(Path(keep["folder"]), rows), keep["run"], keep["every"])
    noise = np.random.Generator(np.random.PCG64(int.from_bytes(seed("noise"), "little")))
    coins = OwnerCoins(seed("common"), seed("masks"), arms)
    return owners(
        rows, arms, coins, seed("key"), [noise], lambda arm, t: reward(paid, mean, arm, t), bits, keeper=keeper
    )


PUBLISHED = Published(f"{__name__}:PUBLISHED", "samba", Outcome, SambaError, play_of)

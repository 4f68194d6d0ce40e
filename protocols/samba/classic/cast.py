"""Which participant is given what, and what it then plays, in this process or in one of its own.

    Controller   has  the seed of its permutations
    Comp         has  the seed of its coins, the key it shares with owners
    DC           has  the policy and the budget
    owner i      has  that key, the owners' seeds, the seed of its noise, its arm's mean; a process may host several

All of them talk to the Controller alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bandits.samba import SambaError
from bandits.samba.coins import OrderCoins, PointCoins, derived
from bandits.samba.rewards import reward

from ...published.drive import Play, Watch
from ...published.kept import Home
from ...published.participant import Cast, Published
from ...published.sealing import fresh_key
from ...run.folder import Keep
from ..owners import Pay, owners_name
from .checkpoints import OwnersKept, RunKept, home_of
from .masks import OwnerCoins
from .messages import COMP, CONTROLLER, CUSTOMER, Spec
from .outcome import Outcome
from .roles import Make, comparator, controller, data_customer, owners
from .selecting import Seen


def cast_of(
    run: RunKept, hosts: Sequence[range], *, masks: bytes, bits: int, insecure: bool, start: int, keep: Keep | None
) -> Cast:
    """To each its own.  hosts: the owners of each process."""
    common, key, seeds = {"arms": len(run.means), "bits": bits}, fresh_key().hex(), run.seeds
    inputs: dict[str, dict[str, Any]] = {
        CONTROLLER: {
            **common, "seed": seeds.order.hex(), "hosts": [[rows.start, rows.stop] for rows in hosts], "start": start,
        },
        COMP: {**common, "seed": seeds.point.hex(), "key": key},
        CUSTOMER: {**common, "spec": asdict(run.spec), "budget": run.budget, "insecure": insecure},
    }  # fmt: skip
    for rows in hosts:
        home = None if keep is None else Home(home_of(keep.folder, rows), run.run, max(1, keep.every)).as_json()
        inputs[owners_name(rows)] = {
            **common, "rows": [rows.start, rows.stop], "key": key, "common": seeds.common.hex(), "masks": masks.hex(),
            "rewards": seeds.rewards.hex(), "keep": home, "means": [run.means[i] for i in rows],
            "noise": [derived(seeds.noise, f"noise {i}").hex() for i in rows],
        }  # fmt: skip
    return Cast(inputs, calls_of(list(inputs)), centre=CONTROLLER, patient=CUSTOMER)


def calls_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """Who calls whom."""
    return [(name, CONTROLLER) for name in names if name != CONTROLLER]


def play_of(
    node: int, given: dict[str, Any], watch: Watch | None, *, make: Make = Spec.policy, seen: list[Seen] | None = None,
    stop: Callable[[], bool] | None = None, pay: Pay | None = None,
) -> Play[Outcome]:  # fmt: skip
    """What a node plays.  seen: collects the lists that Comp decrypts.  stop: asked by owners before each step.

    pay: what an owner's arm pays, where it is not made up.
    """

    def seed(name: str) -> bytes:
        return bytes.fromhex(given[name])

    arms, bits = given["arms"], given["bits"]
    if node == 0:
        hosts = [range(*ends) for ends in given["hosts"]]
        return controller(
            hosts, OrderCoins(seed("seed"), arms), bits, make=make, start=given["start"], watch=watch
        )  # fmt: skip
    if node == 1:
        return comparator(PointCoins(seed("seed")), seed("key"), bits, make=make, seen=seen)
    if node == 2:
        return data_customer(Spec(**given["spec"]), given["budget"], bits, insecure=given["insecure"])
    rows = range(*given["rows"])
    if pay is None:
        paid, means = seed("rewards"), given["means"]
        pay = lambda arm, t: reward(paid, means[arm - rows.start], arm, t)  # noqa: E731
    keeper = None if (home := Home.from_json(given["keep"])) is None else OwnersKept(home)
    starts = [int.from_bytes(bytes.fromhex(each), "little") for each in given["noise"]]
    return owners(
        rows, arms, OwnerCoins(seed("common"), seed("masks"), arms), seed("key"),
        [np.random.Generator(np.random.PCG64(each)) for each in starts],
        pay, bits, make=make, keeper=keeper, stop=stop,
    )  # fmt: skip


PUBLISHED = Published(f"{__name__}:PUBLISHED", "samba", Outcome, SambaError, play_of)

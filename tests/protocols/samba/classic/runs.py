"""Classic runs of the tests: short keys, and participants whose messages can be seen and changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba.coins import OrderCoins, PointCoins, Seeds, owner_noise
from bandits.samba.rewards import reward
from protocols.published.drive import Play, Send, in_one_process
from protocols.run.folder import Keep
from protocols.samba.classic.masks import OwnerCoins
from protocols.samba.classic.messages import COMP, CONTROLLER, CUSTOMER, Spec
from protocols.samba.classic.outcome import Outcome
from protocols.samba.classic.roles import Make, comparator, controller, data_customer, owners
from protocols.samba.classic.run import ClassicRun, play_classic
from protocols.samba.owners import owners_name

BITS = 256
KEY, MASKS = bytes(range(32)), bytes(32)
UCB = Spec("ucb")
MEANS = (0.2, 0.8, 0.5)


def classic(
    policy: Any, means: Any = MEANS, budget: int = 40, *, folder: Path | None = None, every: int = 5000,
    resume: bool = False, overwrite: bool = False, **rest: Any,
) -> ClassicRun:  # fmt: skip
    keep = None if folder is None else Keep(folder, every, resume, overwrite)
    return play_classic(policy, means, budget, **{"seed": 1, "bits": BITS, "insecure": True, "keep": keep, **rest})


def same(run: ClassicRun) -> bool:
    """Checked from the parts, not by the run's own word."""
    reference = run.reference
    assert reference is not None
    return (
        run.game.arms.tolist() == reference.arms.tolist()
        and run.game.pulls.tolist() == reference.pulls.tolist()
        and run.game.sums.tolist() == reference.sums.tolist()
        and run.total == reference.total == int(run.game.sums.sum())
        and len(run.game.arms) == run.budget
        and run.pulls_equal_reference is True
    )


def plays(
    spec: Spec = UCB, budget: int = 12, *, means: Sequence[float] = MEANS, hosts: Sequence[range] | None = None,
    seed: int = 1, make: Make = Spec.policy, keys: dict[str, bytes] | None = None, **of_comp: Any,
) -> dict[str, Play[Outcome]]:  # fmt: skip
    """Every participant; `keys` that differ from the common one, by name."""
    seeds, count, own = Seeds.of(seed), len(means), keys or {}
    hosts = [range(i, i + 1) for i in range(count)] if hosts is None else hosts
    made: dict[str, Play[Outcome]] = {
        CUSTOMER: data_customer(spec, budget, BITS, insecure=True),
        CONTROLLER: controller(hosts, OrderCoins(seeds.order, count), BITS, make=make),
        COMP: comparator(PointCoins(seeds.point), own.get(COMP, KEY), BITS, make=make, **of_comp),
    }
    for rows in hosts:
        name = owners_name(rows)
        noise: list[np.random.Generator] = [owner_noise(seeds.noise, i) for i in rows]
        made[name] = owners(
            rows, count, OwnerCoins(seeds.common, MASKS, count), own.get(name, KEY), noise,
            lambda arm, t: reward(seeds.rewards, means[arm], arm, t), BITS, make=make,
        )  # fmt: skip
    return made


def changed(play: Play[Outcome], change: Callable[[Send], Send]) -> Play[Outcome]:
    """A participant whose messages pass through somebody's hands."""
    reply = None
    while True:
        try:
            want = play.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = yield change(want) if isinstance(want, Send) else want


def noted(given: dict[str, Play[Outcome]]) -> tuple[dict[str, Outcome], list[tuple[str, str, bytes]]]:
    """All outcomes, and all messages as (sender, receiver, bytes)."""
    sent: list[tuple[str, str, bytes]] = []

    def note(name: str) -> Callable[[Send], Send]:
        def noting(want: Send) -> Send:
            sent.append((name, want.to, want.raw))
            return want

        return noting

    outcomes, _ = in_one_process({name: changed(play, note(name)) for name, play in given.items()})
    return outcomes, sent

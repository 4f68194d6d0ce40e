"""Rows of Figure 6: the membership attack of Yeom et al. during training."""

from __future__ import annotations

from bandits.attacks.game import Plan
from bandits.attacks.yeom import by_run
from bandits.linear import LinearBandit

from .ppcb_data import environment
from .size import Size
from .units import Rows

_CHECKPOINTS = (1 / 60, 1 / 30, 1 / 12, 1 / 6, 1 / 3, 1 / 2, 3 / 4, 1)


def advantages(size: Size, eps: float, first: int, runs: int) -> Rows:
    """The advantage in each of `runs` runs at each checkpoint, counted in both ways.

    MNIST's test file is held out; of other data sets, rows that are not played.
    """
    data = environment(size, held_out=size.data == "mnist")
    at = tuple(dict.fromkeys(max(2, round(part * size.steps)) for part in _CHECKPOINTS))
    plan = Plan(eps, size.steps, len(at), runs, seed=1 + first, at=at)
    return [
        {"eps": eps, "step": found.step, "run": first + number, "advantage": round(float(apart), 6),
         "advantage_same_samples": round(float(same), 6)}
        for found in by_run(data, plan, lambda replicas: LinearBandit(replicas, data.arms, data.dim))
        for number, (apart, same) in enumerate(zip(found.apart, found.same))
    ]  # fmt: skip

"""A party of CrypTen that times steps of the bandit with the coins that CrypTen draws itself, as in its example.

Party 0 shares the contexts, pulls the arms and shares the rewards: in CrypTen it costs nothing who does.

max_error: over all steps, the greatest of: the distance of w from that of a twin in the clear, which learns from the
same arms and rewards; the distance of o from a one-hot vector; and, unless the coin said to explore, how far the twin's
score of the pulled arm is below its best.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from bandits.environments import synthetic_linear
from bandits.linear import LinearBandit
from mpc import ring
from mpc.interop.crypten import opened, opened_to

from ..ppcb.crypten.bandit import CryptenBandit, configured, pick, shared
from ..run.crypten_parties import Said, Watched, crypten_party
from ..run.program import Arrays
from .crypten_operations import WARM_UPS

_PULLER = 0  # also owns the contexts and is paid
_TOLERANCE = 0.01


def play(crypten: ModuleType, given: Said, own: Arrays) -> Iterator[dict[str, Any]]:
    """A row for each argmax method."""
    for method in given["methods"]:
        labels = {"labels": {"program": "ppcb", "method": method}}
        with crypten.cfg.temp_override(configured(method=method)):
            try:
                yield labels | _timed(crypten, given["arms"], given["dim"], given["steps"], given["eps"])
            except (ArithmeticError, RuntimeError) as error:
                yield labels | {"error": f"{type(error).__name__}: {error}"}


def _timed(crypten: ModuleType, arms: int, dim: int, steps: int, eps: float) -> dict[str, Any]:
    """The time of each step, then the communication of one more; all steps are checked."""
    among, total = crypten.communicator.get(), WARM_UPS + steps + 1
    episode = synthetic_linear(arms, dim, rows=2000, seed=1).episode(total, 1)
    bandit, twin = CryptenBandit(crypten, arms, dim), LinearBandit(1, arms, dim)
    counted = {"rounds": 0, "bytes": 0}
    times: list[float] = []
    faults: list[float] = []
    for x, paid in zip(episode.contexts, episode.outcomes, strict=True):
        among.barrier()
        if len(times) < total - 1:
            started = time.perf_counter_ns()
            told, explore = _step(crypten, bandit, x, paid, eps)
            times.append((time.perf_counter_ns() - started) / 1000)
        else:
            with Watched(crypten) as seen:
                told, explore = _step(crypten, bandit, x, paid, eps)
                counted = {"rounds": seen.rounds, "bytes": seen.bytes}
        # For the check alone, untimed and uncounted, everybody learns the arm, the coin and the weights.
        onehot = among.broadcast(ring.as_torch(np.zeros(arms) if told is None else told), _PULLER).numpy()
        faults.append(fault(twin, x, onehot, float(opened(explore)[0])))
        arm = np.array([[onehot.argmax()]])
        twin.update(x[None, None], arm, paid[arm])
        faults.append(float(np.abs(opened(bandit.weights) - twin.weights[0]).max()))
    if not max(faults) <= _TOLERANCE:
        raise ArithmeticError(f"the bandit is off its twin in the clear by {max(faults):g}, more than {_TOLERANCE:g}")
    return {"times": times[WARM_UPS:], "max_error": max(faults), **counted}


def _step(
    crypten: ModuleType, bandit: CryptenBandit, context: np.ndarray, outcomes: np.ndarray, eps: float
) -> tuple[Any, Any]:
    """One step; gives the one-hot arm, which only the puller is told, and the coin, still shared."""
    x = shared(crypten, context, _PULLER)
    explore = crypten.bernoulli(ring.as_torch(np.array([eps])))
    onehot = pick(bandit.scores(x), explore, crypten.rand(len(outcomes)))
    told = opened_to(onehot, _PULLER)
    reward = np.zeros(1) if told is None else outcomes[[int(told.argmax())]]
    bandit.learn(x, onehot, shared(crypten, reward, _PULLER))
    return told, explore


def fault(twin: LinearBandit, x: np.ndarray, onehot: np.ndarray, explore: float) -> float:
    """How far a choice is from a right one."""
    scores, arm = twin.predictions(x[None, None])[0, 0], int(onehot.argmax())
    regret = scores.max() - scores[arm] if explore == 0 else abs(explore - 1)
    return float(max(regret, np.abs(onehot - (np.arange(len(onehot)) == arm)).max()))


if __name__ == "__main__":
    crypten_party(play)

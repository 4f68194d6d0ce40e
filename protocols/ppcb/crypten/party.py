"""A party of CrypTen's run of the bandit.  Party 0 also pulls, is paid, and shares the coins: it deals all else too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from mpc.interop.crypten import opened_to

from ...run.crypten_parties import Watched, crypten_party
from ...run.program import Arrays
from ..player import feature_blocks
from .bandit import CryptenBandit, configured, pick, shared

PULLER = 0


def play(crypten: ModuleType, given: Mapping[str, Any], own: Arrays) -> Iterator[dict[str, Any]]:
    """Each arm, from party 0, and at the end what the run cost and opened.

    own: this party's features, (steps, width); of party 0 also outcomes, draws and drawn scores, (steps, A), and
    explores, (steps,).
    """
    party, arms, dim = crypten.communicator.get().get_rank(), given["arms"], given["dim"]
    blocks = feature_blocks(dim, given["parties"], tuple(given["widths"]))
    zeros = np.zeros(arms)

    def of_puller(name: str, step: int) -> Any:
        values = np.asarray(own[name][step], np.float64) if name in own else zeros
        return shared(crypten, values if name != "explores" else values.reshape(-1)[:1], PULLER)

    with crypten.cfg.temp_override(configured(bits=given["bits"], newton=given["newton"])), Watched(crypten) as seen:
        bandit = CryptenBandit(crypten, arms, dim, ridge=given["ridge"])
        started = time.perf_counter()
        for step in range(given["steps"]):
            x = crypten.cat([
                shared(crypten, own["features"][step] if owner == party else np.zeros(block.stop - block.start), owner)
                for owner, block in enumerate(blocks) if block.stop > block.start
            ])  # fmt: skip
            scores = bandit.scores(x) + of_puller("draws", step)
            onehot = pick(scores, of_puller("explores", step), of_puller("drawn", step))
            told, reward = opened_to(onehot, PULLER), 0.0
            if told is not None:
                arm = int(told.argmax())
                reward = own["outcomes"][step, arm]
                yield {"arm": arm}
            bandit.learn(x, onehot, shared(crypten, np.array([reward]), PULLER))
        seconds = time.perf_counter() - started
        yield {"rounds": seen.rounds, "bytes": seen.bytes, "seconds": seconds, "opened": seen.opened}


if __name__ == "__main__":
    crypten_party(play)

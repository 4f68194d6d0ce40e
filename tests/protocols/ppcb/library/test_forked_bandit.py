"""A bandit in a process that was forked: never the coins and masks of its parent, and a way to serve all the same."""

from __future__ import annotations

from pathlib import Path

from tests.forks import halves, refused

_BANDIT = """
import numpy as np
from protocols.ppcb import PrivateContextualBandit

context = np.full(8, 0.3)
for seed in (None, 5):
    bandit = PrivateContextualBandit(4, 8, 0.5, parties=2, seed=seed)
    told = bandit.predict(context)
    half(f"predict, seed {seed}", lambda: bandit.predict(context).arm)
    half(f"learn, seed {seed}", lambda: bandit.learn(decision_id=told.decision_id, reward=1.0))
    half(f"learn without a decision, seed {seed}", lambda: bandit.partial_fit([1], [1.0], [context]))
"""

_WORKERS = """
import sys
import numpy as np
from protocols.ppcb import PrivateContextualBandit

with PrivateContextualBandit(4, 8, 1.0, parties=2) as bandit:
    bandit.save(sys.argv[1])
def arms():
    own = PrivateContextualBandit.load(sys.argv[1])
    return [int(own.predict(np.full(8, 0.3)).arm) for _ in range(40)]
half("worker", arms)
"""


def test_a_forked_bandit_neither_chooses_nor_learns() -> None:
    refused(halves(_BANDIT))


def test_workers_that_load_their_own_explore_apart(tmp_path: Path) -> None:
    """40 uniform arms of 4 agree in all places with a chance of 2^-80."""
    said = halves(_WORKERS, tmp_path)
    assert said["worker"].startswith("drew [") and said["worker"] != said["worker, parent"]

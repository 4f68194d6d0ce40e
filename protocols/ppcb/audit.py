"""The secure choice of an arm, as an audit asks for it: many runs side by side, and every arm revealed.

Knows argmax and its exploration, where a step's privacy is made; not the learning around it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpc import Reveal, Session, ops
from mpc.rounds import Rounds

_COMPARISONS = 12_000  # at once: about 100 MB for three parties


def secure_chooser(session: Session, eps: float) -> Callable[[np.ndarray], np.ndarray]:
    """`ops.argmax` with exploration, for all rows of the scores in the same rounds."""

    def program(scores: np.ndarray) -> Rounds[np.ndarray]:
        onehot = yield from ops.argmax(session, session.share(scores), eps=eps)
        return (yield Reveal(onehot, what="arms", why="an audit counts them"))

    return lambda scores: session.run(program(scores))


def runs_at_once(arms: int) -> int:
    """How many runs fit into one batch: each compares all pairs of its arms."""
    return max(1, _COMPARISONS // max(1, arms * (arms - 1) // 2))

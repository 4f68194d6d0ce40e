"""What a contextual bandit without exploration has to pull: it follows from the arms and rewards before.

Knows contexts, arms and rewards; no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

NEAR = 2.0**-10
"""Two scores that are closer than this may fall either way: the table's reciprocal is off by 1e-5."""


def departure(
    contexts: np.ndarray, arms: Sequence[int], rewards: Mapping[int, float] | Sequence[float], count: int
) -> str:
    """Where a run pulled another arm than a ridge regression on all before ranks first; "" if it never did.

    A regulariser of 1; rewards are those of the arms that were pulled, by decision.  count: of arms.
    """
    dim = contexts.shape[1]
    gram, sums = np.stack([np.eye(dim)] * count), np.zeros((count, dim))
    for at, (arm, context) in enumerate(zip(arms, contexts, strict=True)):
        scores = np.einsum("aij,aj,i->a", np.linalg.inv(gram), sums, context)
        if scores[arm] < scores.max() - NEAR:
            return f"arm {arm} of decision {at} scores {scores[arm]:.4f}, and the best one {scores.max():.4f}"
        gram[arm] += np.outer(context, context)
        sums[arm] += rewards[at] * context
    return ""

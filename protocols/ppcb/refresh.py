"""Bringing P_a and w_a back to the exact sums, by Newton's iteration from where they are.

    T = [P; w'],  B = [I; b'],  W = ridge I + sum x x',  b = sum r x
    T <- T + (B - T W) P         P (2 I - W P) for the inverse, one step of refinement for the weights

The error I - P W is squared in each iteration.  Started from the recursion's own P it is small at once, while an
iteration from I / c would need log2 of the condition number, which grows with the run, and as many bits.
"""

from __future__ import annotations

import numpy as np

from mpc import ops
from mpc.errors import ConfigError
from mpc.rounds import Rounds
from mpc.session import Session

from .arithmetic import cut
from .program import State
from .settings import Settings


def refresh(session: Session, state: State, settings: Settings, *, iterations: int = 2) -> Rounds[None]:
    """Needs: |I - P W| < 1, and W below 2^(62 - 2 fraction_bits).

    Error: |P W - I| of a few units in the last place times the largest entry of W.
    Cost:  1 + 4 rounds an iteration.
    Opens: as einsum, truncate.
    """
    if state.sums is None:
        raise ConfigError("this run keeps no sums: set `refresh` when it starts")
    f, scale, dim = settings.fraction_bits, settings.state_bits, settings.dim
    sums = yield from cut(session, state.sums, f, settings)
    w, b = sums[..., :dim, :] + settings.ridge * np.eye(dim), sums[..., dim:, :].rescale(scale)
    identity = session.constant(np.broadcast_to(np.eye(dim), (*b.shape[:-2], dim, dim)), scale)
    target = ops.concat([identity, b], axis=-2)
    for _ in range(iterations):
        reached = yield from ops.einsum(session, "raij,rajk->raik", state.table, w)
        reached = yield from cut(session, reached, f, settings)
        inverse = state.table[..., :dim, :]
        step = yield from ops.einsum(session, "raij,rajk->raik", target - reached, inverse)
        state.table = state.table + (yield from cut(session, step, scale, settings))

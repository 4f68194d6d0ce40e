"""Learning from B contexts at once: Sherman and Morrison's formula for a block, after Woodbury.

    K_bc = x_c' P_a x_b where b and c pulled the same arm a, else 0
    G = (I + K)^-1,   y_b = sum_c G_bc u_c,   e_b = sum_c G_bc (r_c - s_c)
    P_a -= sum_b o_ab u_b y_b',   w_a += sum_b o_ab u_b e_b

The result is that of B updates one after the other, in a number of rounds that grows by 2 where B doubles.
"""

from __future__ import annotations

import math

import numpy as np

from mpc import ops
from mpc.rounds import Rounds, together
from mpc.session import Session
from mpc.share import Share

from .arithmetic import cut, cut_to
from .settings import Settings


def update_batch(
    session: Session, x: Share, o: Share, u: Share, prediction: Share, paid: Rounds[Share], settings: Settings
) -> Rounds[Share]:
    """What the batch adds to the state: (replicas, arms, dim + 1, dim).

    Needs: u = P_a x of the pulled arms at state_bits; their predictions s, and the rewards, at fraction_bits.
    Error: that of the inverse, (1 - 1 / c)^(2^k) < 2^-fraction_bits for k iterations, and rounding.
    Cost:  9 + 2 k rounds, k the next whole number above log2(0.7 c fraction_bits) with c = 1 + B norm^2 / ridge.
    Opens: as einsum, truncate, inverse.
    """
    f, scale, dim, batch = settings.fraction_bits, settings.state_bits, settings.dim, settings.batch
    kernel, same, reward = yield from together(
        ops.einsum(session, "rbi,rci->rbc", u, x), ops.einsum(session, "rba,rca->rbc", o, o), paid
    )
    kernel = yield from cut(session, kernel, scale, settings)
    kernel = yield from ops.product(session, kernel, same)
    largest = 1.0 + batch * settings.norm**2 / settings.ridge + 2.0**-6
    inner = yield from ops.inverse(session, kernel + np.eye(batch), bound=largest, iterations=_iterations(largest, f))
    right = ops.concat([u, (reward - prediction).rescale(scale)[..., None]], axis=-1)
    y = yield from ops.einsum(session, "rbc,rcj->rbj", inner, right)
    y = yield from cut_to(session, y, settings.factor_scale, settings)
    product = yield from ops.einsum(session, "rbi,rbj->rbij", u, y)
    product = yield from cut_to(session, product, scale, settings)
    rows = ops.concat([-product[..., :dim].T, product[..., dim:].T], axis=-2)
    return (yield from ops.einsum(session, "rba,rbij->raij", o, rows))


def _iterations(largest: float, bits: int) -> int:
    """k with (1 - 1 / largest)^(2^k) < 2^-bits."""
    return max(1, math.ceil(math.log2(largest * bits * math.log(2.0))))

"""Learning from B contexts at once: Sherman and Morrison's formula for a block, after Woodbury.

    K_bc = x_c' P_a x_b where b and c pulled the same arm a, else 0
    G = (I + K)^-1,   y_b = sum_c G_bc u_c,   e_b = sum_c G_bc (r_c - s_c)
    P_a -= sum_b o_ab u_b y_b',   w_a += sum_b o_ab u_b e_b

The result is that of B updates one after the other, in a number of rounds that grows by 2 where B becomes 4 to 16 times
as many.  K, G and the change of P_a are symmetric: of each, only the upper triangle is made.
"""

from __future__ import annotations

import numpy as np

from mpc import ops
from mpc.bilinear import GRAM, TRIANGLE
from mpc.packing import words_of
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
    Error: that of the inverse, and rounding.
    Cost:  9 + 2 k rounds, k the steps of the inverse of a matrix between 1 and c = 1 + B norm^2 / ridge.
    Opens: as bilinear, quadratic, einsum, truncate, inverse.
    """
    scale, dim, batch = settings.state_bits, settings.dim, settings.batch
    kernel, same, reward = yield from together(ops.bilinear(session, GRAM, u, x), ops.quadratic(session, GRAM, o), paid)
    kernel = yield from cut(session, kernel, scale, settings)
    kernel = ops.unpack((yield from ops.product(session, kernel, same)), batch)
    largest = 1.0 + batch * settings.norm**2 / settings.ridge + 2.0**-6
    inner = yield from ops.inverse(session, kernel + np.eye(batch), least=1.0 - 2.0**-6, bound=largest)
    right = ops.concat([u, (reward - prediction).rescale(scale)[..., None]], axis=-1)
    y = yield from ops.einsum(session, "sym:rbc,rcj->rbj", ops.pack(inner), right)
    y = yield from cut_to(session, y, settings.factor_scale, settings)
    rows = yield from ops.bilinear(session, TRIANGLE, u, y)
    rows = yield from cut_to(session, rows, scale, settings)
    inverse, weights = rows[..., : words_of(dim)], rows[..., words_of(dim) :]
    both = yield from ops.einsum(session, "rba,rbk->rak", o, ops.concat([-inverse, weights], axis=-1))
    return ops.unpack(both, dim)

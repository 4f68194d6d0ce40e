"""What LinUCB and Thompson sampling add to a prediction: alpha sqrt(x' P_a x), times 1 or a normal draw."""

from __future__ import annotations

from mpc import ops
from mpc.correlations import Gaussian
from mpc.rounds import Rounds
from mpc.session import Session
from mpc.share import Share

from .arithmetic import cut
from .settings import Policy, Settings

_ABOVE_ZERO = 8  # units in the last place that keep a rounded x' P x in the root's range


def with_bonus(session: Session, prediction: Share, x: Share, v: Share, settings: Settings) -> Rounds[Share]:
    """[w_a . x + alpha sqrt(x' v_a)], or the root times a dealt normal draw, at the scale of the prediction.

    Needs: v = P_a x at state_bits.
    Error: alpha times that of `square_root`, and of the 8 units that keep x' P x in its range: 2.8e-3 alpha at 0.
    Cost:  7 rounds for LinUCB, 8 for Thompson.
    Opens: as einsum, truncate, square_root.
    """
    f, scale = settings.fraction_bits, settings.state_bits
    spread = yield from ops.einsum(session, "rbd,rbad->rba", x, v)
    spread = yield from cut(session, spread, scale, settings)
    lifted = spread + _ABOVE_ZERO * 2.0**-f
    root = yield from ops.square_root(session, lifted, upper=settings.upper - 1.0 + _ABOVE_ZERO * 2.0**-f)
    if settings.policy is Policy.LINUCB:
        return prediction + root.times(settings.alpha, bits=scale)
    (noise,) = session.draw(Gaussian(root.shape, settings.alpha, scale))
    return prediction + (yield from ops.product(session, root, Share(session, noise, scale)))

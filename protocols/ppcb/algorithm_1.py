"""Algorithm 1 as it was published, as the reference: what the recast in `program` saves is the difference.

for every arm:  w_a = A_a^-1 b_a,  s_a = w_a . x
                s_a += y (v_a - s_a)                         y ~ Bernoulli(eps), v_a ~ Uniform(0, 1)
o = argmax s                                                 in two passes, by binary circuits
for every arm:  v_a = A_a^-1 x,  g_a = 1 / (1 + x'v_a)       Newton from 3 e^(1/2 - x) + 0.003, for each arm
                A_a^-1 -= o_a g_a v_a v_a',  b_a += o_a r x
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mpc import ops
from mpc.correlations import Exploration
from mpc.rounds import Input, Rounds, together
from mpc.session import Session
from mpc.share import Share

from .arithmetic import cut
from .program import PAYER, tell
from .settings import Settings


@dataclass
class PublishedState:
    """A_a^-1: (replicas, arms, dim, dim) at fraction_bits.  b_a: (replicas, arms, dim) at twice as many, exact."""

    inverse: Share
    sums: Share

    @classmethod
    def start(cls, session: Session, settings: Settings) -> PublishedState:
        """A_a = ridge I, b_a = 0: public, so no message."""
        shape = (settings.replicas, settings.arms, settings.dim, settings.dim)
        first = np.broadcast_to(np.eye(settings.dim) / settings.ridge, shape)
        f = settings.fraction_bits
        return cls(session.constant(first, f), session.constant(np.zeros(shape[:-1]), 2 * f))

    def words(self) -> dict[str, np.ndarray]:
        """This process's shares, to be kept where only it can read them."""
        return {"inverse": self.inverse.words, "sums": self.sums.words}

    @classmethod
    def restored(cls, session: Session, settings: Settings, kept: Mapping[str, np.ndarray]) -> PublishedState:
        """The state behind `words`."""
        f = settings.fraction_bits
        return cls(Share(session, kept["inverse"], f), Share(session, kept["sums"], 2 * f))


def step_published(session: Session, state: PublishedState, x: Share, settings: Settings) -> Rounds[None]:
    """One step of all replicas, one context each.

    Needs: as the recast, and sums of rewards below 2^(62 - 2 fraction_bits).
    Cost:  2 comparisons by circuits, two product trees, 18 + 4 rounds an iteration of the reciprocal, and 16 more.
    Opens: as product, truncate, argmax_published, reciprocal_published.
    """
    f = settings.fraction_bits
    x = x[..., 0, :]
    b = yield from cut(session, state.sums, f, settings)
    w = yield from ops.einsum(session, "raij,raj->rai", state.inverse, b)
    w = yield from cut(session, w, f, settings)
    s = yield from ops.einsum(session, "rai,ri->ra", w, x)
    s = yield from cut(session, s, f, settings)
    coin, uniform = session.draw(Exploration(s.shape, settings.eps, f))
    y, v = Share(session, coin, 0), Share(session, uniform, f)
    s = s + (yield from ops.product(session, y.reshape(*y.shape, 1), v - s))
    o = yield from ops.argmax_published(session, s, score_bits=f + settings.value_bits + 1)
    _, reward, v = yield from together(
        tell(o.reshape(o.shape[0], 1, o.shape[1])),
        _paid(settings),
        ops.einsum(session, "raij,rj->rai", state.inverse, x),
    )
    v = yield from cut(session, v, f, settings)
    xv, rx = yield from together(
        ops.einsum(session, "ri,rai->ra", x, v),
        ops.product(session, reward, x),
    )
    xv = yield from cut(session, xv, f, settings)
    g = yield from ops.reciprocal_published(session, xv + 1.0, iterations=settings.iterations)
    vv = yield from ops.einsum(session, "rai,raj->raij", v, v)
    vv = yield from cut(session, vv, f, settings)
    gain = yield from ops.einsum(session, "ra,raij->raij", g, vv)
    gain = yield from cut(session, gain, f, settings)
    change, added = yield from together(
        ops.einsum(session, "ra,raij->raij", o, gain), ops.einsum(session, "ra,ri->rai", o, rx)
    )
    state.inverse = state.inverse - change
    state.sums = state.sums + added


def _paid(settings: Settings) -> Rounds[Share]:
    return (yield Input(PAYER, (settings.replicas, 1), settings.fraction_bits))

"""The private contextual bandit, one step in 12 rounds for any number of arms and parties.

    owner p               computing parties               puller          payer
    x_p  -- shares -->    scores, argmax with exploration
                          [arm]  ------------------------> arm
                          [r]    <----------------------------------------- r
                          update of the pulled arm's regression

Owners of the features are the computing parties.  The puller learns the arms, the payer knows the rewards, and nobody
learns anything else.  Every value has a leading axis of R replicas.

State: P_a = (ridge I + sum x x')^-1 and w_a = P_a sum r x, so that a step needs one reciprocal, not one for each arm:

     1  v_a = P_a x,  s_a = w_a . x                                  one product: w_a is stored as a row below P_a
     2  truncate v, s;  2-5  o = argmax_a s_a, exploration folded in
     6  reveal the arm to the puller;  u = sum_a o_a v_a,  s = sum_a o_a s_a;  the payer shares r
     7  x'u, u u', u (r - s)                      8  truncate
     9  g = 1 / (1 + x'u), by a table of lines
    10  g u u', g u (r - s)                      11  truncate
    12  P_a -= o_a g u u',  w_a += o_a g u (r - s)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mpc import ops
from mpc.curves import Reciprocal
from mpc.errors import RangeError
from mpc.ops import Lines
from mpc.ring import VALUE_BITS
from mpc.rounds import Input, Reveal, Rounds, together
from mpc.session import Session
from mpc.share import Share

PULLER, PAYER = "puller", "payer"
_SLACK = 2.0**-7  # how far rounding may carry 1 + x'u below 1 or above its bound


@dataclass(frozen=True)
class Settings:
    """What all parties agree on before a run.

    bound: the largest norm of a context; with the ridge it bounds the reciprocal's argument by 1 + bound^2 / ridge.
    steps: how long a run may be; it bounds the scores, |w_a . x| <= sqrt(steps) bound / (2 sqrt(ridge)).
    fraction_bits: of contexts, rewards and scores; state_bits: of P and w.
    """

    arms: int
    dim: int
    eps: float = 0.1
    replicas: int = 1
    ridge: float = 1.0
    bound: float = 1.0
    fraction_bits: int = 20
    state_bits: int = 20
    segments: int = 9
    newton: int = 0
    steps: int = 1 << 16

    def __post_init__(self) -> None:
        if self.arms < 1 or self.dim < 1 or self.replicas < 1:
            raise RangeError(f"{self.arms} arms, {self.dim} dimensions, {self.replicas} replicas: at least 1 of each")
        if not 0.0 <= self.eps <= 1.0:
            raise RangeError(f"eps is a probability in [0, 1], not {self.eps:g}")
        if self.steps < 1:
            raise RangeError(f"a run has at least 1 step, not {self.steps}")
        if self.ridge <= 0 or self.bound <= 0:
            raise RangeError(f"ridge {self.ridge:g} and bound {self.bound:g} must be positive")
        ops.Keys(self.arms, self.score_bits, self.eps)  # refuses more arms than fit
        gain = self.fraction_bits if self.newton else self.lines.out_scale
        if (widest := max(2 * self.state_bits, gain + self.state_bits) + self.value_bits) > VALUE_BITS:
            raise RangeError(
                f"products of the update need {widest} bits of {VALUE_BITS}: use fewer state_bits or steps, a larger "
                "ridge, or newton=1, which brings the reciprocal to fewer fraction bits"
            )

    @property
    def score_bits(self) -> int:
        """Bits of an untruncated score, sign included."""
        return self.fraction_bits + self.state_bits + self.value_bits + 1

    @property
    def value_bits(self) -> int:
        """Bits in front of the point of a score or a surprise, with a factor of two to spare for rounding."""
        largest = 1.0 + math.sqrt(self.steps) * self.bound / (2.0 * math.sqrt(self.ridge))
        return max(1, math.ceil(math.log2(2.0 * largest)))

    @property
    def lines(self) -> Lines:
        """The table of 1 / x over [1, 1 + bound^2 / ridge] and a little slack."""
        upper = 1.0 + self.bound**2 / self.ridge + _SLACK
        return Lines.over(Reciprocal(1.0 - _SLACK), upper, self.fraction_bits, self.segments)


@dataclass
class State:
    """[P_a; w_a']: (replicas, arms, dim + 1, dim) at state_bits."""

    table: Share

    @classmethod
    def start(cls, session: Session, settings: Settings) -> State:
        """P_a = I / ridge, w_a = 0: public, so no message."""
        dim = settings.dim
        first = np.concatenate([np.eye(dim) / settings.ridge, np.zeros((1, dim))])
        shape = (settings.replicas, settings.arms, dim + 1, dim)
        return cls(session.constant(np.broadcast_to(first, shape), settings.state_bits))


def share_block(
    session: Session, values: np.ndarray | None, *, owner: int, width: int, settings: Settings, bound: float
) -> Share:
    """A block of features from its owner, (replicas, width); a row whose norm exceeds the bound is refused there."""
    if values is not None and owner in session.hosted:
        norm = float(np.linalg.norm(values, axis=-1).max(initial=0.0))
        if not norm <= bound * (1.0 + 2.0**-settings.fraction_bits):
            raise RangeError(
                f"a block of party {owner} has norm {norm:.6g}, declared is {bound:g}: scale it or declare more"
            )
    shape = (settings.replicas, width)
    return session.share(values, owner=owner, shape=shape, scale=settings.fraction_bits)


def step(session: Session, state: State, x: Share, settings: Settings) -> Rounds[None]:
    """One step of all replicas; updates the state.

    Needs: contexts of norm at most `bound`, rewards in [0, 1], at most `steps` steps.
    Cost:  12 rounds (4 more for each Newton iteration), 1 hop to the puller and 1 from the payer.
    Opens: as product, truncate, argmax and curve.
    """
    f, scale = settings.fraction_bits, settings.state_bits
    replicas, dim = settings.replicas, settings.dim

    raw = yield from ops.einsum(session, "raij,rj->rai", state.table, x)  # 1
    scores = Share(session, raw[..., dim].words, 0)
    both, o = yield from together(  # 2-5
        ops.truncate(session, raw, f), ops.argmax(session, scores, score_bits=settings.score_bits, eps=settings.eps)
    )

    arm = (o * np.arange(settings.arms)).sum(axis=-1)
    selected, _, reward = yield from together(  # 6
        ops.einsum(session, "ra,rai->ri", o, both),
        _tell(arm),
        _paid(replicas, scale),
    )
    u, surprise = selected[:, :dim], reward - selected[:, dim]

    stacked = Share(session, np.concatenate([u.words, surprise.words[..., None]], axis=-1), scale)
    xu, uu = yield from together(  # 7
        ops.einsum(session, "ri,ri->r", x, u),
        ops.einsum(session, "ri,rj->rij", u, stacked),
    )
    xu, uu = yield from together(ops.truncate(session, xu, scale), ops.truncate(session, uu, scale))  # 8

    g = yield from ops.curve(session, xu + 1.0, settings.lines)  # 9
    if settings.newton:
        g = yield from ops.truncate_to(session, g, f)
        g = yield from ops.newton_reciprocal(session, xu + 1.0, g, settings.newton)
    gain = yield from ops.einsum(session, "r,rij->rij", g, uu)  # 10
    gain = yield from ops.truncate_to(session, gain, scale)  # 11

    update = np.concatenate([-gain.words[..., :dim], gain.words[..., dim:].swapaxes(-1, -2)], axis=-2)
    change = yield from ops.einsum(session, "ra,rij->raij", o, Share(session, update, scale))  # 12
    state.table = state.table + change


def _tell(arm: Share) -> Rounds[None]:
    yield Reveal(arm, to=PULLER, what="arm", why="it is pulled")


def _paid(replicas: int, scale: int) -> Rounds[Share]:
    return (yield Input(PAYER, (replicas,), scale))

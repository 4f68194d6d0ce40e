"""LinUCB on shares of theta, with arms and the noise of rewards known to the computing parties, as P knows them.

    DO                     computing parties                                DC
    theta  -- shares -->   [B_i] = <c_i, [theta]> + e_i
                           argmax; [arm] to all of them, update of c and e
                           [sum of rewards], rounded  ------------------->  sum

b = (sum x x') theta + sum eta x, so with the pulled arms and their noise public, A^-1 b is a public linear map of theta
and everything but theta is public: c_i = x_i' A^-1 sum x x' and e_i = x_i' A^-1 sum eta x + omega |x_i|_(A^-1), rounded
as `bandits.fixed_point` rounds them.  An index is then exact at the scale of c and theta together, without a
truncation, and so is the sum of rewards <sum x, theta> + sum eta.  Only the argmax talks:

    1-4  o = argmax B        5  reveal the arm

With all its digits the sum would tell theta: <sum x, theta> is a number of 57 fraction bits, and few thetas make the
one that is seen.  So it is rounded, on shares and without a coin, to the digits that are declared.
"""

from __future__ import annotations

import numpy as np

from bandits.fixed_point import PublicMap
from mpc import EVERYONE, ops
from mpc.ring import encode
from mpc.rounds import Input, Reveal, Rounds
from mpc.session import Session
from mpc.share import Share

from .settings import Settings

OWNER, CUSTOMER = "DO", "DC"
ARM = "pulled arm"
TOTAL, BUYS = "cumulative reward", "it pays for the pulls"


def share_theta(settings: Settings) -> Rounds[Share]:
    """[theta] from its owner.  Cost: 1 message to each party."""
    return (yield Input(OWNER, (settings.dim,), settings.scales.theta))


def choose(session: Session, theta: Share, public: PublicMap, settings: Settings) -> Rounds[int]:
    """The arm with the largest index, to all computing parties; ties are broken by a dealt permutation.

    The reveal is a round of its own: the one-hot it sums up does not exist before the look-up's opening, and what the
    round before could open instead, the number of wins of each arm, is the order of all indices.

    Needs: |B_i| < 2^(index_bits - 1) as a word, which `Settings` checks from public bounds.
    Cost:  5 rounds; as `argmax`, and 8 bytes.
    Opens: as `argmax`.  Reveals: the arm.
    """
    o = yield from ops.argmax(session, indices(session, theta, public, settings), score_bits=settings.index_bits)
    arm = (o * np.arange(settings.count)).sum()
    return int((yield Reveal(arm, to=EVERYONE, what=ARM, why="they pull it")))


def indices(session: Session, theta: Share, public: PublicMap, settings: Settings) -> Share:
    """[B_i], exact, (K,): local."""
    e = public.offsets()
    if session.trail is not None:
        session.trail.multiplied(encode(e, settings.scales.index))
    return theta.mapped(public.coefficients(), bits=settings.scales.map) + e


def reward_of(theta: Share, arm: int, noise: float, settings: Settings) -> Share:
    """[r] = <x, [theta]> + eta, exact: local."""
    return theta.mapped(settings.arms[arm], bits=settings.scales.arm) + noise


def reveal_total(session: Session, total: Share, settings: Settings) -> Rounds[None]:
    """Tell the customer what all pulls paid, to the nearest `unit`.  Cost: 4 rounds, and 1 message a party."""
    told = yield from ops.round_off(session, total.integers(), settings.dropped)
    yield Reveal(told, to=CUSTOMER, what=TOTAL, why=BUYS)


def pass_over_ending(session: Session, settings: Settings) -> None:
    """A pull was dealt what rounds the sum, like every pull that might have been the last: nobody uses it."""
    for item in settings.ending:
        session.draw(item)

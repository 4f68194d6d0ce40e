"""What a policy would have earned, judged on shares of a log: contexts, arms and rewards of different owners.

              owners         parties                                   puller               payer
    a batch    x   ----->    [s] model, [o] the arm ranked first
                             [l] one-hot of the logged arm, [1/p]  <-- l, 1/p
                             [r]                                   <------------------------ r
                             [w], [w r], [q + w (r - m)]
    the end                  means and variances  -----> everyone

    pi = eps / A + (1 - eps) o,   w = <pi, l> / p,   q = <pi, s>,   m = <l, s>

`bandits.estimators` has the same in the clear.  Nobody learns a row: not which arm was ranked first, nor whether it was
the logged one, nor a weight.

If the log was made by a private bandit, nobody knows p: whether the arm was the best one is a secret, a bit g that the
parties share.  Since eps is public, 1/p is linear in it: `inverse_propensity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpc import ops
from mpc.client import ClientProgram, Send
from mpc.errors import RangeError
from mpc.ring import VALUE_BITS
from mpc.rounds import Input, Reveal, Rounds, together
from mpc.session import Session
from mpc.share import Share

from ..program import PAYER, PULLER, State, decide
from ..settings import Settings
from .propensity import last_bit

_F = 20  # fraction bits of weights, and of what is added up
TOLD = 16  # fraction bits of what is revealed
_FINEST, _COARSEST = 20, 8  # fraction bits that deviations are squared with
_LEAST, _MOST = 0.25, 4.0  # between which weights average, or they are no weights
ESTIMATORS = ("ips", "snips", "dr")


class Declared(NamedTuple):
    """What all parties know of the log.  rows: how many are judged.  floor: no propensity is lower.

    logged_eps: how often the logger explored, where the puller says which arms were the best in place of 1/p.
    """

    rows: int
    floor: float
    logged_eps: float | None = None

    @property
    def text(self) -> str:
        """What parties and logger must say alike of propensities: how large sums may be follows from it."""
        if self.logged_eps is not None:
            return f"propensities of who explores in {float(self.logged_eps)!r}"
        return f"propensities from {float(self.floor)!r}"

    def check(self, arms: int) -> None:
        """RangeError where that is no chance, or is not below those of who explores so often."""
        if not 0.0 < self.floor <= 1.0:
            raise RangeError(f"a least propensity lies above 0 and at most 1, not {self.floor:g}")
        if self.logged_eps is not None and not self.floor * arms * (1.0 - 1e-6) <= self.logged_eps <= 1.0:
            raise RangeError(
                f"who explores in {self.logged_eps:g} of all decisions among {arms} arms pulls each with at least "
                f"{self.logged_eps / arms:.3g}, and {self.floor:.3g} was declared as the least propensity"
            )


class Judged(NamedTuple):
    """(3,) estimates and variances of one row, by IPS, SNIPS and DR; NaN for SNIPS where weights do not average 1."""

    values: np.ndarray
    variances: np.ndarray


def inverse_propensity(greedy: Share, eps: float, arms: int) -> Share:
    """[1/p] of an arm that an epsilon-greedy logger pulled; greedy: [1] where it was the best one, else [0].  Local.

    1/p = A / eps + g (1 / (1 - eps + eps / A) - A / eps)
    """
    rare, usual = arms / eps, 1.0 / (1.0 - eps + eps / arms)
    return greedy.times(usual - rare, bits=_F) + rare


def logging_puller(batches: Iterable[tuple[np.ndarray, np.ndarray]], arms: int, declared: Declared) -> ClientProgram:
    """The puller beside the parties: (rows,) logged arms, and their propensities, or 1 where an arm was the best."""
    for pulled, given in batches:
        yield Send((np.arange(arms) == pulled[:, None]).astype(np.int64)[None])
        if declared.logged_eps is None:
            yield Send(1.0 / given[None], _F, bound=1.0 / declared.floor, of=declared.text)
        else:
            yield Send(given.astype(np.int64)[None], 0, bound=1.0, of=declared.text)


def estimate(
    session: Session, state: State, batches: Sequence[Share], settings: Settings, declared: Declared
) -> Rounds[Judged]:
    """Estimates of the policy that `state` stands for, which does not learn from these contexts.

    Needs: contexts of norm at most `settings.norm`; `check`.
    Cost:  a batch as `decide` and 5 rounds more, 10 with epsilon-greedy, and 3 hops; at the end
           28, and 1 where deviations are squared with fewer than 20 bits (`check`).
    Opens: as decide, product, truncate, is_negative, curve, square, round_off.
    Reveals: estimates and variances, 6 numbers.
    """
    given, k = replace(last_bit(settings), eps=0.0), check(settings, declared)
    kept = []
    for x in batches:
        values = yield from _rows(session, state, x, given, settings.eps, declared)
        kept.append(values)
    w, wr, psi = (ops.concat([each[at][0] for each in kept], axis=0) for at in range(3))
    return (yield from _told(session, w, wr, psi, declared.rows, k))


def check(settings: Settings, declared: Declared) -> int:
    """Fraction bits that deviations are squared with; RangeError where a sum could leave its word, or no floor is."""
    declared.check(settings.arms)
    weight = math.log2(max(settings.reward, 1.0)) - math.log2(declared.floor)
    size = math.ceil(weight + settings.value_bits) + 2  # of q + w (r - m) less its mean
    rows = math.ceil(math.log2(declared.rows))
    fits = min(_FINEST, (VALUE_BITS - 2) // 2 - size, VALUE_BITS - 1 - 2 * size - rows)
    if declared.rows < 2 or fits < _COARSEST or size + 2 * _F > VALUE_BITS:
        raise RangeError(
            f"{declared.rows:,} rows with propensities from {declared.floor:.3g} and rewards up to "
            f"{settings.reward:g} leave a word no room: judge fewer rows, scale the rewards, or declare a higher least "
            "propensity"
        )
    return fits


def _rows(
    session: Session, state: State, x: Share, settings: Settings, eps: float, declared: Declared
) -> Rounds[tuple[Share, Share, Share]]:
    """[w], [w r] and [q + w (r - m)] of a batch, (1, B) each."""
    shape, arms = x.shape[:2], settings.arms
    logged = yield Input(PULLER, (*shape, arms), 0)
    said = yield Input(PULLER, shape, _F if declared.logged_eps is None else 0, declared.text)
    inverse = said if declared.logged_eps is None else inverse_propensity(said, declared.logged_eps, arms)
    reward = yield Input(PAYER, shape, settings.fraction_bits)
    o, _, s = yield from decide(session, state, x, settings)
    return (yield from row_values(session, o, s, logged, inverse, reward, eps))


def row_values(
    session: Session, o: Share, s: Share, logged: Share, inverse: Share, reward: Share, eps: float
) -> Rounds[tuple[Share, Share, Share]]:
    """[w], [w r] and [q + w (r - m)] of rows.

    o: one-hot of the arm ranked first; s: model's rewards of all arms; logged: one-hot; inverse: 1/p.
    Needs: |w (r - m)| < 2^(62 - 2 * 20).
    Cost:  5 rounds; one product for a weight, behind that of o and l.
    Opens: as einsum, product, truncate.
    """
    arms, rest = s.shape[-1], 1.0 - eps
    hit, m, first = yield from together(
        ops.einsum(session, "rba,rba->rb", o, logged),
        ops.einsum(session, "rba,rba->rb", logged, s),
        ops.einsum(session, "rba,rba->rb", o, s),
    )
    matched = yield from ops.product(session, hit, inverse)
    w = inverse.times(eps / arms, bits=_F) + matched.times(rest, bits=_F)
    q = s.sum(axis=-1).times(eps / arms, bits=_F) + first.times(rest, bits=_F)
    w, q = yield from together(ops.truncate_to(session, w, _F), ops.truncate_to(session, q, _F))
    both = yield from ops.product(session, w[..., None], ops.stack([reward, reward - m], axis=-1))
    both = yield from ops.truncate_to(session, both, _F)
    return w, both[..., 0], q + both[..., 1]


def _told(session: Session, w: Share, wr: Share, psi: Share, rows: int, bits: int) -> Rounds[Judged]:
    """From (rows,) each: means, then deviations from them."""
    means = yield from _mean(session, ops.stack([w, wr, psi], axis=0).sum(axis=1), rows)
    v_w, v_ips, v_dr = means[0], means[1], means[2]
    outside = yield from ops.is_negative(session, ops.stack([v_w - _LEAST, _MOST - v_w], axis=0))
    sound = 1 - outside.sum(axis=0)  # weights average about 1: else there is no ratio
    near = (yield from ops.product(session, sound, v_w - 1.0)) + 1.0
    y = yield from ops.reciprocal_newton(session, near, lower=_LEAST, upper=_MOST)
    ratio, y2 = yield from together(ops.product(session, v_ips, y), ops.square(session, y))
    ratio, y2 = yield from together(ops.truncate_to(session, ratio, _F), ops.truncate_to(session, y2, _F))
    leaning = yield from ops.product(session, w, ratio[None])
    leaning = yield from ops.truncate_to(session, leaning, _F)
    off = ops.stack([wr - v_ips[None], wr - leaning, psi - v_dr[None]], axis=0)
    squares = yield from ops.square(session, (yield from ops.truncate_to(session, off, bits)))
    squares = yield from ops.truncate_to(session, squares, bits)
    spread = yield from _mean(session, squares.sum(axis=1), rows)
    scaled = yield from ops.product(session, spread[1], y2)
    scaled = yield from ops.truncate_to(session, scaled, _F)
    v_snips, s_snips = yield from together(
        ops.product(session, sound, ratio), ops.product(session, sound, scaled + 1.0)
    )
    told = ops.stack([v_ips, v_snips, v_dr, spread[0], s_snips - 1.0, spread[2]], axis=0)
    told = yield from ops.round_off(session, told, _F - TOLD)
    why = "the organisations agreed to learn it"
    values, variances = yield (
        Reveal(told[:3], what="estimate by IPS, SNIPS, DR", why=why),
        Reveal(told[3:], what="its variance", why=why),
    )
    none = np.array([False, variances[1] < -0.5, False])
    return Judged(np.where(none, np.nan, values), np.where(none, np.nan, np.maximum(variances, 0.0)))


def _mean(session: Session, total: Share, rows: int) -> Rounds[Share]:
    """[total / rows] with 20 fraction bits: first by a power of two, so that no word overflows."""
    power = rows.bit_length() - 1
    scale = total.scale
    if power:
        total = (yield from ops.truncate(session, total, power)).at_scale(scale)
    return (yield from ops.truncate_to(session, total.times(2.0**power / rows, bits=_F), _F))

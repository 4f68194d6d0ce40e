"""LinUCB on shares with nothing revealed but the sum of rewards: not the arms, not the noise, not the indices.

    DO                     computing parties                          DC
    theta  -- shares -->   indices, argmax, update with the one-hot
                           [sum of rewards]  ---------------------->  sum

Arms are public, so theta and A^-1 are needed only as the arms see them.  With D = A before the first pull, s_i the
norm of D^(-1/2) x_i and beta >= s_i a power of two, the parties keep

    C_ij = x_i' A^-1 x_j / (s_i s_j),   m_i = <x_i, theta^> / s_i,   y_i = 1 / sqrt(C_ii),   p_i = <x_i, theta>

and a step is, with o the one-hot of the pulled arm k and c_k = s_k / beta:

     1  y^2 C_ii, y C_ii            2  truncate              with the last step's y; y^2 was made beside its argmax
     3  t = 1 / sqrt(y^2 C_ii)      4  truncate              a table around 1, whatever C_ii has come down to
     5  t y, t y C_ii               6  truncate: y and sqrt(C_ii)
        B_i / beta = c_i m_i + omega c_i sqrt(C_ii)          local
  7-10  o = argmax B
    11  a_i = c_k C_ik,  e = c_k^2 C_kk,  r = p_k + eta,  d = r / beta - c_k m_k      products with o and (c_j o_j)
    12  nu = beta / sqrt(1 + beta^2 e);  truncate a, d       13  truncate nu
    14  v = nu a,  f = nu d                                  15  truncate
    16  v v', v f                                            17  truncate:  C -= v v',  m += v f

as Sherman and Morrison have it: v v' is A^-1 x x' A^-1 / (1 + x' A^-1 x) seen by the arms.  C and v v' are symmetric,
and packed where they are opened, dealt or truncated.  Before the first pull all indices are 0, and the argmax draws an
arm.  The noise is dealt, so nobody knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from mpc import ops
from mpc.correlations import Correlation, Gaussian, UniformNumber
from mpc.ops import Lines
from mpc.rounds import Rounds, labelled, together
from mpc.session import Session
from mpc.share import Share

from .ranges import COEFFICIENT_BITS, STATE_BITS, HiddenRanges


@dataclass
class HiddenState:
    """What the parties share between two pulls; scales as `HiddenRanges` has them."""

    gram: Share  # C
    estimates: Share  # m
    roots: Share  # y
    squares: Share  # y^2
    means: Share  # p
    total: Share  # sum of r

    @classmethod
    def start(cls, session: Session, theta: Share, ranges: HiddenRanges) -> HiddenState:
        """Public but for p, which is a public map of [theta]; no message."""
        arms = len(ranges.arms)
        means = theta.mapped(ranges.arms, bits=ranges.scales.arm)  # exact: the arms were rounded before
        ones = session.constant(np.ones(arms), ranges.root_bits)
        return cls(
            session.constant(ranges.gram, STATE_BITS), session.constant(np.zeros(arms), ranges.value_bits),
            ones, ones, means, session.constant(np.zeros(()), ranges.scales.reward),
        )  # fmt: skip

    @classmethod
    def of(cls, session: Session, words: Mapping[str, np.ndarray], ranges: HiddenRanges) -> HiddenState:
        """From `words` of an earlier session."""
        scales = {
            "gram": STATE_BITS, "estimates": ranges.value_bits, "roots": ranges.root_bits,
            "squares": ranges.root_bits, "means": ranges.scales.reward, "total": ranges.scales.reward,
        }  # fmt: skip
        return cls(**{name: Share(session, words[name], scale) for name, scale in scales.items()})

    def words(self) -> dict[str, np.ndarray]:
        """All shares by name."""
        return {part.name: getattr(self, part.name).words for part in fields(self)}


def pull(session: Session, state: HiddenState, ranges: HiddenRanges, omega: float | None) -> Rounds[Share]:
    """[one-hot of the arm that is pulled]; what it paid is learned from.  omega: None for the first pull.

    Needs: as `HiddenRanges` checks.
    Error: each index is within `ranges.precision` of what exact arithmetic makes of the same pulls and rewards.
    Cost:  17 rounds, and 6 for each Newton iteration behind the two tables of 1 / sqrt.
    Opens: as product, truncate, curve, argmax.
    """
    o, selectable = yield from labelled(session, "select", _select(session, state, ranges, omega))
    yield from labelled(session, "learn", _learn(session, state, o, selectable, ranges))
    return o


def _select(
    session: Session, state: HiddenState, ranges: HiddenRanges, omega: float | None
) -> Rounds[tuple[Share, Share]]:
    """[one-hot of the arm], and what `_learn` will select with it: rounds 1 to 10."""
    widths = yield from _refresh_roots(session, state, ranges)
    scores = _indices(session, state, widths, ranges, omega)
    o, selectable, _ = yield from together(
        ops.argmax(session, scores, score_bits=ranges.score_bits),
        _own_widths(session, state, ranges),
        _square_roots(session, state, ranges),
    )
    return o, selectable


def _refresh_roots(session: Session, state: HiddenState, ranges: HiddenRanges) -> Rounds[Share]:
    """[sqrt(C_ii)], and y brought from the C before the last pull to the C behind it: rounds 1 to 6."""
    diagonal = state.gram.diagonal()
    both = yield from ops.product(session, diagonal, ops.stack([state.squares, state.roots]))
    both = yield from ops.truncate(session, both, STATE_BITS)
    t = yield from inverse_root(session, both[0], ranges.root, ranges.root_bits, ranges.root_iterations)
    both = yield from ops.product(session, t, ops.stack([state.roots, both[1]]))
    both = yield from ops.truncate(session, both, ranges.root_bits)
    state.roots = both[0]
    return both[1]


def _indices(
    session: Session, state: HiddenState, widths: Share, ranges: HiddenRanges, omega: float | None
) -> Share:  # fmt: skip
    """[B_i / beta]: local; all 0 before the first pull."""
    scale = ranges.score_scale
    if omega is None:
        return session.constant(np.zeros(len(ranges.arms)), scale)
    means = state.estimates.times(ranges.ratios, bits=scale - ranges.value_bits)
    return means + widths.times(omega * ranges.ratios, bits=scale - ranges.root_bits)


def _own_widths(session: Session, state: HiddenState, ranges: HiddenRanges) -> Rounds[Share]:
    """[c_i^2 C_ii], of which the one-hot will select e."""
    widths = state.gram.diagonal().times(ranges.ratios**2, bits=COEFFICIENT_BITS)
    return (yield from ops.truncate(session, widths, COEFFICIENT_BITS))


def _square_roots(session: Session, state: HiddenState, ranges: HiddenRanges) -> Rounds[None]:
    squares = yield from ops.square(session, state.roots)
    state.squares = yield from ops.truncate(session, squares, ranges.root_bits)


def _learn(session: Session, state: HiddenState, o: Share, selectable: Share, ranges: HiddenRanges) -> Rounds[None]:
    """Rounds 11 to 17."""
    arms, values = len(ranges.arms), ranges.value_bits
    table = ops.pack(ops.concat([state.gram.integers(), state.estimates.integers().reshape(1, arms)]))
    picked, others = yield from together(
        ops.einsum(session, "sym:ij,j->i", table, o.times(ranges.ratios, bits=COEFFICIENT_BITS).integers()),
        ops.matmul(session, ops.stack([selectable.integers(), state.means.integers()]), o),
    )
    reward = others[1].at_scale(ranges.scales.reward) + _noise(session, ranges)
    state.total = state.total + reward

    e = others[0].at_scale(ranges.step_scale) + 1.0  # beta^2 e + 1: the same words
    surprise = _surprise(picked[arms].at_scale(values + COEFFICIENT_BITS), reward, ranges)
    column, surprise, nu = yield from together(
        ops.truncate(session, picked[:arms], COEFFICIENT_BITS),
        ops.truncate(session, surprise, surprise.scale - values),
        inverse_root(session, e, ranges.step, STATE_BITS, ranges.step_iterations),
    )
    both = ops.concat([column, surprise.integers().reshape(1)])
    both = yield from ops.product(session, nu.integers(), both)
    both = yield from ops.truncate(session, both, STATE_BITS - ranges.shift)
    change = ops.bordered((yield from ops.outer_square(session, both)))
    change = ops.unpack((yield from ops.truncate(session, change, STATE_BITS)), arms)
    state.gram = state.gram - change[:arms].at_scale(STATE_BITS)
    state.estimates = state.estimates + change[arms].at_scale(values)


def _surprise(expected: Share, reward: Share, ranges: HiddenRanges) -> Share:
    """[r / beta - c_k m_k]: dividing by beta is reading the same word with more fraction bits."""
    own = ranges.scales.reward + ranges.shift
    scale = max(expected.scale, own)
    return reward.at_scale(own).rescale(scale) - expected.rescale(scale)


def inverse_root(session: Session, x: Share, lines: Lines, scale: int, iterations: int) -> Rounds[Share]:
    """[1 / sqrt(x)] at `scale` from a table, then Newton's y (3 - x y^2) / 2.

    Needs: x in the domain of the lines.
    Error: of the lines, then 3/2 of its square an iteration.
    Cost:  2 rounds and 6 an iteration.
    Opens: as curve, truncate, product.
    """
    y = yield from ops.truncate_to(session, (yield from ops.curve(session, x, lines)), scale)
    for _ in range(iterations):
        square = yield from ops.truncate(session, (yield from ops.square(session, y)), scale)
        rest = yield from ops.truncate(session, (yield from ops.product(session, x, square)), x.scale)
        y = yield from ops.truncate(session, (yield from ops.product(session, y, 3.0 - rest)), scale + 1)
        y = y.at_scale(scale)  # one bit more than its surplus: halved
    return y


def noise_item(ranges: HiddenRanges) -> Correlation:
    """What the dealer draws for the noise of a reward."""
    return UniformNumber((), 1) if ranges.signs else Gaussian((), ranges.deviation, ranges.scales.reward)


def _noise(session: Session, ranges: HiddenRanges) -> Share:
    (words,) = session.draw(noise_item(ranges))
    if not ranges.signs:
        return Share(session, words, ranges.scales.reward)
    signs = Share(session, words, 0) * 2 - 1
    return signs.times(ranges.deviation, bits=ranges.scales.reward)

"""HELBA on shares: a step in 22 rounds for any number of arms, dimensions and parties.

    user                    computing parties                                          batches
    x_a  -- shares -->       1-11  indices by the frozen A and w; A x, <x, w> by the running ones
                            12-15  o = argmax
    a    <-----------          16  [arm] to its user;  the pulled arm's numbers by o
    r    -- shares -->      17-22  A and w by Sherman and Morrison                    17-20  tau >= C

Each step brings a running A and w up to date; a batch's end copies them to the frozen ones, so it takes no inversion.

     1  v_a = A x_a, p_a = <x_a, w>                 of both copies, one product
     2  truncate v, p                               3  z_a = <x_a, v_a>
  4-11  sqrt(z_a + c) by levels;  beside it u = v of the running copy, q = 1 + z of it, truncated
        index_a = p_a + beta (sqrt(z_a + c) + 1 / t)                      local
    17  h by lines, about 1 / q;  u u', u (r - <x, w>)                    18  truncate
    19  h u u', h u (r - <x, w>), h q              20  truncate;  d = 1 - h q
    21  d times both                               22  truncate:  1 / q = h (1 + d) to about 1e-8

Hidden ends take one round more: nobody knows whether the copies change, so they change by a product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.helba import Batches
from bandits.helba.constants import WIDTH_BITS
from bandits.helba.problem import FEATURE_BITS
from mpc import EVERYONE, ops
from mpc.rounds import Input, Reveal, Rounds, together
from mpc.session import Session
from mpc.share import Share

from .settings import ERROR_BITS, ESTIMATE_BITS, QUOTIENT_BITS, ROUGH_BITS, START_BITS, Settings

USER = "user"
ENDED, ENDS = "whether a batch ends", "its regression is used from now on"


@dataclass
class State:
    """What the parties hold between two steps.

    table: (copies, dim + 1, dim) words, [A; w'] with the scales of each; the running copy is the last.
    trace: tau.  start: t_j, a share of a whole number where batches are hidden.
    """

    table: Share
    trace: Share
    start: Share

    @classmethod
    def begin(cls, session: Session, settings: Settings) -> State:
        """A = I / lambda, w = 0, t_j = 1: public, so no message."""
        dim, widths = settings.constants.dim, settings.widths
        first = np.concatenate([np.eye(dim) / settings.constants.ridge, np.zeros((1, dim))])
        copies = np.broadcast_to(first, (settings.copies, dim + 1, dim))
        table = session.constant(copies, widths.inverse).integers()
        return cls(table, session.constant(0.0, widths.square), session.constant(1, 0))

    def words(self) -> dict[str, np.ndarray]:
        """This process's shares."""
        return {"table": self.table.words, "trace": self.trace.words, "start": self.start.words}

    @classmethod
    def restored(cls, session: Session, settings: Settings, kept: Mapping[str, np.ndarray]) -> State:
        """The state behind `words`."""
        trace = Share(session, kept["trace"], settings.widths.square)
        return cls(Share(session, kept["table"], 0), trace, Share(session, kept["start"], 0))


class Seen(NamedTuple):
    """Of every arm, (K, ...): by the running copy u = A x, q = 1 + x'A x and <x, w>; by the frozen one z = x'A x."""

    u: Share
    q: Share
    prediction: Share
    z: Share


def step(session: Session, state: State, t: int, start: int, settings: Settings) -> Rounds[Share | bool]:
    """Step t, in a batch that began at step `start` as far as that is public; whether it ended the batch.

    Needs: features up to L and rewards up to R, at most T steps.
    Error: of an index about 1e-6, of A at most eps(T).
    Cost:  22 rounds, 23 where ends are hidden; 2 hops from the user and 1 to it.
    Opens: as einsum, truncate, square_root_levelled, argmax, curve, is_negative.
    Reveals: the arm to its user; where ends are public, whether tau ended a batch that time does not end.
    """
    x = yield Input(USER, (settings.arms, settings.constants.dim), FEATURE_BITS)
    slack = settings.constants.slack(start)
    o, seen = yield from decide(session, state, x, t, slack, settings)
    (u, q, prediction, z), _, reward = yield from together(_pick(session, o, seen), _tell(o), _paid())
    surprise = reward.rescale(settings.widths.surprise) - prediction
    change, ended = yield from together(
        _change(session, u, q, surprise, settings), _ended(session, state, z, t, start, settings)
    )
    running = state.table[-1] + change
    yield from _freeze(session, state, running, ended, t)
    return ended


def decide(
    session: Session, state: State, x: Share, t: int, slack: float, settings: Settings
) -> Rounds[tuple[Share, Seen]]:
    """Rounds 1 to 15: [one-hot of the largest index], and what an update of each arm would need."""
    widths, dim = settings.widths, settings.constants.dim
    raw = yield from ops.einsum(session, "cij,kj->cki", state.table, x)
    predicted = raw[..., dim].at_scale(ESTIMATE_BITS + FEATURE_BITS)
    v, index, prediction = yield from together(
        ops.truncate_to(session, raw[..., :dim].at_scale(widths.inverse + FEATURE_BITS), widths.form),
        _as_scale(session, predicted[0], widths.score),
        _as_scale(session, predicted[-1], widths.surprise),
    )
    z = yield from ops.einsum(session, "cki,ki->ck", v, x)
    root, u, q = yield from together(
        ops.square_root_levelled(session, z[0] + slack, widths.levels),
        ops.truncate_to(session, v[-1], widths.update),
        ops.truncate_to(session, z[-1] + 1.0, QUOTIENT_BITS),
    )
    beta = settings.constants.beta(t)
    scores = index + root.times(beta, bits=WIDTH_BITS).rescale(widths.score) + beta / t
    o = yield from ops.argmax(session, scores.integers(), score_bits=widths.score_bits)
    return o, Seen(u, q, prediction, z[0])


def _pick(session: Session, o: Share, seen: Seen) -> Rounds[Seen]:
    """The pulled arm's: one product, of whole words, for o has no fraction bits.  Round 16."""
    columns = [part.integers().reshape(part.shape[0], -1) for part in seen]
    flat = yield from ops.einsum(session, "k,ki->i", o, ops.concat(columns, axis=-1))
    dim = seen.u.shape[-1]
    rest = (flat[dim + i].at_scale(part.scale) for i, part in enumerate(seen[1:]))
    return Seen(flat[:dim].at_scale(seen.u.scale), *rest)


def _tell(o: Share) -> Rounds[None]:
    yield Reveal((o * np.arange(o.shape[-1])).sum(), to=USER, what="arm", why="it is pulled")


def _paid() -> Rounds[Share]:
    return (yield Input(USER, (), FEATURE_BITS))


def _change(session: Session, u: Share, q: Share, surprise: Share, settings: Settings) -> Rounds[Share]:
    """[-u u' / q; u surprise / q], as words of the table.  Rounds 17 to 22; each pair of coordinates is rounded once.

    surprise: r - <x, w>.
    """
    widths, dim = settings.widths, settings.constants.dim
    i, j = np.triu_indices(dim)
    both = ops.concat([u.integers(), surprise.integers().reshape(1)])
    start, products = yield from together(
        ops.curve(session, q, settings.quotients), ops.outer(session, u.integers(), both)
    )
    start, squares, gains = yield from together(
        ops.truncate_to(session, start, START_BITS),
        ops.truncate_to(session, products[i, j].at_scale(2 * widths.update), widths.squares),
        ops.truncate_to(session, products[:, dim].at_scale(widths.update + widths.surprise), widths.gains),
    )
    parts = ops.concat([squares.integers(), gains.integers(), q.integers().reshape(1)])
    parts = yield from ops.product(session, start, parts)
    scales = widths.squares + START_BITS, widths.gains + START_BITS
    error = 1.0 - parts[-1].at_scale(QUOTIENT_BITS + START_BITS)
    squares, gains = parts[: i.size].at_scale(scales[0]), parts[i.size : -1].at_scale(scales[1])
    exact, *rough, error = yield from together(
        _to_table(session, squares, gains, settings),
        ops.truncate_to(session, squares, ROUGH_BITS),
        ops.truncate_to(session, gains, ROUGH_BITS),
        ops.truncate_to(session, error, ERROR_BITS),
    )
    more = yield from ops.product(session, error, ops.concat(rough))
    flat = exact + (yield from _to_table(session, more[: i.size], more[i.size :], settings))
    places = np.empty((dim, dim), np.intp)
    places[i, j] = places[j, i] = np.arange(i.size)
    return ops.concat([-flat[: i.size][places], flat[i.size :].reshape(1, dim)])


def _to_table(session: Session, squares: Share, gains: Share, settings: Settings) -> Rounds[Share]:
    """Both as words of the table's scales."""
    parts = yield from together(
        ops.truncate_to(session, squares, settings.widths.inverse), ops.truncate_to(session, gains, ESTIMATE_BITS)
    )
    return ops.concat([part.integers() for part in parts])


def _ended(session: Session, state: State, z: Share, t: int, start: int, settings: Settings) -> Rounds[Share | bool]:
    """Whether the batch ends behind step t, public or shared; takes z into tau.  Rounds 17 to 20."""
    given, batches = settings.constants, settings.batches
    if batches is Batches.NONE:
        return True
    state.trace = state.trace + z
    low = ops.is_negative(session, state.trace - given.trace, width=63)
    if batches is Batches.PUBLIC:
        below = yield from low
        if given.grown(t, start):
            return True
        return bool((yield Reveal(1 - below, to=EVERYONE, what=ENDED, why=ENDS)))
    if given.growth is None:
        return 1 - (yield from low)
    p, q = given.ratio
    early = ops.is_negative(session, q * (t + 1) - state.start * p)
    both = yield from together(low, early)
    return 1 - (yield from ops.product(session, *both))


def _freeze(session: Session, state: State, running: Share, ended: Share | bool, t: int) -> Rounds[None]:
    """Take in what was learned, and where a batch ended, begin the next.  Local, or 1 round where the end is hidden."""
    frozen = state.table[:-1]
    if isinstance(ended, Share):
        moves = [running - frozen[0], -state.trace.integers(), (t + 1) - state.start]
        flat = ops.concat([part.reshape(part.size) for part in moves])
        flat = yield from ops.product(session, ended, flat)
        frozen = frozen + flat[:-2].reshape(*frozen.shape)
        state.trace = state.trace + flat[-2].at_scale(state.trace.scale)
        state.start = state.start + flat[-1]
    elif ended:
        frozen = ops.stack([running] * len(frozen)) if len(frozen) else frozen
        state.trace = state.trace - state.trace
    state.table = ops.concat([frozen, running.reshape(1, *running.shape)])


def _as_scale(session: Session, x: Share, scale: int) -> Rounds[Share]:
    """[x] with that many fraction bits, more or fewer.  Cost: 1 round for fewer."""
    return (yield from ops.truncate_to(session, x.rescale(max(x.scale, scale)), scale))

"""HELBA on shares: an arm in 16 rounds for any number of arms, dimensions and parties.

    user                    computing parties
                             1- 6  A and w take in the last step, by Sherman and Morrison
    x_a  -- shares -->       1-11  indices by the frozen A and w;  would arm a end the batch: tau + z_a >= C
                             7-10  what an update by each arm would need: A x, <x, w> by the running ones
                            12-15  o = argmax
    a    <-----------          16  [arm] to its user;  the pulled arm's numbers by o
    r    -- shares -->         17  whether the batch ends, where that is told

Each step is taken into a running A and w; a batch's end copies them to the frozen ones, so it takes no inversion.
Indices use the frozen ones alone, so within a batch whose ends are public a user is decided for while the last one's
reward is learned from: 17 rounds a step.  Behind an end, or where nobody knows whether there was one, the two run one
after the other: 22, and 23 where ends are hidden, for copies that may change do so by a product.

Update      1  h by lines, about 1 / q;  u u', u (r - <x, w>)        2  truncate
            3  h u u', h u (r - <x, w>), h q                         4  truncate;  d = 1 - h q
            5  d times both                                          6  truncate:  1 / q = h (1 + d) to about 1e-8
Forms       v_a = A x_a, p_a = <x_a, w>;  truncate v;  z_a = <x_a, v_a>
Index       sqrt(z_a + c) by levels;  p_a + beta (sqrt(z_a + c) + 1 / t)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.helba import Batches
from bandits.helba.constants import WIDTH_BITS
from bandits.helba.problem import FEATURE_BITS
from mpc import EVERYONE, ops, supplied
from mpc.correlations import Correlation
from mpc.rounds import Input, Reveal, Rounds, labelled, pause, together
from mpc.session import Session
from mpc.share import Share

from ..run.rehearsal import drawn
from .settings import ERROR_BITS, ESTIMATE_BITS, QUOTIENT_BITS, ROUGH_BITS, START_BITS, Settings

USER = "user"
ROUNDS_TO_ARM, UPDATE_ROUNDS = 16, 6  # from a user's features to its arm; to take in a step
ENDED, ENDS = "whether a batch ends", "its regression is used from now on"


@dataclass
class State:
    """What the parties hold between two steps.

    table: (copies, dim + 1, dim) words, [A; w'] with the scales of each; the running copy is the last.
    trace: tau.  start: t_j, a share of a whole number where batches are hidden.
    pulled: (dim + 3,) words of the last step, which is not in the table yet: u = A x, q = 1 + x'A x, r - <x, w>, and
    whether it ended a batch.
    """

    table: Share
    trace: Share
    start: Share
    pulled: Share

    @classmethod
    def begin(cls, session: Session, settings: Settings) -> State:
        """A = I / lambda, w = 0, t_j = 1, and a step that teaches nothing, u = 0: public, so no message."""
        dim, widths = settings.constants.dim, settings.widths
        first = np.concatenate([np.eye(dim) / settings.constants.ridge, np.zeros((1, dim))])
        copies = np.broadcast_to(first, (settings.copies, dim + 1, dim))
        table = session.constant(copies, widths.inverse).integers()
        pulled = session.constant(np.eye(dim + 3)[dim], QUOTIENT_BITS).integers()
        return cls(table, session.constant(0.0, widths.square), session.constant(1, 0), pulled)

    def words(self) -> dict[str, np.ndarray]:
        """This process's shares."""
        return {name: share.words for name, share in vars(self).items()}

    @classmethod
    def restored(cls, session: Session, settings: Settings, kept: Mapping[str, np.ndarray]) -> State:
        """The state behind `words`."""
        scales = {"trace": settings.widths.square}
        names = ("table", "trace", "start", "pulled")
        return cls(*(Share(session, kept[name], scales.get(name, 0)) for name in names))


class Forms(NamedTuple):
    """Of every arm, by some copies of the table, (copies, K, ...): A x, <x, w> and x'A x."""

    v: Share
    predicted: Share
    z: Share


def decide(
    session: Session, state: State, t: int, start: int, ended: bool, settings: Settings, items: Sequence[Correlation]
) -> Rounds[Share]:
    """Step t up to its arm, in a batch that began at step `start` as far as that is public: the pulled arm's numbers.

    ended: whether the step before ended a batch, or may have where ends are hidden.  items: what an update draws.

    Needs: features up to L, at most T steps.
    Error: of an index about 1e-6, of A at most eps(T).
    Cost:  16 rounds, 6 more behind an end, 7 where ends are hidden; 1 hop from the user and 1 to it.
    Opens: as einsum, truncate, square_root_levelled, argmax, curve, is_negative, product.
    Reveals: the arm to its user.
    """
    update = labelled(session, "learn", supplied(session, items, _learn(session, state, settings)))
    if ended:
        yield from update
        yield from _freeze(session, state, t, settings)
        update = pause(UPDATE_ROUNDS)  # or what follows it would draw at another place than beside it
    x = yield Input(USER, (settings.arms, settings.constants.dim), FEATURE_BITS)
    apart = settings.batches is Batches.PUBLIC
    forms = None if apart else (yield from _forms(session, state.table, x, settings))
    (o, *seen), ready = yield from together(
        _choose(session, state, forms, x, t, start, settings), _ready(session, state, forms, x, update, settings)
    )
    pulled, _ = yield from together(_pick(session, o, [*ready, *seen]), _tell(o))
    return pulled


def pay(session: Session, state: State, pulled: Share, t: int, start: int, settings: Settings) -> Rounds[Share | bool]:
    """The rest of step t, the next to be taken in: whether it ended the batch.  pulled: what `decide` gave.

    Needs: a reward up to R.
    Cost:  no round, 1 where an end is told; 1 hop from the user.
    Reveals: where ends are public, whether tau ended a batch that time does not end.
    """
    reward = yield Input(USER, (), FEATURE_BITS)
    dim, widths = settings.constants.dim, settings.widths
    surprise = reward.rescale(widths.surprise) - pulled[dim + 1].at_scale(widths.surprise)
    ends, z = pulled[dim + 2], pulled[dim + 3].at_scale(widths.square)
    state.trace = state.trace + z
    state.pulled = ops.concat([part.reshape(part.size) for part in (pulled[: dim + 1], surprise.integers(), ends)])
    if settings.batches is not Batches.PUBLIC:
        return settings.batches is Batches.NONE or ends
    return settings.constants.grown(t, start) or bool((yield Reveal(ends, to=EVERYONE, what=ENDED, why=ENDS)))


def _forms(session: Session, table: Share, x: Share, settings: Settings) -> Rounds[Forms]:
    """3 rounds."""
    widths, dim = settings.widths, settings.constants.dim
    raw = yield from ops.einsum(session, "sym:cij,kj->cki", ops.pack(table), x)
    v = yield from ops.truncate_to(session, raw[..., :dim].at_scale(widths.inverse + FEATURE_BITS), widths.form)
    z = yield from ops.einsum(session, "cki,ki->ck", v, x)
    return Forms(v, raw[..., dim].at_scale(ESTIMATE_BITS + FEATURE_BITS), z)


def _choose(
    session: Session, state: State, forms: Forms | None, x: Share, t: int, start: int, settings: Settings
) -> Rounds[tuple[Share, Share, Share]]:
    """[one-hot of the largest index] in 15 rounds, and of every arm whether it would end the batch, and z."""
    given, widths = settings.constants, settings.widths
    forms = forms or (yield from _forms(session, state.table[:1], x, settings))
    z = forms.z[0]
    root, index, ends = yield from together(
        ops.square_root_levelled(session, z + given.slack(start), widths.levels),
        ops.truncate_to(session, forms.predicted[0], widths.score),
        _ends(session, state, z, t, settings),
    )
    beta = given.beta(t)
    scores = index + root.times(beta, bits=WIDTH_BITS).rescale(widths.score) + beta / t
    o = yield from ops.argmax(session, scores.integers(), score_bits=widths.score_bits)
    return o, ends, z


def _ready(
    session: Session, state: State, forms: Forms | None, x: Share, update: Rounds[None], settings: Settings
) -> Rounds[tuple[Share, Share, Share]]:
    """Of every arm u, q and <x, w> by the running copy, behind what it still has to take in.  At most 10 rounds."""
    if forms is None:
        yield from update
        forms = yield from _forms(session, state.table[-1:], x, settings)
    v, predicted, z = forms
    return (
        yield from together(
            ops.truncate_to(session, v[-1], settings.widths.update),
            ops.truncate_to(session, z[-1] + 1.0, QUOTIENT_BITS),
            ops.truncate_to(session, predicted[-1], settings.widths.surprise),
        )
    )


def _ends(session: Session, state: State, z: Share, t: int, settings: Settings) -> Rounds[Share]:
    """Of every arm, whether the batch ends behind step t if it is pulled.  At most 4 rounds."""
    given, batches = settings.constants, settings.batches
    if batches is Batches.NONE:
        return session.constant(np.ones(settings.arms), 0)
    low = ops.is_negative(session, state.trace + z - given.trace, width=63)
    if batches is Batches.PUBLIC or given.growth is None:
        return 1 - (yield from low)
    p, q = given.ratio
    early = ops.is_negative(session, q * (t + 1) - state.start * p)
    both = yield from together(low, early)
    return 1 - (yield from ops.product(session, *both))


def _pick(session: Session, o: Share, parts: Sequence[Share]) -> Rounds[Share]:
    """The pulled arm's, one behind the other: one product, of whole words, for o has no fraction bits."""
    columns = [part.integers().reshape(part.shape[0], -1) for part in parts]
    return (yield from ops.einsum(session, "k,ki->i", o, ops.concat(columns, axis=-1)))


def _tell(o: Share) -> Rounds[None]:
    yield Reveal((o * np.arange(o.shape[-1])).sum(), to=USER, what="arm", why="it is pulled")


def update_items(settings: Settings, parties: int) -> tuple[Correlation, ...]:
    """What an update draws, which stands at the head of each step."""
    return drawn(parties, lambda session: _learn(session, State.begin(session, settings), settings))


def _learn(session: Session, state: State, settings: Settings) -> Rounds[None]:
    """Add [-u u' / q; u surprise / q] of the last step to the running copy; u u' is packed until the end.

    surprise: r - <x, w>.  Cost: 6 rounds.
    """
    widths, dim = settings.widths, settings.constants.dim
    words = dim * (dim + 1) // 2  # of u u', packed
    q, surprise = state.pulled[dim], state.pulled[dim + 1 : dim + 2]
    start, products = yield from together(
        ops.curve(session, q.at_scale(QUOTIENT_BITS), settings.quotients),
        ops.outer_square(session, ops.concat([state.pulled[:dim], surprise])),
    )
    products = ops.bordered(products)
    start, squares, gains = yield from together(
        ops.truncate_to(session, start, START_BITS),
        ops.truncate_to(session, products[:words].at_scale(2 * widths.update), widths.squares),
        ops.truncate_to(session, products[words:].at_scale(widths.update + widths.surprise), widths.gains),
    )
    parts = ops.concat([squares.integers(), gains.integers(), q.reshape(1)])
    parts = yield from ops.product(session, start, parts)
    scales = widths.squares + START_BITS, widths.gains + START_BITS
    error = 1.0 - parts[-1].at_scale(QUOTIENT_BITS + START_BITS)
    squares, gains = parts[:words].at_scale(scales[0]), parts[words:-1].at_scale(scales[1])
    exact, *rough, error = yield from together(
        _to_table(session, squares, gains, settings),
        ops.truncate_to(session, squares, ROUGH_BITS),
        ops.truncate_to(session, gains, ROUGH_BITS),
        ops.truncate_to(session, error, ERROR_BITS),
    )
    more = yield from ops.product(session, error, ops.concat(rough))
    flat = exact + (yield from _to_table(session, more[:words], more[words:], settings))
    change = ops.unpack(ops.concat([-flat[:words], flat[words:]]), dim)
    state.table = ops.concat([state.table[:-1], (state.table[-1] + change).reshape(1, dim + 1, dim)])


def _to_table(session: Session, squares: Share, gains: Share, settings: Settings) -> Rounds[Share]:
    """Both as words of the table's scales."""
    parts = yield from together(
        ops.truncate_to(session, squares, settings.widths.inverse), ops.truncate_to(session, gains, ESTIMATE_BITS)
    )
    return ops.concat([part.integers() for part in parts])


def _freeze(session: Session, state: State, t: int, settings: Settings) -> Rounds[None]:
    """Begin a batch with step t.  Local, or 1 round where nobody knows whether one begins."""
    if settings.batches is Batches.HIDDEN:
        frozen = state.table[0]
        moves = [ops.pack(state.table[1] - frozen), -state.trace.integers(), t - state.start]
        flat = ops.concat([part.reshape(part.size) for part in moves])
        flat = yield from ops.product(session, state.pulled[-1], flat)
        state.table = ops.stack([frozen + ops.unpack(flat[:-2], settings.constants.dim), state.table[1]])
        state.trace = state.trace + flat[-2].at_scale(state.trace.scale)
        state.start = state.start + flat[-1]
    else:
        state.table = ops.stack([state.table[-1]] * settings.copies)
        state.trace = state.trace - state.trace

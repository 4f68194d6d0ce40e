"""The private contextual bandit, one step in 12 rounds for any number of arms and parties.

    owner p               computing parties               puller          payer
    x_p  -- shares -->    scores, argmax with exploration
                          [arm]  ------------------------> arm
                          [r]    <----------------------------------------- r
                          update of the pulled arm's regression

Owners of the features are the computing parties.  The puller learns the arms, the payer knows the rewards, and nobody
learns anything else (in a launch on one machine the payer's process reads the arms, to know what they paid: `clients`).
Values have two leading axes: R replicas, and the B contexts that are decided on together.

State: P_a = (ridge I + sum x x')^-1 and w_a = P_a sum r x, so that a step needs one reciprocal, not one for each arm:

     1  v_a = P_a x,  s_a = w_a . x                                  one product: w_a is stored as a row below P_a
     2  truncate v, s;  2-5  o = argmax_a s_a, exploration folded in
     6  reveal the arm to the puller;  u = sum_a o_a v_a,  s = sum_a o_a s_a
     7  x'u, u u';  the payer shares r           8  truncate them;  u (r - s)
     9  g = 1 / (1 + x'u), by a table of lines;  truncate u (r - s)
    10  g u u', g u (r - s)                      11  truncate
    12  P_a -= o_a g u u',  w_a += o_a g u (r - s)

Rewards that come d steps late are learned from in the rounds in which a later step decides: then a step is 9 rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mpc import ops
from mpc.errors import RangeError
from mpc.rounds import Input, Reveal, Rounds, labelled, together
from mpc.session import Session
from mpc.share import Share

from .arithmetic import cut, cut_all, cut_to, quotient
from .batch import update_batch
from .bonus import with_bonus
from .settings import Argmax, Policy, Settings

PULLER, PAYER = "puller", "payer"
_COMPARE = {
    Argmax.PAIRS: ops.Compare.TABLES,
    Argmax.STRINGS: ops.Compare.STRINGS,
    Argmax.CIRCUIT: ops.Compare.CIRCUIT,
}


class Unpaid(NamedTuple):
    """A decision whose reward has not come yet."""

    x: Share
    o: Share


@dataclass
class State:
    """[P_a; w_a']: (replicas, arms, dim + 1, dim) at state_bits.

    sums: [sum x x'; sum r x'] at twice fraction_bits, exact, where a run refreshes.
    unpaid: as many decisions as a reward is late, oldest first; before the first decision, nothing was pulled.
    """

    table: Share
    sums: Share | None = None
    unpaid: deque[Unpaid] = field(default_factory=deque)

    @classmethod
    def start(cls, session: Session, settings: Settings) -> State:
        """P_a = I / ridge, w_a = 0: public, so no message."""
        dim = settings.dim
        first = np.concatenate([np.eye(dim) / settings.ridge, np.zeros((1, dim))])
        shape = (settings.replicas, settings.arms, dim + 1, dim)
        table = session.constant(np.broadcast_to(first, shape), settings.state_bits)
        sums = session.constant(np.zeros(shape), 2 * settings.fraction_bits) if settings.refresh else None
        lead = (settings.replicas, settings.batch)
        nothing = Unpaid(
            session.constant(np.zeros((*lead, dim)), settings.fraction_bits),
            session.constant(np.zeros((*lead, settings.arms)), 0),
        )
        return cls(table, sums, deque([nothing] * settings.delay))

    def words(self) -> dict[str, np.ndarray]:
        """This process's shares, to be kept where only it can read them."""
        kept = {"table": self.table.words}
        if self.sums is not None:
            kept["sums"] = self.sums.words
        if self.unpaid:
            kept["unpaid_x"] = np.stack([old.x.words for old in self.unpaid])
            kept["unpaid_o"] = np.stack([old.o.words for old in self.unpaid])
        return kept

    @classmethod
    def restored(cls, session: Session, settings: Settings, kept: Mapping[str, np.ndarray]) -> State:
        """The state behind `words`."""
        f = settings.fraction_bits
        unpaid = [
            Unpaid(Share(session, x, f), Share(session, o, 0))
            for x, o in zip(kept.get("unpaid_x", ()), kept.get("unpaid_o", ()), strict=True)
        ]
        sums = Share(session, kept["sums"], 2 * f) if "sums" in kept else None
        return cls(Share(session, kept["table"], settings.state_bits), sums, deque(unpaid))


class Decision(NamedTuple):
    """o: one-hot of the chosen arm, (R, B, A) at scale 0.  v: P_a x at state_bits.  s: w_a . x at fraction_bits."""

    o: Share
    v: Share
    s: Share


def share_block(
    session: Session, values: np.ndarray | None, *, owner: int, width: int, settings: Settings, bound: float,
    contexts: int | None = None,
) -> Share:  # fmt: skip
    """A block of features from its owner, (replicas, contexts, width); beyond the bound it is refused there.

    contexts: where they are not a batch that is learned from together, but decided on alone.
    """
    shape = (settings.replicas, contexts or settings.batch, width)
    if values is not None and owner in session.hosted:
        if values.shape != shape:
            raise RangeError(
                f"party {owner} declared blocks of shape {shape} (replicas, batch, features), this one has "
                f"{values.shape}"
            )
        norm = float(np.linalg.norm(values, axis=-1).max(initial=0.0))
        if not norm <= _most(bound, settings):
            raise RangeError(
                f"a block of party {owner} has norm {{}}, declared is {bound:g}: scale it or declare more",
                own=f"{norm:.6g}",
            )
    return session.share(values, owner=owner, shape=shape, scale=settings.fraction_bits)


def check_rows(rows: np.ndarray, settings: Settings) -> None:
    """The same of all that an owner brings, before it calls anybody: RangeError says which row is the first beyond."""
    norms = np.linalg.norm(rows, axis=-1)
    if (beyond := np.flatnonzero(~(norms <= _most(settings.bound, settings)))).size:
        raise RangeError(
            f"row {beyond[0]} has norm {{}}, declared is {settings.bound:g}, and {beyond.size:,} of {len(rows):,} rows "
            "exceed it: scale them or declare more",
            own=f"{norms[beyond[0]]:.6g}",
        )


def _most(bound: float, settings: Settings) -> float:
    return bound * (1.0 + 2.0**-settings.fraction_bits)


def step(session: Session, state: State, x: Share, settings: Settings) -> Rounds[None]:
    """Decide on x and learn from the reward that comes; updates the state.

    Needs: contexts of norm at most `settings.norm`, rewards in [0, 1], at most `steps` contexts.
    Cost:  12 rounds; 9 with a delay.  More: 1 where raw scores leave no room for keys, 1 where a table's reciprocal
           leaves none for products, as `quotient` for Newton iterations, 8 for LinUCB, 9 for Thompson, as
           `update_batch` for batches.  1 hop to the puller and 1 from the payer.
    Opens: as product, truncate, argmax, curve, and for LinUCB and Thompson square_root.
    """
    if settings.delay:
        yield from _decide_and_learn_late(session, state, x, settings)
        return
    o, v, s = yield from labelled(session, "decide", decide(session, state, x, settings))
    paid = _paid(settings)
    if state.sums is None:
        (u, prediction), _ = yield from labelled(session, "tell", together(_pick(session, o, v, s), tell(o)))
    else:
        both = together(_pick(session, o, v, s), tell(o), paid)
        (u, prediction), _, reward = yield from labelled(session, "tell", both)
        paid = given(reward)
    yield from labelled(session, "learn", _update(session, state, x, o, u, prediction, paid, settings))


def decide(
    session: Session, state: State, x: Share, settings: Settings, *, eligible: np.ndarray | None = None
) -> Rounds[Decision]:
    """Rounds 1 to 5.  eligible: the arms that may be chosen, public; all others have a 0 in the one-hot."""
    dim = settings.dim
    raw = yield from _applied(session, state, x)
    settled = _settled(session, raw, settings)
    if settings.policy is Policy.EPSILON_GREEDY:
        (v, s), o = yield from together(settled, _best(session, raw[..., dim], settings, eligible))
    else:
        v, s = yield from settled
        index = yield from with_bonus(session, raw[..., dim], x, v, settings)
        o = yield from _best(session, index, settings, eligible)
    return Decision(o, v, s)


def learn(session: Session, state: State, x: Share, o: Share, paid: Rounds[Share], settings: Settings) -> Rounds[None]:
    """Update the pulled arms' regressions when a reward comes after other updates: 9 rounds.

    paid: gives the rewards, (R, B) at fraction_bits, within a round.
    """
    raw = yield from _applied(session, state, x)
    v, s = yield from _settled(session, raw, settings)
    if state.sums is None:
        u, prediction = yield from _pick(session, o, v, s)
    else:
        (u, prediction), reward = yield from together(_pick(session, o, v, s), paid)
        paid = given(reward)
    yield from _update(session, state, x, o, u, prediction, paid, settings)


def _applied(session: Session, state: State, x: Share) -> Rounds[Share]:
    """[P_a x; w_a . x]: P_a is symmetric, so its upper triangle is opened, masked, and stands for all of it."""
    return ops.einsum(session, "sym:raij,rbj->rbai", ops.pack(state.table), x)


def tell(o: Share) -> Rounds[None]:
    """Reveal the chosen arm to the puller."""
    yield Reveal((o * np.arange(o.shape[-1])).sum(axis=-1), to=PULLER, what="arm", why="it is pulled")


def _decide_and_learn_late(session: Session, state: State, x: Share, settings: Settings) -> Rounds[None]:
    old = state.unpaid.popleft()
    o, _ = yield from together(
        labelled(session, "decide", _decide_and_tell(session, state, x, settings)),
        labelled(session, "learn", learn(session, state, old.x, old.o, _paid(settings), settings)),
    )
    state.unpaid.append(Unpaid(x, o))


def _decide_and_tell(session: Session, state: State, x: Share, settings: Settings) -> Rounds[Share]:
    o, _, _ = yield from decide(session, state, x, settings)
    yield from tell(o)
    return o


def _paid(settings: Settings) -> Rounds[Share]:
    return (yield Input(PAYER, (settings.replicas, settings.batch), settings.fraction_bits))


def _best(session: Session, scores: Share, settings: Settings, eligible: np.ndarray | None) -> Rounds[Share]:
    """[one-hot of the largest score] at f + state bits, exploration and the draw among close scores folded in."""
    if not settings.raw_scores_fit:
        scores = yield from cut(session, scores, settings.state_bits, settings)
    scores = (scores if eligible is None else scores[..., eligible]).integers()
    bits, eps, blur = settings.score_bits, settings.eps, settings.blur
    if settings.argmax is Argmax.TOURNAMENT:
        o = yield from ops.argmax_tournament(session, scores, score_bits=bits, eps=eps, blur=blur)
    else:
        how = _COMPARE[settings.argmax]
        o = yield from ops.argmax(session, scores, score_bits=bits, eps=eps, blur=blur, how=how)
    return o if eligible is None else ops.scatter(o, eligible, settings.arms)


def _settled(session: Session, raw: Share, settings: Settings) -> Rounds[tuple[Share, Share]]:
    """[P_a x] at state_bits and [w_a . x] at fraction_bits, from both at the sum of the two."""
    dim = settings.dim
    parts = [(raw[..., :dim], settings.fraction_bits), (raw[..., dim], settings.state_bits)]
    v, s = yield from cut_all(session, parts, settings)
    return v, s


def _pick(session: Session, o: Share, v: Share, s: Share) -> Rounds[tuple[Share, Share]]:
    """[sum_a o_a v_a] and [sum_a o_a s_a], as columns of one product: o has no fraction bits."""
    columns = ops.concat([v.integers(), s.integers()[..., None]], axis=-1)
    both = yield from ops.einsum(session, "rba,rbai->rbi", o, columns)
    return both[..., :-1].at_scale(v.scale), both[..., -1].at_scale(s.scale)


def _update(
    session: Session, state: State, x: Share, o: Share, u: Share, prediction: Share, paid: Rounds[Share],
    settings: Settings,
) -> Rounds[None]:  # fmt: skip
    """Rounds 7 to 12.  The exact sums, where they are kept, need no round of their own, but the reward at once."""
    change = _update_one if settings.batch == 1 else update_batch
    if state.sums is None:
        state.table = state.table + (yield from change(session, x, o, u, prediction, paid, settings))
        return
    reward = yield from paid
    both, added = yield from together(
        change(session, x, o, u, prediction, given(reward), settings), _moments(session, x, o, reward)
    )
    state.table, state.sums = state.table + both, state.sums + added


def given(reward: Share) -> Rounds[Share]:
    """A reward that is there already, as a program without a round."""
    return reward
    yield


def _moments(session: Session, x: Share, o: Share, reward: Share) -> Rounds[Share]:
    """[x x'; r x'] for the pulled arm, at twice the scale of x, without rounding."""
    rows = ops.concat([x, reward[..., None]], axis=-1)
    moments = yield from ops.einsum(session, "rbi,rbj->rbij", rows, x)
    return (yield from ops.einsum(session, "rba,rbij->raij", o, moments))


def _update_one(
    session: Session, x: Share, o: Share, u: Share, prediction: Share, paid: Rounds[Share], settings: Settings
) -> Rounds[Share]:
    """[-o g u u'; o g u (r - s)]: what Sherman and Morrison add to the state.  u u' is packed until the end.

    The reward is waited for while round 7 runs: what it enters, u (r - s), is a round behind u u' until both meet.
    """
    f, scale = settings.fraction_bits, settings.state_bits
    xu, uu, reward = yield from together(ops.einsum(session, "rbi,rbi->rb", x, u), ops.outer_square(session, u), paid)
    (xu, uu), us = yield from together(
        cut_all(session, [(xu, scale), (uu, scale)], settings),
        ops.einsum(session, "rbi,rb->rbi", u, reward - prediction),
    )
    g, us = yield from together(quotient(session, xu + 1.0, settings), cut(session, us, f, settings))
    gain = yield from ops.einsum(session, "rb,rbk->rbk", g, ops.concat([-uu, us], axis=-1))
    gain = yield from cut_to(session, gain, scale, settings)
    both = yield from ops.einsum(session, "rba,rbk->rak", o, gain)
    return ops.unpack(both, settings.dim)

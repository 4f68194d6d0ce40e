"""A turn: contexts that the puller asks about, and rewards that the payer has, at most B of each, in the same rounds.

    all parties               puller                          payer
    [turn t is next] -------> all before it is kept --------> all before it is kept
                      <------ numbers and digests of ids
                      <-------------------------------------- numbers of decisions, rewards
    open numbers and digests; each owner: which of the ids it has
    x_p --> decide            [arms], who lacks what
            learn             ----------------------------->  whose decisions did wait

All parties learn how many contexts are asked about, digests of their ids, which of them an owner lacks, and which
decisions are paid; the puller its arms, the payer which of its rewards counted.  A turn that nobody asks anything of
ends after the second round and draws nothing.  What is not asked for is a context of zeros, from which nothing is
learned, so every other turn draws the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpc import ops
from mpc.rounds import Input, Reveal, Rounds, together
from mpc.session import Session
from mpc.share import Share

from ..program import PAYER, PULLER, State, decide, given, learn
from ..settings import Settings

NONE = -1
"""In place of a number, where fewer are asked for than there is room."""
FULL = 2
"""Of a paid decision that did wait, where all rewards that were declared are learned."""
DIGEST_BITS = 61


class Asked(NamedTuple):
    """numbers, digests: of the contexts that the puller asks about.  due: decisions that are paid.  reward: (1, B)."""

    numbers: np.ndarray
    digests: np.ndarray
    due: np.ndarray
    reward: Share


def announced(session: Session, done: int, settings: Settings) -> Rounds[Asked]:
    """What this turn is about.

    Cost:  1 round, a hop to each client, and three from them.
    """
    batch = settings.batch
    next_ = session.constant(np.array([done]), 0)
    yield (
        Reveal(next_, to=PULLER, what="turns that are kept", why="it answers what came before"),
        Reveal(next_, to=PAYER, what="turns that are kept", why="it lets go of what came before"),
    )
    asked, due, reward = yield (
        Input(PULLER, (1, 2, batch), 0), Input(PAYER, (1, batch), 0), Input(PAYER, (1, batch), settings.fraction_bits)
    )  # fmt: skip
    (numbers, digests), (paid,) = yield (
        Reveal(asked[0], what="numbers, and digests of ids", why="owners bring their features of these contexts"),
        Reveal(due, what="numbers of paid decisions", why="shares that were kept are learned from"),
    )
    return Asked(numbers[numbers >= 0], digests[numbers >= 0], paid, reward)


def known(session: Session, has: dict[int, np.ndarray], owners: list[int], count: int) -> Rounds[np.ndarray]:
    """(count,) whether every owner has its part.  has: of the owners here, 1 or 0 for each context.

    Cost:  1 round.
    """
    flags = [session.share(has.get(owner), owner=owner, shape=(1, count), scale=0) for owner in owners]
    found = yield Reveal(
        ops.concat(flags, axis=0), what="whether an owner has its part", why="a context takes all of them"
    )
    return np.atleast_1d(np.asarray(found).min(axis=0))


def served(
    session: Session, state: State, x: Share, old: tuple[Share, Share], reward: Share, settings: Settings
) -> Rounds[Share]:
    """[one-hots] for the contexts x; and learn from the decisions `old`, zeros among them, and their rewards.

    Cost:  as `learn` of a batch, in whose rounds it decides.
    """
    decision, _ = yield from together(
        decide(session, state, x, settings), learn(session, state, *old, given(reward), settings)
    )
    return decision.o


def told(session: Session, o: Share, whole: np.ndarray, found: np.ndarray) -> Rounds[None]:
    """Tell the puller its arms and which contexts were whole, and the payer which decisions did wait, or `FULL`.

    Cost:  a hop to each of them that asked for anything.
    """
    reveals = []
    if len(whole):
        arms = (o[:, : len(whole)] * np.arange(o.shape[-1])).sum(axis=-1)
        reveals.append(Reveal(arms, to=PULLER, what="arm", why="it is pulled"))
        flags = session.constant(whole[None].astype(np.int64), 0)
        reveals.append(Reveal(flags, to=PULLER, what="whether all owners have a context", why="it asks for it again"))
    if len(found):
        flags = session.constant(found[None].astype(np.int64), 0)
        reveals.append(Reveal(flags, to=PAYER, what="whether a decision waited for its reward", why="it is told"))
    if reveals:
        yield tuple(reveals)


__all__ = ["DIGEST_BITS", "FULL", "NONE", "Asked", "announced", "known", "served", "told"]

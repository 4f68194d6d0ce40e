"""SAMBA on shares: a step in 4 rounds for up to 64 arms, in 10 for more; a weighted draw takes 4.

    owner i                       computing parties                 DC
    word of its score  -------->  [o] = argmax, or a draw
    o_i                <--------
    if o_i = 1, pull; then the next step, and after the last one
    s_i                -------->  [sum of s_i]  ----------------->  sum

Words are integers: a score with 40 fraction bits, a weight of a draw with 30.  Owners are clients of the parties; a
host plays a block of neighbouring owners over one link, and its rows travel in one message.

Ties are broken by a dealt permutation that nobody knows.  In a step that explores, which follows from a seed that the
owners have in common, every owner shares the word 0: then the permutation alone decides, and the parties see a step
like any other.  Softmax is a race, the argmax of m / tau plus each owner's own Gumbel noise.
"""

from __future__ import annotations

from mpc import ops
from mpc.rounds import Input, Reveal, Rounds, labelled
from mpc.session import Session
from mpc.share import Share

from ...run.program import Arrays
from ..owners import Select
from .settings import COIN_BITS, WEIGHT_BITS, Settings

CUSTOMER = "DC"
TOTAL, BUYS = "cumulative reward", "it pays for the pulls"
PULLED, PULLS = "whether it is pulled", "it pulls its arm"
CHOSEN, MOVES = "whether its score is the largest", "its own probability moves"


def step(session: Session, settings: Settings) -> Rounds[None]:
    """One choice: each iteration takes words from all owners, and gives each its own bit.

    Needs: words as `Settings.score_bits` has them, which each owner checks.
    Cost:  as `select`; 2 hops for each host and iteration.
    Opens: as `argmax`, `argmax_tournament` and `draw`.  Reveals: to each owner its bits.
    """
    last = settings.local.iterations
    for iteration in range(1, last + 1):
        parts = yield tuple(Input(role, (len(block),)) for role, block in zip(settings.roles, settings.blocks))
        words = parts[0] if len(parts) == 1 else ops.concat(parts)
        o = yield from select(session, words, settings, iteration)
        what, why = (PULLED, PULLS) if iteration == last else (CHOSEN, MOVES)
        yield tuple(
            Reveal(o[block.start : block.stop], to=role, what=what, why=why)
            for role, block in zip(settings.roles, settings.blocks)
        )


def select(session: Session, words: Share, settings: Settings, iteration: int) -> Rounds[Share]:
    """[one-hot of the selected arm].  Cost: 4 rounds; 10 for an argmax of more than 64 arms; none for one arm."""
    if settings.local.selects[iteration - 1] is Select.DRAW:
        return (yield from ops.draw(session, words, weight_bits=WEIGHT_BITS, coin_bits=COIN_BITS))
    bits = settings.score_bits(iteration)
    if settings.tournament:
        return (yield from ops.argmax_tournament(session, words, score_bits=bits, group=settings.group))
    return (yield from ops.argmax(session, words, score_bits=bits))


def pay_out(settings: Settings) -> Rounds[None]:
    """Tell the customer what all pulls paid.  Cost: 1 hop for each host, and 1."""
    parts = yield tuple(Input(role, (len(block),)) for role, block in zip(settings.roles, settings.blocks))
    total = parts[0].sum()
    for part in parts[1:]:
        total = total + part.sum()
    yield Reveal(total, to=CUSTOMER, what=TOTAL, why=BUYS)


class Parties:
    """The computing parties' end.  They keep nothing between two steps: owners share anew each time.

    done: pulls that are over; the first K take no message.
    """

    def __init__(self, session: Session, settings: Settings, done: int = 0) -> None:
        self.session, self.settings = session, settings
        self.done = max(done, settings.arms)
        if session.trail is not None:  # parties with other settings find out in the first round
            session.trail.note("samba", settings.digest, self.done)

    def turn(self) -> None:
        """One choice."""
        self.session.run(labelled(self.session, "select", step(self.session, self.settings)))
        self.done += 1

    def finish(self) -> None:
        """Tell the customer."""
        self.session.run(labelled(self.session, "total", pay_out(self.settings)))

    def state(self) -> Arrays:
        """Nothing."""
        return {}

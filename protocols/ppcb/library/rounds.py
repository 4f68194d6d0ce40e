"""The rounds of the library's calls, and the clients that go with them.

              owners        computing parties          puller            payer
    predict   x_p  ----->   scores, argmax  [arm] ---> arm
    learn    (x_p) ----->   update of P, w  [o] <---- (one-hot of an arm)
                                            [r] <------------------------- r

In brackets: shared once more only for what was not predicted here, or where another arm was pulled.  A decision's own
context and one-hot stay with the parties as shares until its reward comes.

Who learns what: the puller each arm, and with `propensity` how many arms tied with it.  All parties learn what a call
is: how many contexts, which arms are eligible, which decisions are paid, and which of them were overridden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mpc import ops
from mpc.client import ClientProgram, Receive, Send
from mpc.rounds import Input, Open, Reveal, Rounds, together
from mpc.session import Session
from mpc.share import Share

from ..program import PAYER, PULLER, State, decide, learn
from ..refresh import refresh
from ..settings import Settings
from .arguments import places_of, rewards_of
from .propensity import ties_of_pulled

Act = Callable[[np.ndarray, "np.ndarray | None"], None]
"""Told the arms of a `Hear`, and with `propensity` the ties, both (contexts,)."""


@dataclass(frozen=True)
class Hear:
    """The puller's part in a `predict` of so many contexts; propensity: as the call's `reveal_propensity`."""

    contexts: int = 1
    propensity: bool = False


@dataclass(frozen=True)
class Say:
    """The puller's part in a `learn` whose actions the parties do not know: which arms it pulled, of all present."""

    actions: Sequence[int] = field(repr=False)
    arms: Sequence[int]


def puller_client(calls: Iterable[Hear | Say], act: Act) -> ClientProgram:
    """The puller beside the parties: a `Hear` for each `predict`, a `Say` for each `learn` of actions of its own.

    calls: in the parties' order; may be a generator that waits for the next.  For `mpc.client.serve`.
    """
    for call in calls:
        if isinstance(call, Hear):
            arms = yield Receive((1, call.contexts))
            ties = (yield Receive((1, call.contexts))) if call.propensity else None
            act(arms[0], None if ties is None else ties[0])
        else:
            places = places_of(call.actions, tuple(call.arms))
            yield Send((np.arange(len(call.arms)) == places[:, None]).astype(np.int64)[None])


def payer_client(
    rewards: Iterable[object], *, fraction_bits: int = 20, reward_range: tuple[float, float] = (0.0, 1.0)
) -> ClientProgram:
    """The payer beside the parties: the rewards of each `learn`, in the parties' order.  For `mpc.client.serve`.

    reward_range: as the parties' bandits have it.
    """
    for given in rewards:
        found = rewards_of(given, within=reward_range)
        yield Send(found[None], fraction_bits, bound=max(map(abs, reward_range)))


def choose(
    session: Session,
    state: State,
    x: Share,
    settings: Settings,
    *,
    arms: np.ndarray,
    eligible: np.ndarray | None = None,
    propensity: bool = False,
) -> Rounds[Share]:
    """[one-hot of the chosen arm] of each context, told to the puller.

    arms: the number by which the puller knows each row.  eligible: rows that may be chosen.
    propensity: with settings of the `last_bit`, which tell scores apart as `ties_of_pulled` does.
    Cost:  as `decide`, and a hop to the puller; with propensity 6 rounds more.
    """
    deciding = decide(session, state, x, settings, eligible=eligible)
    if not propensity:
        o = (yield from deciding).o
        yield _tell(o, arms)
        return o
    (o, _, _), raw = yield from together(deciding, _raw_scores(session, state, x, settings))
    competing = slice(None) if eligible is None else eligible
    ties = yield from ties_of_pulled(session, raw[..., competing], o[..., competing], settings.score_bits)
    told = Reveal(
        ties, to=PULLER, what="whether the arm was the best, and with how many tied",
        why="its propensity was asked for, which ends its differential privacy",
    )  # fmt: skip
    yield _tell(o, arms), told
    return o


def learn_from(
    session: Session, state: State, x: Share, o: Share, settings: Settings, *, said: np.ndarray, refreshed: bool
) -> Rounds[None]:
    """Update the regressions from the rewards of the contexts x.

    said: (contexts,) whose one-hot comes from the puller; that of the others is o's.
    refreshed: afterwards bring the regressions back to the exact sums.
    Cost:  as `learn`; a hop from the puller where anything is said; 9 rounds more to refresh.
    """
    if said.any():
        given = yield Input(PULLER, (1, int(said.sum()), settings.arms), 0)
        o = ops.replaced(o, said, given)
    yield from learn(session, state, x, o, _paid(settings), settings)
    if refreshed:
        yield from refresh(session, state, settings)


def said_by_all(text: bytes) -> Rounds[list[bytes]]:
    """What each party says, in their order; spaces behind it make all as long as the longest.

    Cost:  2 rounds; 8 bytes and the longest text to each peer.
    Opens: the texts, which hold what all parties may know.
    """
    lengths = yield Open(np.array([[len(text)]], np.uint64), apart=True)
    row = np.frombuffer(text.ljust(int(lengths.max())), np.uint8)[None]
    return [each.tobytes() for each in (yield Open(row, bits=8, apart=True))]


def _tell(o: Share, arms: np.ndarray) -> Reveal:
    return Reveal((o * arms).sum(axis=-1), to=PULLER, what="arm", why="it is pulled")


def _raw_scores(session: Session, state: State, x: Share, settings: Settings) -> Rounds[Share]:
    """[w_a . x] to the last bit as `decide` compares it: a product without a truncation has no coins."""
    return (yield from ops.einsum(session, "raj,rbj->rba", state.table[..., settings.dim, :], x))


def _paid(settings: Settings) -> Rounds[Share]:
    return (yield Input(PAYER, (settings.replicas, settings.batch), settings.fraction_bits))

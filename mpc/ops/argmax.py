"""The position of the largest score as a one-hot vector, ties broken uniformly and exploration folded in.

The last axis holds the arms; axes before it are a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..correlations import ChoiceNoise, Permutation
from ..curves import indicator
from ..errors import RangeError
from ..ring import word
from ..rounds import Rounds
from ..session import Session
from ..share import Share
from .arrange import concat
from .lookup import lookup
from .products import einsum, product
from .sign import Compare, is_negative


@dataclass(frozen=True)
class Keys:
    """How scores become keys: score + order 2^(blur - tie), and 2^high for a uniform arm with probability eps.

    The order is a permutation of 0..A - 1, below 2^tie.  With blur 0 it lies below the score's last bit, so it decides
    between equal scores only.  Else it reaches into the score: it alone decides between scores that differ by less
    than 2^(blur - tie), and no score loses to one that is lower by 2^blur or more.

    score_bits: |score| + 2^blur <= 2^(score_bits - 1) as a word, 2^blur left out where blur is 0.
    """

    arms: int
    score_bits: int
    eps: float = 0.0
    blur: int = 0

    def __post_init__(self) -> None:
        if self.arms < 1:
            raise RangeError("an argmax needs at least one arm")
        if self.arms > 1 << 16:
            raise RangeError(f"an argmax takes at most {1 << 16} arms, not {self.arms}: choose among groups first")
        if not 0.0 <= self.eps <= 1.0:
            raise RangeError(f"eps is a probability in [0, 1], not {self.eps:g}")
        if not 0 <= self.blur < self.score_bits:
            raise RangeError(f"an order reaches into 0 to {self.score_bits - 1} bits of a score, not {self.blur}")
        if self.width > 64:
            raise RangeError(
                f"{self.score_bits}-bit scores of {self.arms} arms need {self.width} bits of 64: "
                "use fewer fraction bits for the scores, or state a smaller bound"
            )

    @property
    def tie(self) -> int:
        """Bits of the order."""
        return max(1, (self.arms - 1).bit_length())

    @property
    def shift(self) -> int:
        """How far a score moves up, for the order's bits that lie below it."""
        return max(0, self.tie - self.blur)

    @property
    def place(self) -> int:
        """How far the order moves up, where all of it lies within the score."""
        return max(0, self.blur - self.tie)

    @property
    def high(self) -> int:
        """Place of the bit that lifts an explored arm: no difference of keys reaches it."""
        return self.score_bits + self.shift

    @property
    def width(self) -> int:
        """Bits of a difference of two keys, sign included."""
        return self.high + (2 if self.eps > 0 else 1)


def unique_keys(session: Session, scores: Share, keys: Keys) -> Share:
    """Scores told apart by dealt secret noise; local.  With probability eps a uniform arm is above all others."""
    (noise,) = session.draw(ChoiceNoise(scores.shape, keys.eps, keys.high - keys.place))
    return Share(session, (scores.wide() << np.uint64(keys.shift)) + (noise << np.uint64(keys.place)), 0)


def argmax(
    session: Session,
    scores: Share,
    *,
    score_bits: int = 44,
    eps: float = 0.0,
    blur: int = 0,
    how: Compare = Compare.TABLES,
) -> Rounds[Share]:
    """[one-hot of the largest score], all pairs at once: 4 rounds for any number of arms and parties.

        key_i  = score_i 2^b + order_i                unique, ties broken uniformly: a fixed rule would leak
        wins_i = sum_j [key_j < key_i]                all A (A - 1) / 2 comparisons in the same 3 rounds, mod 2^8
        o_i    = [wins_i = A - 1]                     one look-up

    With eps > 0 the dealt noise also lifts a uniform arm by y 2^high, y ~ Bernoulli(eps): when y = 1 that arm has the
    largest key whatever the scores.  No party can tell the two cases apart, and it costs nothing.

    With blur > 0 the order reaches into the scores (`Keys`), whose last bits may be rounding: scores that differ by
    less than 2^(blur - b) are told apart by the order alone, and comparisons are narrower by min(b, blur) bits.

    From:  docs/protocol-book.md, Argmax.
    Needs: |score| < 2^(score_bits - 1) as a word, with blur 2^blur less; score_bits + max(0, b - blur) + 1 <= 64 (with
           eps: + 2), b the bits of an arm's number.
    Cost:  4 rounds by tables, 3 by strings; A (A - 1) / 2 comparisons and A look-ups of ceil(log2 A) bits.
    Opens: as comparison and look-up.
    """
    arms = _arms(scores)
    keys = Keys(arms, score_bits, eps, blur)
    return (yield from _all_pairs(session, unique_keys(session, scores, keys), keys.width, how))


def argmax_tournament(
    session: Session,
    scores: Share,
    *,
    score_bits: int = 44,
    eps: float = 0.0,
    blur: int = 0,
    group: int | None = None,
    how: Compare = Compare.TABLES,
) -> Rounds[Share]:
    """[one-hot of the largest score] in two levels: the winners of groups of about sqrt(A) meet.

        o' = argmax within each group (4 rounds);  top_g = sum_i o'_gi key_gi (1);  o'' = argmax over groups (4);
        o_gi = o''_g o'_gi (1)

    From:  docs/protocol-book.md, Argmax.
    Needs: as `argmax`.
    Cost:  10 rounds; about A^1.5 comparisons instead of A^2 / 2.
    Opens: as comparison, look-up and product.
    """
    arms = _arms(scores)
    keys = Keys(arms, score_bits, eps, blur)
    size = group or max(2, math.isqrt(arms - 1) + 1)
    if not size >= 1:
        raise RangeError(f"a group has at least one arm, not {size}")
    groups = -(-arms // size)
    key = unique_keys(session, scores, keys)
    padding = groups * size - arms
    if padding:
        low = np.full((*scores.shape[:-1], padding), word(-(1 << (keys.high - 1))), np.uint64)
        key = concat([key, Share(session, session.public(low), 0)], axis=-1)
    grid = key.reshape(*key.shape[:-1], groups, size)
    within = yield from _all_pairs(session, grid, keys.width, how)
    tops = (yield from product(session, within, grid)).sum(axis=-1)
    among = yield from _all_pairs(session, tops, keys.width, how)
    chosen = yield from product(session, among.reshape(*among.shape, 1), within)
    return chosen.reshape(*key.shape[:-1], groups * size)[..., :arms]


def argmax_published(
    session: Session, scores: Share, *, score_bits: int = 44, how: Compare = Compare.CIRCUIT
) -> Rounds[Share]:
    """[one-hot of the largest score] by Algorithm 2 of Hannun et al., as the reference.

        m_i = prod_j [score_i >= score_j]      by a product tree; several ones on a tie
        o   = the same of m_i permutation_i    the second pass breaks the tie uniformly

    From:  Hannun et al., "Privacy-preserving contextual bandits", Algorithm 2; docs/protocol-book.md, Argmax.
    Needs: |score| < 2^(score_bits - 1) as a word, score_bits <= 63.
    Cost:  2 (comparison + ceil(log2(A - 1))) + 1 rounds; A (A - 1) comparisons of score_bits + 1 bits and as many of
           about log2 A + 3; A (2 A - 3) products.
    Opens: as comparison and product.
    """
    arms = _arms(scores)
    maxima = yield from _all_at_least(session, scores.integers(), score_bits + 1, how)
    (order,) = session.draw(Permutation(scores.shape))
    ranked = yield from product(session, maxima, Share(session, order, 0))
    return (yield from _all_at_least(session, ranked, (arms + 1).bit_length() + 2, how))


def max_value(session: Session, scores: Share, onehot: Share) -> Rounds[Share]:
    """[sum_i o_i score_i].  Cost: 1 round.  Needs, Opens: as `bilinear`."""
    batch = "abcdefgh"[: scores.ndim - 1]
    return (yield from einsum(session, f"{batch}z,{batch}z->{batch}", onehot, scores))


def _arms(scores: Share) -> int:
    if scores.ndim < 1:
        raise TypeError("an argmax runs over the last axis: these scores have none")
    return scores.shape[-1]


def _all_pairs(session: Session, keys: Share, width: int, how: Compare) -> Rounds[Share]:
    """One-hot of the largest of unique keys.  Keys that are no maximum need not be unique."""
    arms = keys.shape[-1]
    if arms == 1:
        return Share(session, session.public(np.ones(keys.shape, np.uint64)), 0)
    i, j = _pairs(arms)
    bits = max(1, (arms - 1).bit_length())
    ring = 8 if bits <= 8 else 16  # the look-up takes a rank mod 2^bits
    lost = yield from is_negative(session, keys[..., i] - keys[..., j], width=width, ring=ring, how=how)
    wins = session.plus(_wins(lost.words, arms), np.arange(arms - 1, -1, -1).astype(lost.words.dtype))
    return (yield from lookup(session, Share(session, wins, 0), indicator(arms - 1, bits)))


def _wins(lost: np.ndarray, arms: int) -> np.ndarray:
    """Of each arm, how many before it are behind it, less how many after it are ahead.  lost: key_i < key_j, i < j."""
    i_starts, by_j, j_starts = _runs(arms)
    wins = np.zeros((*lost.shape[:-1], arms), lost.dtype)
    wins[..., 1:] = np.add.reduceat(lost.take(by_j, axis=-1), j_starts, axis=-1, dtype=lost.dtype)
    wins[..., :-1] -= np.add.reduceat(lost, i_starts, axis=-1, dtype=lost.dtype)
    return wins


@lru_cache(maxsize=64)
def _runs(arms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the pairs of each i begin, the pairs in the order of their j, and where those of each j begin there."""
    i, j = _pairs(arms)
    by_j = np.argsort(j, kind="stable")
    return np.searchsorted(i, np.arange(arms - 1)), by_j, np.searchsorted(j[by_j], np.arange(1, arms))


@lru_cache(maxsize=64)
def _pairs(arms: int) -> tuple[np.ndarray, np.ndarray]:
    """All i < j."""
    return np.triu_indices(arms, k=1)


def _all_at_least(session: Session, scores: Share, width: int, how: Compare) -> Rounds[Share]:
    """prod_j [s_i >= s_j] for every i, by a product tree."""
    arms = scores.shape[-1]
    if arms == 1:
        return Share(session, session.public(np.ones(scores.shape, np.uint64)), 0)
    i, j = np.nonzero(~np.eye(arms, dtype=bool))
    smaller = yield from is_negative(session, scores[..., i] - scores[..., j], width=width, how=how)
    factors = (1 - smaller).reshape(*scores.shape[:-1], arms, arms - 1)
    while factors.shape[-1] > 1:
        half = factors.shape[-1] // 2
        both = yield from product(session, factors[..., :half], factors[..., half : 2 * half])
        factors = concat([both, factors[..., 2 * half :]], axis=-1)
    return factors[..., 0]

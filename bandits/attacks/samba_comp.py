"""Comp of the published SAMBA, who is to see masked and permuted scores only, finds pulls and rewards.  numpy only.

A list is alpha v_i in a secret order, with a fresh alpha and a fresh order each time.  The mask is common to the list,
so its ratios are those of the scores, and scores are functions of (s_i, n_i):

    ucb                      s / n + sqrt(2 ln t / n)
    epsilon-greedy, -decr.   s / n                       no list: the step explores, some arm is pulled
    softmax                  e^(s / (n tau))
    pursuit                  s / n, then p               sum p = 1: the sum of the list is the mask

From one list to the next one arm's n grew by 1 and its s by 0 or 1, and Comp itself said which place in the list is
pulled.  All (s_i, n_i) that fit the lists so far are kept with their probabilities, arms with uniform means and without
names, since orders hide those; the next list sorts out almost all of them.  What is left in the end is the answer.

Thompson's scores are draws, no functions of (s, n), and are not attacked here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..samba import BernoulliArms, SambaError, SeededCoins, Seeds, by_name, check_budget, run
from ..samba.coins import PointCoins
from ..samba.words import SCORE_BITS, check_tau, drawn

ATTACKED = ("epsilon-greedy", "epsilon-decreasing", "ucb", "softmax", "pursuit")
_CLOSE = 1e-10  # relative, of what float64 computes and of softmax's words
_FIELD = 1 << 20  # n and s in a code
ROOM = 200_000  # arms


class Look(NamedTuple):
    """A decrypted list of step t, and the position in it that Comp answered."""

    t: int
    iteration: int
    values: Sequence[int] | Sequence[float]
    chosen: int


@dataclass(frozen=True)
class Recovery:
    """pairs: (K, 2), every (s, n) as the last list shows them, in ascending order.  before: the sum of these s.

    total: the cumulative reward after all pulls, of which those since the last list are guessed.
    certain: the probability of `pairs`.
    """

    pairs: np.ndarray
    before: int
    total: int
    certain: float


class Score(NamedTuple):
    """Which parts of a recovery are true."""

    pairs: bool
    before: bool
    total_error: int


def recover(
    looks: Sequence[Look], policy: str, *, arms: int, budget: int, tau: float = 0.06, beta: float = 0.1,
    weight_bits: int = SCORE_BITS, room: int = ROOM,
) -> Recovery | None:  # fmt: skip
    """From all that Comp decrypts in a game of `budget` pulls; None if nothing fits the lists.

    weight_bits: fraction bits of pursuit's p.  room: arms of all games that are kept, the likeliest ones.
    """
    check_budget(budget, arms)
    if budget >= _FIELD:
        raise SambaError(f"{budget:,} pulls: the attack counts up to {_FIELD - 1:,}, play fewer")
    seen = {(look.t, look.iteration): look for look in looks}
    rules = _rules(policy, tau, weight_bits)
    games = shown = _Games.first(arms)
    most = max(1, room // arms)
    for t in range(arms + 1, budget + 1):
        if (t, 1) not in seen:  # it explores
            games = games.after(np.full(games.sums.shape, 1.0 / arms), most)
            continue
        for iteration, rule in enumerate(rules, 1):
            if (look := seen.get((t, iteration))) is None or len(look.values) != arms:
                raise SambaError(f"step {t} lacks a list of {arms} scores in iteration {iteration}: give all lists")
            shown = games = games.fitting(rule, look)
            chances = games.chosen(rule, look)
            games = games.after(chances, most) if iteration == len(rules) else games.pursuing(chances, beta, most)
        if not games.weights.size:
            return None
    best = int(shown.weights.argmax())
    pairs = np.column_stack([shown.sums[best], shown.pulls[best]])
    return Recovery(pairs[np.lexsort(pairs.T[::-1])], _likeliest(shown), _likeliest(games), float(shown.weights[best]))


def as_answered(
    lists: Iterable[tuple[int, int, Sequence[int] | Sequence[float]]], policy: str, points: PointCoins
) -> list[Look]:
    """Lists (t, iteration, values) with Comp's answers: the first of the largest, or what its own coins draw."""
    looks = []
    for t, iteration, values in lists:
        if policy == "softmax" or (policy == "pursuit" and iteration == 2):
            chosen = drawn([int(value) for value in values], np.arange(len(values)), *points.point(t))
        else:
            chosen = int(np.argmax(values))
        looks.append(Look(t, iteration, values, chosen))
    return looks


def score(found: Recovery, sums: np.ndarray, pulls: np.ndarray, total: int) -> Score:
    """Against the true (s, n) at the last list and the true cumulative reward, whatever the arms are called."""
    pairs = np.column_stack([sums, pulls])
    same = bool((pairs[np.lexsort(pairs.T[::-1])] == found.pairs).all())
    return Score(same, found.before == int(sums.sum()), abs(found.total - total))


def blind_total(
    policy: str, *, arms: int, budget: int, eps: float = 0.1, tau: float = 0.06, beta: float = 0.1, games: int = 50,
    seed: int = 0,
) -> int:  # fmt: skip
    """The best guess of a cumulative reward for who sees nothing: the median over games with uniform means."""
    totals = []
    for number in range(games):
        seeds = Seeds.of(seed << 32 | number)
        means = BernoulliArms(np.random.default_rng([seed, number]).random(arms))
        player = by_name(policy, arms, eps=eps, tau=tau, beta=beta)
        totals.append(run(player, means, budget, SeededCoins(seeds, arms), seeds.rewards).total)
    return int(np.median(totals))


def pursuit_mask(values: Sequence[int], bits: int = SCORE_BITS) -> int | None:
    """alpha of a list of pursuit's second iteration: its sum over that of p, which is 1 but for rounding."""
    total, one = sum(values), 1 << bits
    for rounding in sorted(range(-len(values), len(values) + 1), key=abs):
        mask, rest = divmod(total, one + rounding)
        if mask and not rest and all(value % mask == 0 for value in values):
            return mask
    return None


class _Rule(NamedTuple):
    """What a list holds: scores from games and step.  rounding: of a word, absolute."""

    scores: Callable[[_Games, int], np.ndarray]
    rounding: float

    def ratios(self, games: _Games, t: int) -> tuple[np.ndarray, np.ndarray]:
        """(B, K) scores over their largest, zeros stay; (B, 1) by how much rounding may shift such a ratio."""
        scores = self.scores(games, t)
        largest = scores.max(axis=1, keepdims=True, initial=0.0)
        largest = np.where(largest > 0, largest, 1.0)
        return scores / largest, 2.0 * self.rounding / largest


@dataclass(frozen=True)
class _Games:
    """What may have happened, a row each: (B, K) sums, pulls and pursuit's chances; (B,) weights, together 1."""

    sums: np.ndarray
    pulls: np.ndarray
    chances: np.ndarray
    weights: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """(B, K)."""
        return self.sums / self.pulls

    @classmethod
    def first(cls, arms: int) -> _Games:
        """Each arm pulled once; 0 to K of them paid, each with a chance of a half, since its mean is uniform."""
        paid = np.arange(arms + 1)
        sums = (np.arange(arms) < paid[:, None]).astype(np.int64)
        weights = np.array([math.comb(arms, count) / 2**arms for count in range(arms + 1)])
        return cls(sums, np.ones_like(sums), np.full(sums.shape, 1.0 / arms), weights)

    def fitting(self, rule: _Rule, look: Look) -> _Games:
        """Those whose scores have the ratios of a list."""
        ratios, rounding = rule.ratios(self, look.t)
        ours, theirs = np.sort(ratios, axis=1), np.sort(_list_ratios(look))
        rows = np.nonzero((np.abs(ours - theirs) <= _CLOSE * ours + rounding).all(axis=1))[0]
        return self._rows(rows, self.weights[rows])

    def chosen(self, rule: _Rule, look: Look) -> np.ndarray:
        """(B, K) how likely each arm is the one at the place that Comp answered: those with the score there."""
        ratios, rounding = rule.ratios(self, look.t)
        same = np.abs(ratios - _list_ratios(look)[look.chosen]) <= _CLOSE * ratios + rounding
        return np.asarray(same / np.maximum(same.sum(axis=1, keepdims=True), 1))

    def after(self, chances: np.ndarray, most: int) -> _Games:
        """One pull later, of an arm with these chances; it pays with chance (s + 1) / (n + 2)."""
        unpaid, here = self._branched(chances)
        pays = (unpaid.sums[here] + 1) / (unpaid.pulls[here] + 2)
        unpaid.pulls[here] += 1
        paid = replace(unpaid, sums=unpaid.sums.copy(), weights=unpaid.weights * pays)
        paid.sums[here] += 1
        return _joined(paid, replace(unpaid, weights=unpaid.weights * (1.0 - pays))).merged(most)

    def pursuing(self, chances: np.ndarray, beta: float, most: int) -> _Games:
        """With p moved towards the arm of the largest mean, which is each with these chances."""
        games, here = self._branched(chances)
        target = np.zeros(games.chances.shape)
        target[here] = 1.0
        return replace(games, chances=games.chances + beta * (target - games.chances)).merged(most)

    def merged(self, most: int) -> _Games:
        """Rows that differ in the order of arms only become one; the likeliest are kept."""
        _, first, which = np.unique(self._codes().sum(axis=1), return_index=True, return_inverse=True)
        weights = np.bincount(which, self.weights, minlength=len(first))
        likeliest = np.argsort(-weights, kind="stable")[:most]
        return self._rows(first[likeliest], weights[likeliest])

    def _branched(self, chances: np.ndarray) -> tuple[_Games, tuple[np.ndarray, np.ndarray]]:
        """A row for each arm that it may be, and where that arm is; of arms in the same state one stands for all."""
        row, arm = np.nonzero(chances)
        codes = _mixed(self._codes()[row, arm] ^ _mixed(row.astype(np.uint64)))
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        together = np.bincount(which, chances[row, arm], minlength=len(first))
        row, arm = row[first], arm[first]
        return self._rows(row, self.weights[row] * together), (np.arange(len(row)), arm)

    def _codes(self) -> np.ndarray:
        """(B, K), a random-looking number for each state of an arm."""
        chances = np.rint(self.chances * 2.0**SCORE_BITS).astype(np.uint64)
        return _mixed((self.pulls * _FIELD + self.sums).astype(np.uint64) ^ _mixed(chances))

    def _rows(self, rows: np.ndarray, weights: np.ndarray) -> _Games:
        weights = weights / weights.sum() if weights.size else weights
        return _Games(self.sums[rows], self.pulls[rows], self.chances[rows], weights)


def _joined(one: _Games, other: _Games) -> _Games:
    both = zip((one.sums, one.pulls, one.chances, one.weights), (other.sums, other.pulls, other.chances, other.weights))
    return _Games(*(np.concatenate(pair) for pair in both))


def _likeliest(games: _Games) -> int:
    """The likeliest cumulative reward."""
    return int(np.bincount(games.sums.sum(axis=1), games.weights).argmax())


def _mixed(codes: np.ndarray) -> np.ndarray:
    """A permutation of 64-bit words that looks random: MurmurHash3's last step."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        codes = (codes ^ (codes >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(codes ^ (codes >> np.uint64(33)))


def _list_ratios(look: Look) -> np.ndarray:
    """A list over its largest, exact before it is rounded, since masked scores outgrow float64."""
    largest = max(look.values)
    return np.array([value / largest for value in look.values]) if largest > 0 else np.zeros(len(look.values))


def _rules(policy: str, tau: float, weight_bits: int) -> list[_Rule]:
    """One for each iteration."""
    rounding = 2.0**-SCORE_BITS
    match policy:
        case "ucb":
            return [_Rule(lambda games, t: games.means + np.sqrt(2.0 * math.log(t) / games.pulls), rounding)]
        case "epsilon-greedy" | "epsilon-decreasing":
            return [_Rule(lambda games, t: games.means, rounding)]
        case "pursuit":
            means, chances = (
                _Rule(lambda games, t: games.means, rounding),
                _Rule(lambda games, t: games.chances, 2.0**-weight_bits),
            )
            return [means, chances]
        case "softmax":
            check_tau(tau)
            return [_Rule(lambda games, t: np.exp((games.means - 1.0) / tau), 0.0)]
    raise SambaError(f"no attack on {policy!r}: choose one of {', '.join(ATTACKED)}")

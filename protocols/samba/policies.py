"""The policies as owners play them: a score from one owner's n, s, noise and the step.  Knows nobody else's.

A new one is a class here and a case in `local_policy`; its plaintext twin is a file in `bandits/samba` and a name in
`bandits/samba/named.py`.  A policy that is only tried out needs neither: docs/samba.md.

    epsilon-greedy, epsilon-decreasing   s/n                        largest; explores with probability eps, 1 / ln t
    ucb                                  s/n + sqrt(2 ln t / n)     largest
    thompson                             Beta(s + 1, n - s + 1)     largest
    softmax                              e^((s/n - 1) / tau)        draw
    softmax as a race                    (s/n) / tau + Gumbel       largest
    pursuit                              s/n, then p                largest, then draw

Pursuit's owner moves its own p by its own bit: p += beta (bit - p).  A softmax weight is the published one,
e^(m / tau), up to the factor e^(-1 / tau) that all arms have: so it is an integer of a width that tau fixes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bandits.samba.named import NAMES
from mpc.errors import ConfigError

from .owners import SCORE_BITS, Holdings, LocalPolicy, Select

LEAST_TAU, LARGEST_TAU = 1e-3, 1e6
_LOG2_E = math.log2(math.e)
_SIGNIFICANT = 52
_MEANS_KEPT = 1 << 16
_LEAST_GUMBEL, _LARGEST_GUMBEL = -4, 37  # of 53 random bits: -ln(53 ln 2) > -4, 53 ln 2 < 37


class EpsilonGreedy(LocalPolicy):
    """Explores with a fixed probability."""

    name = "epsilon-greedy"

    def __init__(self, eps: float = 0.1) -> None:
        self._eps = _probability(eps, "eps")

    def explores(self, t: int) -> float:
        """How likely step t explores."""
        return self._eps

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """The mean."""
        return mine.means

    def largest(self, budget: int, iteration: int) -> float:
        """Of a mean."""
        return 1.0


class EpsilonDecreasing(EpsilonGreedy):
    """Explores less and less."""

    name = "epsilon-decreasing"

    def __init__(self) -> None:
        super().__init__()

    def explores(self, t: int) -> float:
        """min(1, 1 / ln t)."""
        return 1.0 if t < 3 else 1.0 / math.log(t)


class UCB(LocalPolicy):
    """The upper confidence bound."""

    name = "ucb"

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """s/n + sqrt(2 ln t / n)."""
        return np.asarray(mine.sums / mine.pulls + np.sqrt(2.0 * math.log(t) / mine.pulls))

    def largest(self, budget: int, iteration: int) -> float:
        """At n = 1 and t = N."""
        return 1.0 + math.sqrt(2.0 * math.log(max(2, budget)))


class Thompson(LocalPolicy):
    """A draw from the posterior of a uniform prior."""

    name = "thompson"

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """Each from its owner's own noise."""
        successes, failures = (mine.sums + 1).tolist(), (mine.pulls - mine.sums + 1).tolist()
        return np.array([own.beta(a, b) for own, a, b in zip(mine.noise, successes, failures)])

    def largest(self, budget: int, iteration: int) -> float:
        """Of a probability."""
        return 1.0


class Softmax(LocalPolicy):
    """A weight that grows with m / tau, and a draw in proportion."""

    name = "softmax"
    selects = (Select.DRAW,)

    def __init__(self, tau: float = 0.06) -> None:
        self._tau = _temperature(tau)
        self._fraction = math.ceil(_LOG2_E / tau) + SCORE_BITS  # 40 significant bits where the mean is 0
        self._weight = lru_cache(_MEANS_KEPT)(self._weight_of)

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """Weights as floats, which lose the small ones; the words do not."""
        return np.exp((mine.means - 1.0) / self._tau)

    def words(self, mine: Holdings, t: int, iteration: int, bits: int = SCORE_BITS) -> np.ndarray:
        """floor(e^((m - 1) / tau) 2^fraction), Python integers of a fraction that tau alone decides."""
        out = np.empty(len(mine.numbers), object)
        out[:] = [self._weight(s, n) for s, n in zip(mine.sums.tolist(), mine.pulls.tolist())]
        return out

    def word_bits(self, budget: int, iteration: int, bits: int = SCORE_BITS) -> int:
        """Of a mean of 1."""
        return self._fraction + 1

    def largest(self, budget: int, iteration: int) -> float:
        """At a mean of 1."""
        return 1.0

    def _weight_of(self, s: int, n: int) -> int:
        """2^x as 2^(x - floor x) 2^floor x, which neither overflows nor vanishes.  Error: relative, below 2^-38."""
        x = (s / n - 1.0) / self._tau * _LOG2_E
        whole = math.floor(x)
        shift = self._fraction + whole - _SIGNIFICANT
        significant = math.floor(2.0 ** (x - whole) * 2.0**_SIGNIFICANT)
        return significant << shift if shift >= 0 else significant >> -shift


class SoftmaxRace(LocalPolicy):
    """The same distribution as the largest of m / tau plus an owner's own Gumbel noise (Gumbel 1954)."""

    name = "softmax"
    lift = -_LEAST_GUMBEL

    def __init__(self, tau: float = 0.06) -> None:
        self._tau = _temperature(tau)

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """m / tau + G."""
        return mine.means / self._tau + np.array([own.gumbel() for own in mine.noise])

    def largest(self, budget: int, iteration: int) -> float:
        """At a mean of 1."""
        return 1.0 / self._tau + _LARGEST_GUMBEL


class Pursuit(LocalPolicy):
    """Probabilities that run after the arm of the largest mean."""

    name = "pursuit"
    selects = (Select.LARGEST, Select.DRAW)

    def __init__(self, beta: float = 0.1) -> None:
        self._beta = _probability(beta, "beta")

    def begin(self, mine: Holdings) -> None:
        """p = 1 / K."""
        mine.own["chance"] = np.full(len(mine.numbers), 1.0 / mine.arms)

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """m, then p."""
        return mine.means if iteration == 1 else mine.own["chance"]

    def told(self, mine: Holdings, bits: np.ndarray, t: int, iteration: int) -> None:
        """p += beta (bit - p)."""
        if iteration == 1:
            mine.own["chance"] += self._beta * (bits - mine.own["chance"])

    def largest(self, budget: int, iteration: int) -> float:
        """Of a mean, and of a probability that rounding may take past 1."""
        return 1.0 if iteration == 1 else 1.0 + 1e-9


class ReinforcementComparison(LocalPolicy):
    """Preferences pi with p_i proportional to e^pi_i and, when arm j pays r, pi_j += beta (r - reference).

    It shows what cannot be played: the reference is the running mean of all rewards, whoever's arm paid them.
    """

    name = "reinforcement comparison"
    selects = (Select.DRAW,)
    shared = "the common reference reward, the mean of what all arms paid, in an owner's update of its preference"

    def __init__(self, beta: float = 0.1) -> None:
        self._beta = _probability(beta, "beta")

    def begin(self, mine: Holdings) -> None:
        """No preferences yet."""
        mine.own["preference"] = np.zeros(len(mine.numbers))

    def paid(self, mine: Holdings, row: int, reward: int) -> None:
        """The line that reads other rows."""
        reference = mine.sums.sum() / mine.pulls.sum()
        mine.own["preference"][row] += self._beta * (reward - reference)

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """e^pi."""
        return np.exp(mine.own["preference"])

    def largest(self, budget: int, iteration: int) -> float:
        """One pull adds at most beta."""
        return math.exp(self._beta * budget)


class Parity(LocalPolicy):
    """Odd arms at odd steps and even ones at even steps, of them those of means in [0.5, 1], then the largest mean.

    The paper's invented example of what Comp cannot select: a secret order hides which arm is odd, a mask which mean is
    at least 0.5.
    """

    name = "parity"
    placed = "the numbers of the arms, and their means without a mask"

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """The mean."""
        return mine.means

    def largest(self, budget: int, iteration: int) -> float:
        """Of a mean."""
        return 1.0


def local_policy(
    name: str, *, eps: float = 0.1, tau: float = 0.06, beta: float = 0.1, race: bool = False, zeros: bool = False
) -> LocalPolicy:
    """The owners' side of the policy called `name`; each parameter counts for the policy that has it."""
    policy = _named(name, eps, tau, beta, race)
    policy.zeros = zeros
    return policy


def _named(name: str, eps: float, tau: float, beta: float, race: bool) -> LocalPolicy:
    match name:
        case "epsilon-greedy":
            return EpsilonGreedy(eps)
        case "epsilon-decreasing":
            return EpsilonDecreasing()
        case "ucb":
            return UCB()
        case "thompson":
            return Thompson()
        case "softmax":
            return SoftmaxRace(tau) if race else Softmax(tau)
        case "pursuit":
            return Pursuit(beta)
        case "reinforcement-comparison":
            return ReinforcementComparison(beta)
        case "parity":
            return Parity()
    raise ConfigError(f"there is no policy {name!r}: choose one of {', '.join(NAMES)}")


def _probability(value: float, name: str) -> float:
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{name} is a probability, {value:g} is not: choose one in [0, 1]")
    return value


def _temperature(tau: float) -> float:
    if not tau > 0.0:
        raise ConfigError(f"tau = {tau:g} gives no weights: choose a tau above 0, of at least {LEAST_TAU:g}")
    if not LEAST_TAU <= tau <= LARGEST_TAU:
        raise ConfigError(
            f"tau lies between {LEAST_TAU:g} and {LARGEST_TAU:g}, {tau:g} does not: choose one in between"
        )
    return tau

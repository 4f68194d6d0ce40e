"""HELBA with its polynomials, as a server under encryption evaluates them: products and sums alone, in float64.

    inverse   X_0 = I / c, M_0 = V / c;          X <- X (2 I - M),  M <- (2 I - M) M        c = lambda d + L^2 t
    root      q_0 = z / c2, v_0 = z / c2 - 1;    q <- q (1 - v / 2),  v <- v^2 (v - 3) / 4      sqrt(z) = q sqrt(c2)
    f(x)      x (3 - x^2) / 2, which drives x of [-1, 1] to its sign
    compare   [a > b] about (f(...f(a - b)) + 1) / 2       maximum  (a + b) / 2 + (a - b) / 2 f(...f(a - b))
    b_a       compare(index_a, maximum of all), of indices brought to [0, 1]; the largest b is pulled

As mended, each iteration runs as often as its bound asks.  As printed (`printed=True`) the text's own counts, width,
range of the indices and order of a batch's end are taken: the step that ends a batch is missing from V and tau of the
next one.  What cannot run as printed is mended in both: the maximum, the first arm's b, and the precision of the test.
"""

from __future__ import annotations

import math

import numpy as np

from .constants import Constants
from .policies import HELBA

_ALPHA = 1.5 + 5.2 * math.log(1.5) / math.log(4.0) + math.log(1.5) / (2.0 * math.log(2.0))
_ENDED = 0.45  # of the test's result


class Approximate(HELBA):
    """printed: with the text's formulas where they differ from what its proofs need.

    tested: what the last step's test came to, which a user is shown masked; 0 where there was none.
    """

    def __init__(self, constants: Constants, *, printed: bool = False) -> None:
        super().__init__(constants)
        self.printed, self.tested = printed, 0.0
        self._last: tuple[np.ndarray, np.ndarray] = self.gram.copy(), self.sums.copy()  # before step t

    def beta(self) -> float:
        """As Algorithm 4 prints it, or as Proposition 9."""
        given = self.constants
        if not self.printed:
            return given.beta(self.t)
        grown = 1.0 + given.norm**2 * self.start / given.ridge
        logs = math.log(grown * math.pi**2 * self.t**2 / (6.0 * given.delta))
        return given.noise * math.sqrt(given.dim * logs) + self.start**-0.5 + given.theta_norm * math.sqrt(given.ridge)

    def bonus(self, z: np.ndarray) -> np.ndarray:
        """beta(t) (sqrt(z + c) + 1 / t) by the iteration."""
        return np.asarray(self.beta() * (root(z + self.slack, *self._root_range(), self._root_count()) + 1.0 / self.t))

    def indices(self, x: np.ndarray) -> np.ndarray:
        """b of every arm, about 1/2 for the largest index and 0 for all that are far below."""
        scaled = (super().indices(x) + 1.0) / self.index_range()
        most, compare = self.counts(len(x))
        top = scaled[0]
        for other in scaled[1:]:
            top = maximum(top, other, most)
        return comparison(scaled, np.asarray(top), compare)

    def learn(self, x: np.ndarray, reward: float) -> bool:
        """As printed, a batch's end is decided before the step is learned from."""
        if not self.printed:
            return super().learn(x, reward)
        self._last = self.gram.copy(), self.sums.copy()
        ended = self.ends()
        self.gram += np.outer(x, x)
        self.sums += reward * x
        self.tau = 0.0 if ended else self.tau + float(x @ self.inverse @ x) * (self.t > self.start)
        if ended:
            self.freeze(self.t)
        self.t += 1
        return ended

    def ends(self) -> bool:
        """The test on polynomials, or time."""
        given = self.constants
        count = self.t - 1 - self.start if self.printed else self.t + 1 - self.start
        self.tested = self._test(given.norm**2 * (1 / given.ridge + given.ridge**-0.5) * count) if count > 0 else 0.0
        return self.tested >= _ENDED or given.grown(self.t - self.printed, self.start)

    def freeze(self, start: int) -> None:
        """The inverse by Newton's iteration."""
        gram, sums = self._last if self.printed else (self.gram, self.sums)
        given = self.constants
        bound = given.ridge * given.dim + given.norm**2 * start
        count = math.log2(math.log(given.ridge * given.eps(start)) / math.log1p(-given.ridge / bound))
        self.inverse = inverse(gram, bound, math.ceil(count))
        self.estimate = self.inverse @ sums
        self.start, self.updates = start, self.updates + 1
        self.tau = 0.0

    def _test(self, largest: float) -> float:
        """About [tau > C]."""
        wanted = 1.0 / (4.0 * self.t * largest)
        count = math.ceil(3.2 + math.log(1.0 / wanted) / math.log(1.5))
        a, b = np.array(self.tau / largest), np.array(self.constants.trace / largest)
        return float(comparison(a, b, count))

    def _root_range(self) -> tuple[float, float]:
        """c and the largest z."""
        given = self.constants
        return self.slack, self.slack + given.norm**2 * (1.0 / given.ridge + given.ridge**-0.5)

    def _root_count(self) -> int:
        low, high = self._root_range()
        factor = 4.0 if self.printed else 2.0
        count = math.log2(math.log(1.0 / (self.t * math.sqrt(high))) / (factor * math.log1p(-low / (4.0 * high))))
        return math.ceil(max(count, 0.0))

    def index_range(self) -> float:
        """How far two indices can be apart, outside of an event of probability delta."""
        given, t = self.constants, self.t
        inverse_root = 1.0 / given.ridge + given.ridge**-0.5
        if self.printed:
            slack = given.norm / (t**1.5 * math.sqrt(given.ridge + given.norm**2 * t))
            return 2.0 + 2.0 * self.beta() * (2.0 / t + slack + given.norm**2 * inverse_root)
        return 2.0 + 2.0 * self.beta() * (2.0 / t + given.norm * math.sqrt(inverse_root) + math.sqrt(self.slack))

    def counts(self, arms: int) -> tuple[int, int]:
        """Iterations of the maximum and of a comparison."""
        eps = 1.0 / (4.1 * self.t)
        bits = math.log2(1.0 / eps)
        compare = 1 + math.floor(3.2 + bits * math.log(2.0) / math.log(1.5) + math.log2(max(bits - 2.0, 1.0)))
        if self.printed:
            return math.ceil(math.log(max(_ALPHA * bits - 2.0, 1.5)) / math.log(1.5)), compare
        return math.ceil(math.log(0.136 * max(arms - 1, 1) * eps**-_ALPHA) / math.log(1.5)), compare


def inverse(gram: np.ndarray, bound: float, iterations: int) -> np.ndarray:
    """V^-1 from below, for eigenvalues up to `bound`."""
    identity = np.eye(len(gram))
    x, m = identity / bound, gram / bound
    for _ in range(iterations):
        step = 2.0 * identity - m
        x, m = x @ step, step @ m
    return np.asarray(x)


def root(z: np.ndarray, low: float, high: float, iterations: int) -> np.ndarray:
    """sqrt(z) on [low, high]; more iterations for a smaller low."""
    q, v = z / high, z / high - 1.0
    for _ in range(iterations):
        q, v = q * (1.0 - v / 2.0), v * v * (v - 3.0) / 4.0
    return np.asarray(q * math.sqrt(high))


def towards_sign(x: np.ndarray, iterations: int) -> np.ndarray:
    """f applied so often."""
    for _ in range(iterations):
        x = x * (3.0 - x * x) / 2.0
    return x


def comparison(a: np.ndarray, b: np.ndarray, iterations: int) -> np.ndarray:
    """About [a > b] for a and b in [0, 1]."""
    return np.asarray((towards_sign(a - b, iterations) + 1.0) / 2.0)


def maximum(a: float, b: float, iterations: int) -> float:
    """About the larger of a and b in [0, 1]."""
    return (a + b) / 2.0 + (a - b) / 2.0 * float(towards_sign(np.array(a - b), iterations))

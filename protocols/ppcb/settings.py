"""What all parties of a private contextual bandit agree on before a run, and which ranges follow.  Knows no message."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any

from mpc import ops
from mpc.curves import Reciprocal
from mpc.errors import RangeError
from mpc.ops import Lines
from mpc.ring import VALUE_BITS

_UNITS = 64.0  # of the last place, between the ends of what is learned from
_LARGEST = 2.0**60
_MOST_ARMS_PUBLISHED = 300
_PUBLISHED_RECIPROCAL = 256.0
_NEWTON_PUBLISHED = 7
_BATCH_SPREAD = 1024.0  # of a batch's eigenvalues, at 20 fraction bits: it makes a unit of 2^-24 one of 2^-14
_MOST_SPARE = 9  # bits of the reciprocal's lines that may be left out: it is off by 2^(spare / 2) units of x then
_CURE = "declare a smaller bound or a larger ridge"
_COARSE = 0.25  # of what leaves P positive: the inverse of 1 + x'u is off by some units of the last place
_SLACK = 2.0**-7  # how far rounding may carry 1 + x'u below 1 or above its bound


class Policy(Enum):
    """What the arms are ranked by."""

    EPSILON_GREEDY = "epsilon-greedy"
    LINUCB = "linucb"
    THOMPSON = "thompson"


class Division(Enum):
    """How 1 / (1 + x'u) is found: by a table of lines, refined by Newton's step, or as published."""

    TABLE = "table"
    TABLE_NEWTON = "table+newton"
    NEWTON = "newton"


class Argmax(Enum):
    """How the largest score is found: all pairs at once by tables, by strings, by circuits, or in two levels."""

    PAIRS = "pairs"
    STRINGS = "strings"
    CIRCUIT = "circuit"
    TOURNAMENT = "tournament"


_MOST_ARMS = {Argmax.PAIRS: 1000, Argmax.STRINGS: 1000, Argmax.CIRCUIT: 1000, Argmax.TOURNAMENT: 5000}


class Truncation(Enum):
    """Division by a power of two: exact, or as published, which fails with probability |x| / 2^64."""

    EXACT = "exact"
    PUBLISHED = "published"


class Variant(Enum):
    """The recast that keeps P_a and w_a, or Algorithm 1 as published."""

    RECAST = "recast"
    PUBLISHED = "published"


@dataclass(frozen=True)
class Settings:
    """What all parties agree on before a run.

    batch: contexts decided on, and learned from, together.  delay: how many decisions a reward is late.
    bound: the largest norm of an owner's block, which each enforces; with `owners` of them, contexts have norm at most
    `norm` = sqrt(owners) bound, and with the ridge that bounds the reciprocal's argument by 1 + norm^2 / ridge.
    widths: how many features each owner has, where that is not as equal as can be; an owner may have none.
    reward_range: where every reward lies, which the payer enforces; `reward` is the largest absolute value there.
    steps: how many contexts a run may have; it bounds predictions, which for rewards up to 1 means
    |w_a . x| <= sqrt(steps) norm / (2 sqrt(ridge)).
    fraction_bits: of contexts, rewards and predictions; state_bits: of P and w.
    newton: iterations of `division`; where it is not said, 1 behind a table, 10 from the published start, and 7 where
    all is as published.
    refresh: after how many decisions P and w are brought back to the exact sums; 0 for never, which is for experiments.
    None, where `for_run` has not chosen, is never, and a run is refused once `lasts` contexts were learned from.
    tie_bits: no arm loses to one whose score is lower by 2^-tie_bits of the rewards' range (of the power of two below
    it); arms closer than that are told apart by a draw as well as by their scores, and closer than the 2^k-th part of
    that, 2^k the next power of two from their number, by the draw alone.  0: only equal scores are drawn among.
    """

    arms: int
    dim: int
    eps: float = 0.1
    replicas: int = 1
    batch: int = 1
    delay: int = 0
    policy: Policy = Policy.EPSILON_GREEDY
    alpha: float = 1.0
    ridge: float = 1.0
    bound: float = 1.0
    owners: int = 1
    fraction_bits: int = 20
    state_bits: int = 20
    segments: int = 9
    division: Division = Division.TABLE
    newton: int | None = None
    argmax: Argmax = Argmax.PAIRS
    truncation: Truncation = Truncation.EXACT
    variant: Variant = Variant.RECAST
    refresh: int | None = None
    steps: int = 1 << 16
    widths: tuple[int, ...] = ()
    reward_range: tuple[float, float] = (0.0, 1.0)
    tie_bits: int = 8

    def __post_init__(self) -> None:
        if min(self.arms, self.dim, self.replicas, self.batch, self.owners) < 1:
            raise RangeError(
                f"{self.arms} arms, {self.dim} dimensions, {self.replicas} replicas, {self.owners} owners, batches of "
                f"{self.batch}: at least 1 of each"
            )
        if not 0.0 <= self.eps <= 1.0:
            raise RangeError(f"eps is a probability in [0, 1], not {self.eps:g}")
        if 0.0 < self.eps < 2.0**-40:
            raise RangeError(f"eps {self.eps:g} is finer than the dealer's coins: use 0, or at least 2^-40")
        if self.steps < 1:
            raise RangeError(f"a run has at least 1 step, not {self.steps}")
        self._check_owners()
        if min(self.delay, self.refresh or 0, self.newton or 0) < 0:
            raise RangeError(f"delay {self.delay}, refresh {self.refresh} and newton {self.newton} are counts from 0")
        if not 0 <= self.tie_bits <= 40:
            raise RangeError(f"tie_bits lie between 0, for equal scores only, and 40, not {self.tie_bits}")
        if self.division is Division.TABLE and self.newton and self.variant is Variant.RECAST:
            raise RangeError("a table alone takes no Newton iterations: use division 'table+newton'")
        most = _MOST_ARMS_PUBLISHED if self.variant is Variant.PUBLISHED else _MOST_ARMS[self.argmax]
        if self.arms > most:
            cure = "" if self.argmax is Argmax.TOURNAMENT else ": argmax 'tournament' takes more"
            raise RangeError(f"{self.arms} arms are more than {most}, for which comparisons fit in memory{cure}")
        if not (10 <= self.fraction_bits <= 30 and self.fraction_bits <= self.state_bits <= 2 * self.fraction_bits):
            raise RangeError(
                f"{self.fraction_bits} fraction bits and {self.state_bits} of the state: from 10 to 30, and for the "
                "state at least as many and at most twice as many"
            )
        self._check_sizes()
        if self.variant is Variant.PUBLISHED:
            self._check_published()
            return
        if self.policy is not Policy.EPSILON_GREEDY and self.truncation is not Truncation.EXACT:
            raise RangeError(f"{self.policy.value} takes roots by exact truncation: leave truncation at 'exact'")
        if self.division is Division.NEWTON and self.fraction_bits > 22:
            raise RangeError(
                f"the published reciprocal takes an exponential that overflows at {self.fraction_bits} fraction bits: "
                "use at most 22, or division 'table+newton'"
            )
        self._check_reciprocal()
        self._check_ranges()
        self._check_precision()
        ops.Keys(self.arms, self.score_bits, self.eps, self.blur)  # refuses more arms than fit

    def _check_sizes(self) -> None:
        """What is measured in units of the last place is many of them, and no bound is beyond a double's range."""
        low, high = self.reward_range
        if not (-math.inf < low < high < math.inf):
            raise RangeError(f"rewards lie between two numbers, the lower first, not between {low:g} and {high:g}")
        if not (0 < self.ridge < math.inf and 0 < self.bound < math.inf and 0 <= self.alpha < math.inf):
            raise RangeError(f"ridge {self.ridge:g}, bound {self.bound:g} and alpha {self.alpha:g} must be positive")
        finest = _UNITS * 2.0**-self.fraction_bits
        for what, width in (("rewards", high - low), ("features", self.bound)):
            if width < finest:
                raise RangeError(
                    f"{what} that differ by {width:g} at most are rounded to {2.0**-self.fraction_bits:.2g}, with "
                    f"{self.fraction_bits} fraction bits: scale them to {finest:.2g} and more, such as to 1"
                )
        largest = max(self.reward, self.bound, self.alpha, self.ridge, 1.0 / self.ridge)
        if not largest < _LARGEST:
            raise RangeError(
                f"rewards up to {self.reward:g}, bound {self.bound:g}, ridge {self.ridge:g} and alpha {self.alpha:g}: "
                f"one is beyond {_LARGEST:.2g}, or the ridge below its inverse; scale them"
            )

    def _check_owners(self) -> None:
        if self.widths and (len(self.widths) != self.owners or min(self.widths) < 0 or sum(self.widths) != self.dim):
            blocks = ", ".join(map(str, self.widths))
            raise RangeError(
                f"blocks of {blocks} features, for {self.owners} owners of {self.dim}: name a number for each owner, 0 "
                f"where it has none, which add up to {self.dim}"
            )

    def _check_ranges(self) -> None:
        """Every word of a step stays below 2^62, or the settings are refused."""
        f, s, u = self.fraction_bits, self.state_bits, self.gain_bits
        widest = {
            "P x": f + s + max(self.value_bits, self.index_bits),
            "x'u": f + s + self.square_bits,
            "u u'": 2 * s + 2 * u,
            "u (r - s)": f + s + self.value_bits + u,
            "g u (r - s)": f + s + self.value_bits + u,
            "g u u'": self.factor_scale + s + 2 * u,
        }
        if self.refresh:
            largest = max(1.0, self.norm**2, self.norm * self.reward)
            widest["sum x x'"] = 2 * f + math.ceil(math.log2(self.steps * largest + self.ridge)) + 1
            widest["W w"] = f + s + math.ceil(math.log2(self.steps * max(1.0, self.norm, self.norm * self.reward)))
        if self.batch > 1:
            widest["G u"] = f + s + self.value_bits + u + math.ceil(math.log2(self.batch))
        name = max(widest, key=lambda key: widest[key])
        if widest[name] > VALUE_BITS:
            raise RangeError(
                f"{name} needs {widest[name]} bits of {VALUE_BITS}: use fewer state_bits or fraction_bits, declare "
                "fewer steps, or a larger ridge"
            )

    def _check_precision(self) -> None:
        """What the words hold is fine enough for P to stay positive definite."""
        if self.division is not Division.NEWTON and self.lines.bits - self.segments >= self.fraction_bits:
            raise RangeError(f"1 + x'u may reach {self.upper:.4g}: too far for {2**self.segments} lines, {_CURE}")
        self._check_state(self.factor_scale if self.batch == 1 else VALUE_BITS)
        spread = 1.0 + self.batch * self.norm**2 / self.ridge
        if self.batch > 1 and spread > _BATCH_SPREAD * 2.0 ** min(0, self.fraction_bits - 20):
            raise RangeError(
                f"a batch of {self.batch} spreads its eigenvalues by {spread:.4g}: smaller batches, or {_CURE}"
            )

    def _check_state(self, bits: int) -> None:
        """P is more than rounding.  P - g u u' stays positive if g = 1 / (1 + x'u), of so many bits, is off by less
        than g / x'u."""
        if self.lasts < 1:
            raise RangeError(f"P is as small as a unit in the last place of {self.state_bits} state bits: {_CURE}")
        if (self.upper - 1.0) ** 2 * 2.0**-bits > _COARSE:
            raise RangeError(
                f"1 + x'u may reach {self.upper:.4g}, and with {bits} bits its inverse is too coarse for P to stay "
                f"positive: use more fraction_bits, or {_CURE}"
            )

    def _check_reciprocal(self) -> None:
        newton = self.division is Division.NEWTON or self.variant is Variant.PUBLISHED
        if newton and self.upper > _PUBLISHED_RECIPROCAL:
            raise RangeError(
                f"1 + x'u may reach {self.upper:.4g}, the published reciprocal holds to {_PUBLISHED_RECIPROCAL:g}: "
                "declare a smaller bound, a larger ridge, or use division 'table+newton'"
            )

    def _check_published(self) -> None:
        self._check_reciprocal()
        if self.policy is not Policy.EPSILON_GREEDY or self.batch > 1 or self.delay or self.refresh:
            raise RangeError("the published variant is epsilon-greedy, without batch, delay or refresh")
        if self.state_bits != self.fraction_bits or self.fraction_bits > 22:
            raise RangeError("the published variant has one number of fraction bits for all, at most 22")
        self._check_state(self.fraction_bits)
        sums = math.ceil(math.log2(self.steps * max(1.0, self.norm * self.reward)))
        if (widest := 2 * self.fraction_bits + max(self.value_bits, sums)) > VALUE_BITS:
            raise RangeError(f"sums of rewards need {widest} bits of {VALUE_BITS}: use fewer fraction_bits or steps")
        if (widest := 2 * (self.fraction_bits + self.gain_bits)) > VALUE_BITS:
            raise RangeError(f"u u' needs {widest} bits of {VALUE_BITS}: use fewer fraction_bits, or a larger ridge")

    @property
    def iterations(self) -> int:
        """Newton iterations of the division."""
        if self.newton is not None:
            return self.newton
        if self.variant is Variant.PUBLISHED:
            return _NEWTON_PUBLISHED
        return {Division.TABLE: 0, Division.TABLE_NEWTON: 1, Division.NEWTON: 10}[self.division]

    @property
    def lasts(self) -> int:
        """How many contexts P stands without a refresh, should all have the largest norm and one direction.

        P shrinks like ridge / (n norm^2), and rounding adds up like a walk that is damped with it: the smallest
        eigenvalue is in danger from about 2^(2/3 state_bits) ridge / norm^2 contexts on, as measured at 10 to 14
        bits.  Half of that.
        """
        walk = 0.5 * 2.0 ** (2.0 * self.state_bits / 3.0) * self.ridge / self.norm**2
        return int(min(walk, self._represented))

    @property
    def _represented(self) -> float:
        """How many such contexts leave P 8 units of rounding in every direction; a refresh cannot mend more."""
        return (2.0**self.state_bits / (8.0 * math.sqrt(self.dim)) - self.ridge) / self.norm**2

    def for_run(self, owners: int, steps: int) -> Settings:
        """These settings for a run of so many owners and contexts: more state bits, or refreshes, if it takes them."""
        if steps > self.steps:
            raise RangeError(f"a run of {steps} steps, and ranges that hold for {self.steps}: declare more `steps`")
        given = replace(self, owners=owners)
        if given.refresh is not None or given.variant is Variant.PUBLISHED or steps <= given.lasts:
            return given
        for bits in range(given.state_bits + 1, 31):
            with suppress(RangeError):
                longer = replace(given, state_bits=bits)
                if steps <= longer.lasts:
                    return longer
        for bits in range(30, given.state_bits - 1, -1):
            with suppress(RangeError):
                often = replace(given, state_bits=bits)
                if steps <= often._represented:
                    return replace(often, refresh=max(1, often.lasts // (4 * often.batch)))
        raise RangeError(
            f"{steps} contexts of norm up to {given.norm:.4g} are more than P has bits for: a shorter run, a smaller "
            "bound, or a larger ridge"
        )

    @cached_property
    def norm(self) -> float:
        """The largest norm of a context, whose blocks have norm at most `bound`."""
        blocks = sum(width > 0 for width in self.widths) if self.widths else self.owners
        return math.sqrt(blocks) * self.bound

    @property
    def reward(self) -> float:
        """The largest absolute value of a reward."""
        return max(map(abs, self.reward_range))

    @cached_property
    def value_bits(self) -> int:
        """Bits in front of the point of a prediction or a surprise, with a factor of two to spare for rounding."""
        largest = self.reward * (1.0 + math.sqrt(self.steps) * self.norm / (2.0 * math.sqrt(self.ridge)))
        return max(1, math.ceil(math.log2(2.0 * largest)))

    @cached_property
    def gain_bits(self) -> int:
        """Bits in front of the point of u = P x."""
        return max(0, math.ceil(math.log2(self.norm / self.ridge)))

    @cached_property
    def square_bits(self) -> int:
        """Bits in front of the point of x'u = x'P x."""
        return max(0, math.ceil(math.log2(self.upper - 1.0)))

    @cached_property
    def index_bits(self) -> int:
        """Bits in front of the point of what the arms are ranked by: a prediction and, with it, what alpha adds.

        What is to spare for rounding has room for the draw among close scores too, which adds less than a reward.
        """
        if self.policy is Policy.EPSILON_GREEDY:
            return self.value_bits
        widest = self.alpha * self.norm / math.sqrt(self.ridge) * (8.0 if self.policy is Policy.THOMPSON else 1.0)
        return math.ceil(math.log2(2.0**self.value_bits + 2.0 * widest))

    def _blur(self, scale: int) -> int:
        """How many of the last bits of a score, of so many fraction bits, the draw reaches into."""
        low, high = self.reward_range
        return max(0, scale - self.tie_bits + math.floor(math.log2(high - low))) if self.tie_bits else 0

    @property
    def blur(self) -> int:
        """Of the scores that are compared."""
        return self._blur(self.score_scale)

    def draw_unit(self, arms: int) -> float:
        """What a place in the draw's order of so many arms adds to a score; 0 where only equal ones are drawn among."""
        tie = ops.Keys(arms, self.score_bits, self.eps, self.blur).tie
        return 2.0 ** (self.blur - tie - self.score_scale) if self.blur else 0.0

    @cached_property
    def raw_scores_fit(self) -> bool:
        """Whether untruncated scores leave room for the keys; else a step truncates them first, in a round more."""
        scale = self.fraction_bits + self.state_bits
        try:
            ops.Keys(self.arms, scale + self.index_bits + 1, self.eps, self._blur(scale))
        except RangeError:
            return False
        return True

    @property
    def score_scale(self) -> int:
        """Fraction bits of the scores that are compared."""
        return self.fraction_bits + (self.state_bits if self.raw_scores_fit else 0)

    @cached_property
    def score_bits(self) -> int:
        """Bits of a score that is compared, sign included."""
        return self.score_scale + self.index_bits + 1

    @cached_property
    def upper(self) -> float:
        """How large 1 + x'u may be, and a little slack."""
        return 1.0 + self.norm**2 / self.ridge + _SLACK

    @cached_property
    def lines(self) -> Lines:
        """The table of 1 / x over [1, upper]; coarser where that spares a truncation of its results."""
        full = Lines.over(Reciprocal(1.0 - _SLACK), self.upper, self.fraction_bits, self.segments)
        spare = full.out_scale - self._room
        return full.coarser(self._room) if 0 < spare <= _MOST_SPARE else full

    @cached_property
    def factor_scale(self) -> int:
        """Fraction bits of g and of G: as many as leave room for g u (r - s)."""
        return min(self.lines.out_scale if self.division is Division.TABLE else self.fraction_bits, self._room)

    @property
    def _room(self) -> int:
        return VALUE_BITS - self.state_bits - self.value_bits - self.gain_bits

    def as_json(self) -> dict[str, Any]:
        """Names and plain values."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Settings:
        """Settings from `as_json`."""
        kinds: dict[str, Callable[[Any], Any]] = {
            "policy": Policy,
            "division": Division,
            "argmax": Argmax,
            "truncation": Truncation,
            "variant": Variant,
            "widths": tuple,
            "reward_range": tuple,
        }
        names = {part.name for part in fields(cls)}
        return cls(
            **{key: kinds[key](value) if key in kinds else value for key, value in given.items() if key in names}
        )


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value

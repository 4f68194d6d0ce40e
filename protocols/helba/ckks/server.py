"""The server: computes on ciphertexts, and asks the user of a step to refresh them.

    user                              server
    x, x x'          -------------->  z_a = x_a' A x_a,  p_a = <x_a, w>,  tau + z_a, which is tau if arm a is pulled
    y = m + r anew   <------------->  q = sqrt(z + c) by q (1 - v / 2), v^2 (v - 3) / 4
                     <------------->  M = the largest index, by (a + b) / 2 + (a - b) / 2 f(..f(a - b))
                     <------------->  f(..f([index_a - M | (tau + z_a - C) / D]))       indices and tests together
    largest b        <--------------  b_a in the clear to the user, tests masked
    pulled x x', r x, and which  -->  V and b;  the test of the pulled arm
    its number + r   <------------->  whether the batch ends
                     <------------->  if so, X <- X (2 I - V X), w = X b

f(x) = x (3 - x^2) / 2.  A refresh begins with at least two primes and masks every slot; where no number is, a slot
holds 0, which these iterations keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from mpc.errors import RangeError
from mpc.prg import Prg, fresh_key

from ...published.ckks import LEAST, Ciphertext, Cloud, level_of
from ...published.drive import STEPS, Part, Play, Receive, Send, Watch
from ...published.kept import Home
from .layout import Plan
from .messages import RESULT, Frames, Kind, Role
from .outcome import Outcome
from .refresh import Mask
from .settings import ENDED, Settings

Seen = Callable[[str, int, Ciphertext], None]
"""Is shown ciphertexts by name and step: for whoever has the key as well."""

_SIGN, _ROOT = 2.0, 4.0  # what the two iterations divide by
Asking = Generator[Any, Any, Ciphertext]


def server(
    settings: Settings, home: Home | None = None, start: int = 0, *, watch: Watch | None = None,
    seen: Seen | None = None,
) -> Play[Outcome]:  # fmt: skip
    """Plays all steps; learns which of them ended a batch.

    start: steps of earlier sittings, whose users send what they learned anew: each sitting has its own keys.
    """
    done = Outcome(Role.SERVER.value)
    if start and home is not None:
        done.restore(home.restored(start))
    frames = Frames(settings.digest)
    relin = frames.unpack((yield Receive(Role.OWNER)), Role.OWNER, Kind.PRODUCTS).rest
    galois = frames.unpack((yield Receive(Role.OWNER)), Role.OWNER, Kind.SHIFTS).rest
    done.key_bytes += len(relin) + len(galois)
    cloud = Cloud(settings.scheme, relin, galois, sender=Role.OWNER)
    raw = frames.unpack((yield Receive(Role.OWNER)), Role.OWNER, Kind.NOTHING).rest
    nothing = settings.scheme.load(raw, Role.OWNER, level=settings.scheme.top)
    steps = _Steps(settings, frames, cloud, nothing, done, seen)
    yield Part(STEPS)
    for t in range(1, settings.steps + 1):
        yield from steps.step(t) if t > start else steps.again(t, start)
        yield Send(Role.USER, frames.pack(Kind.NEXT, step=t))
        if home is not None and t > start:
            home.keep(t, done.state)
        if watch is not None:
            watch(t)
    done.learned("whether a batch ends, and the test's result", settings.steps, "its regression is used from now on")
    done.learned("number of steps, dimensions and arms", 1, "it is set up with them")
    return done


class _Steps:
    """What the server holds between two messages: sums of a batch and of all, and the batch's [A | w]."""

    def __init__(
        self, settings: Settings, frames: Frames, cloud: Cloud, nothing: Ciphertext, done: Outcome, seen: Seen | None
    ) -> None:  # fmt: skip
        self.settings, self.frames, self.cloud, self.done, self.seen = settings, frames, cloud, done, seen
        self.layout, self.scheme, self.top = settings.layout, settings.scheme, settings.scheme.top
        self.prg, self.nothing, self.t, self.start = Prg(fresh_key()), nothing, 1, 1
        dim = settings.constants.dim
        self.state = cloud.plus(nothing, self.layout.state(np.eye(dim), np.zeros(dim)))
        self.batch = self.sums = nothing

    def step(self, t: int) -> Asking:
        """Decide, learn, end a batch where it is time."""
        self.t, given, cloud, layout = t, self.settings.constants, self.cloud, self.layout
        grown = given.grown(t, self.start)
        raw = yield Receive(Role.USER)
        features = self._loaded(self.frames.unpack(raw, Role.USER, Kind.FEATURES, step=t).rest, self.top)
        forms = cloud.product(self.state, cloud.add(features, self.batch))
        for bit in range(layout.half.bit_length() - 1):
            forms = cloud.add(forms, cloud.shift(forms, 1 << bit))
        index = yield from self.index(forms)
        self._show("index", index)
        bits = yield from self.compare(index, None if grown else forms)
        yield from self.told(bits, tested=not grown)
        learned = yield from self.learned()
        ended = grown or (yield from self.test(bits))
        self.done.ends.append(ended)
        self.done.rounds += 2 if grown else 3  # features, what is learned, a test
        yield from self.take(learned, ended, freeze=ended)

    def again(self, t: int, start: int) -> Generator[Any, Any, None]:
        """A step of an earlier sitting: of the last batch's end alone is the regression needed."""
        self.t, ends = t, self.done.ends
        yield from self.take((yield from self.learned()), ends[t - 1], freeze=ends[t - 1] and not any(ends[t:start]))

    def learned(self) -> Asking:
        """What the pulled arm was and paid, for the sums."""
        raw = yield Receive(Role.USER)
        return self._loaded(self.frames.unpack(raw, Role.USER, Kind.LEARN, step=self.t).rest, self.top)

    def take(self, learned: Ciphertext, ended: bool, *, freeze: bool) -> Generator[Any, Any, None]:
        """Into the sums; behind a batch's end a new one begins."""
        self.sums = self.cloud.add(self.sums, learned)
        self.batch = self.nothing if ended else self.cloud.add(self.batch, learned)
        if freeze and self.t < self.settings.steps:
            self.start = self.t + 1
            yield from self.freeze()

    # ---- a step

    def index(self, forms: Ciphertext) -> Asking:
        """(rho_a + 1) / range of every arm."""
        given, t, cloud, layout = self.settings.constants, self.t, self.cloud, self.layout
        low, high = self.settings.root_range(self.start)
        factors = self.settings.root_factors(t, self.start)
        share = layout.of_arms(self.settings.largest / high)
        scale = self.scale_for([factor**2 for factor in factors], _ROOT)
        z = cloud.plus(cloud.times(forms, share, level_of(forms) - 1, scale), low / high)
        root = yield from self.root(z, factors)
        self._show("root", root)
        width, beta = self.settings.index_range(t, self.start), given.beta(t)
        level, scale = level_of(forms) - 1, self.scale_for(self.settings.maximum_factors(t), _SIGN)
        share = layout.of_arms(given.norm * self.settings.estimate / width)
        linear = cloud.times(cloud.shift(forms, layout.half), share, level, scale)
        root = yield from self.raised(root, level + 1)
        share = layout.of_arms(beta * math.sqrt(high) / width)
        index = cloud.add(linear, cloud.times(root, share, level, scale))
        return cloud.plus(index, layout.of_arms((beta / t + 1.0) / width))

    def root(self, z: Ciphertext, factors: Sequence[float]) -> Asking:
        """sqrt(z), of z in [c / c2, 1]."""
        cloud, q, v = self.cloud, z, self.cloud.plus(z, -1.0)
        left = list(factors)
        while left:
            if level_of(v) < LEAST + 2:
                v = yield from self.refreshed(v, self.top)
            y = None
            for _ in range(min(len(left), (level_of(v) - LEAST) // 2)):
                s = left.pop(0)
                v = cloud.plus(cloud.scaled(v, s * s), s * s - 1.0)
                factor = cloud.scaled(cloud.plus(cloud.negated(cloud.scaled(v, 0.5)), 1.0), s)
                y = factor if y is None else cloud.product(y, factor)
                if left:
                    v = cloud.scaled(cloud.product(cloud.square(v), cloud.plus(v, -3.0)), 1.0 / _ROOT)
            assert y is not None
            if level_of(q) < LEAST + 1:
                q = yield from self.refreshed(q, max(level_of(y), LEAST + 1))
            if level_of(y) < LEAST + 1:
                y = yield from self.refreshed(y, LEAST + 1)
            q = cloud.product(q, y)
        return q

    def largest(self, index: Ciphertext, scale: float) -> Asking:
        """A tournament, at every arm's slot."""
        cloud, layout = self.cloud, self.layout
        factors, levels = self.settings.maximum_factors(self.t), layout.around.bit_length() - 1
        most = index
        for bit in range(levels):
            most = yield from self.raised(most, LEAST + 2)
            other = cloud.shift(most, layout.stride << bit)
            apart, both = cloud.add(most, cloud.negated(other)), cloud.add(most, other)
            sign = yield from self.towards_sign(apart, factors)
            sign = yield from self.raised(sign, LEAST + 1, Plan.ROUNDED)
            target = scale if bit == levels - 1 else index.scale()
            product = target * self.scheme.primes[LEAST + 1] / sign.scale()
            half = cloud.times(apart, 0.5, LEAST + 1, product)
            most = cloud.add(cloud.product(half, sign), cloud.times(both, 0.5, LEAST, target))
        return most

    def compare(self, index: Ciphertext, tested: Ciphertext | None) -> Asking:
        """2 b_a - 1 of every arm, and where a test is due 2 e_a - 1 of what the batch would be with that arm."""
        cloud, layout, given = self.cloud, self.layout, self.settings
        factors = given.comparison_factors(self.t, tested=tested is not None)
        scale = self.scale_for(factors, _SIGN)
        index = yield from self.raised(index, LEAST + 2)
        most = yield from self.largest(index, scale)
        x = cloud.add(cloud.times(index, 1.0, LEAST, scale), cloud.negated(self._as(most, scale)))
        if tested is not None:
            share = layout.of_tests(given.largest / given.trace)
            x = cloud.add(x, cloud.times(tested, share, LEAST, scale))
            x = cloud.plus(x, layout.of_tests(-given.constants.trace / given.trace))
        return (yield from self.towards_sign(x, factors))

    def towards_sign(self, x: Ciphertext, factors: Sequence[float]) -> Asking:
        """f(s x), one after the other."""
        cloud = self.cloud
        for s in factors:
            if level_of(x) < LEAST + 2:
                x = yield from self.refreshed(x, self.top, Plan.ROUNDED)
            x = cloud.scaled(x, s)
            y = cloud.plus(cloud.negated(cloud.square(x)), 3.0)
            x = cloud.scaled(cloud.product(x, y), 1.0 / _SIGN)
        return x

    def told(self, bits: Ciphertext, *, tested: bool) -> Generator[Any, Any, None]:
        """The user reads its arms' bits, and no other slot."""
        layout = self.layout
        own = layout.arm_at[: layout.arms]
        mask = Mask(self.scheme, self.prg, np.setdiff1d(layout.kept, own)).bare(own)
        self._show("bits", bits)
        raw = mask.onto(self.cloud, self.scheme.lowered(bits, LEAST)).to_string()
        self.done.masked += len(mask.wide)
        yield Send(Role.USER, self.frames.pack(Kind.CHOICE, raw, step=self.t, plan=int(tested)))

    def test(self, bits: Ciphertext) -> Generator[Any, Any, bool]:
        """Whether tau has reached C, of the arm that the user alone knows."""
        raw = yield Receive(Role.USER)
        bits = yield from self.raised(bits, LEAST + 1, Plan.ROUNDED)
        pulled = self._loaded(self.frames.unpack(raw, Role.USER, Kind.PULLED, step=self.t).rest, LEAST + 1)
        chosen = self.cloud.product(bits, pulled)
        self._show("test", chosen)
        mask = Mask(self.scheme, self.prg, self.layout.kept)
        self.done.masked += len(mask.wide)
        yield Send(Role.USER, self.frames.pack(Kind.TEST, mask.onto(self.cloud, chosen).to_string(), step=self.t))
        message = self.frames.unpack((yield Receive(Role.USER)), Role.USER, Kind.RESULT, step=self.t)
        (number,) = message.numbers(RESULT)
        result = (number - mask.sum_at(self.layout.test_at) + 1.0) / 2.0
        if not -0.1 <= result <= 1.1:
            raise RangeError(f"the test of step {self.t} is no bit: a user broke its bounds, or answered with garbage")
        return bool(result >= ENDED)

    # ---- a batch's end

    def freeze(self) -> Generator[Any, Any, None]:
        """X <- s X (2 I - s V X) from X_0 = I / c, anew from V each time, so that roundings do not pile up; w = X b."""
        given, cloud, layout, scheme = self.settings, self.cloud, self.layout, self.scheme
        level, low, scale = LEAST + 2, LEAST, scheme.primes[LEAST + 2] / 4.0
        identity = np.eye(given.constants.dim)
        first = given.constants.ridge / given.inverse_bound(self.start) * identity
        nothing = scheme.lowered(self.nothing, level)
        right, left = cloud.plus(nothing, layout.right(first)), cloud.plus(nothing, layout.left(first))
        factors = given.inverse_factors(self.start)
        for at, s in enumerate(factors, start=1):
            gram = cloud.scaled(self._summed(cloud.product(self.sums, right), layout.cube_steps), given.largest)
            gram = cloud.times(gram, layout.corners(), low, right.scale())
            (placed,) = yield from self.placed(gram, level, Plan.GRAM, layout.corners())
            gram = cloud.scaled(cloud.add(placed, right), s)
            step = cloud.plus(cloud.negated(gram), layout.right(2.0 * identity))
            x = self._summed(cloud.product(cloud.scaled(left, s), step), layout.cube_steps)
            x = cloud.times(x, layout.corners(), low, scale)
            plan, height = (Plan.ADOPT, self.top) if at == len(factors) else (Plan.NEXT, level)
            right, left = yield from self.placed(x, height, plan, layout.corners())
        products = self._summed(cloud.product(self.sums, scheme.lowered(left, level)), layout.cube_steps)
        constants = given.constants
        unit = constants.reward * constants.norm / (constants.ridge * given.estimate)
        products = cloud.times(cloud.scaled(products, unit), layout.edges(), low, right.scale())
        (estimate,) = yield from self.placed(products, self.top, Plan.ESTIMATE, layout.edges())
        self.state = cloud.add(right, estimate)
        self._show("state", self.state)

    # ---- refreshes

    def raised(self, a: Ciphertext, level: int, plan: Plan = Plan.STAY) -> Asking:
        """Refreshed, if it has fewer primes."""
        if level_of(a) < level:
            a = yield from self.refreshed(a, level, plan)
        return a

    def refreshed(self, a: Ciphertext, level: int, plan: Plan = Plan.STAY) -> Asking:
        """The same numbers in a fresh ciphertext, where it serves rounded."""
        mask = Mask(self.scheme, self.prg, self.layout.kept)
        (fresh,) = yield from self._asked(a, mask, level, plan, 1)
        return mask.off(self.cloud, fresh, rounded=plan is Plan.ROUNDED)

    def placed(
        self, a: Ciphertext, level: int, plan: Plan, wide: np.ndarray
    ) -> Generator[Any, Any, Sequence[Ciphertext]]:
        """Its numbers in other slots."""
        mask = Mask(self.scheme, self.prg, np.flatnonzero(wide))
        placings = self.layout.placings(plan)
        fresh = yield from self._asked(a, mask, level, plan, len(placings))
        return [mask.off(self.cloud, one, placing) for one, placing in zip(fresh, placings)]

    def _asked(
        self, a: Ciphertext, mask: Mask, level: int, plan: Plan, count: int
    ) -> Generator[Any, Any, list[Ciphertext]]:
        assert level_of(a) >= LEAST, "with one prime a mask wraps"
        a = self.scheme.lowered(a, LEAST)
        raw = mask.onto(self.cloud, a).to_string()
        self.done.refreshes += 1
        self.done.rounds += 1
        self.done.masked += len(mask.wide)
        yield Send(Role.USER, self.frames.pack(Kind.REFRESH, raw, step=self.t, level=level, plan=plan))
        fresh = []
        for _ in range(count):
            message = self.frames.unpack((yield Receive(Role.USER)), Role.USER, Kind.REFRESHED, step=self.t)
            fresh.append(self._loaded(message.rest, level, a.scale()))
        return fresh

    def _loaded(self, raw: bytes, level: int, scale: float | None = None) -> Ciphertext:
        return self.scheme.load(raw, Role.USER, level=level, scale=scale)

    # ---- scales

    def scale_for(self, factors: Sequence[float], divided: float) -> float:
        """Of numbers that an iteration by these factors is to begin with, so that it ends at the scale that it keeps.

        An iteration leaves divided (scale / factor)^3 / both, and so triples how far a scale is off.
        """
        both = float(self.scheme.primes[self.top]) * self.scheme.primes[self.top - 1]
        scale = math.sqrt(both / divided)
        for factor in reversed(factors):
            scale = factor * (scale * both / divided) ** (1.0 / 3.0)
        return scale

    def _as(self, a: Ciphertext, scale: float) -> Ciphertext:
        return a if math.isclose(a.scale(), scale, rel_tol=1e-8) else self.cloud.times(a, 1.0, level_of(a) - 1, scale)

    def _summed(self, a: Ciphertext, steps: Sequence[int]) -> Ciphertext:
        for step in steps:
            a = self.cloud.add(a, self.cloud.shift(a, step))
        return a

    def _show(self, name: str, a: Ciphertext) -> None:
        if self.seen is not None:
            self.seen(name, self.t, a)

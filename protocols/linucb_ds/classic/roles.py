"""LinUCB-DS and SpectralUCB-DS as published (Ciucanu, Delabrouille, Lafourcade and Soare 2020), one function per role.

    DO                       DC                   P                                  Comp
     <----------------------------------------------------------------------------- pk_Comp
                              <----------------------------------------------------- pk_Comp
                                                   <-------------------------------- pk_Comp
                             pk_DC -------------> .                                  .
                             pk_DC ------------------------------------------------> .
                             N -----------------> .
    arms, constants, E_Comp(theta) -------------> .
                                                  K, range of indices -------------> .
                                . <-------------- scale and range of s
    each step 1 <= t < N:                         E_Comp(B_1), ..., E_Comp(B_K),
                                                  permuted ------------------------> decrypt
                                                  pull     <------------------------ place of the largest
    at the end:                                   E_Comp(rand + s) ----------------> decrypt
                                                  .        <------------------------ E_DC(rand + s)
                             decrypt <----------- E_DC(s)

P, the puller, and Comp, the comparator, are the cloud and do not collude.  DO is the data owner, DC the data customer.
A part `setup` begins where keys are made.  Where this differs from the letter of the paper or from its code:

- P knows the pulled arms and their noise, so b = (sum x x') theta + sum eta x and B_i = <c_i, theta> + e_i with c and e
  in the clear (`bandits.fixed_point`): K d multiplications a step instead of d^2 + K d, and d for the sum of rewards.
- Noise and widths are added in the clear, (1 + n)^e, and not encrypted, since
- all that P sends is multiplied by a fresh r^n.  Without it an observer links ciphertexts.
- All ciphertexts are of integers with the same, public, fraction bits.  Exponents that differ by arm give the arm away.
- rand is uniform modulo n, so rand + s tells Comp nothing; DC takes away the n that the sum may have wrapped by.
- An index is far shorter than a prime of the key, so Comp decrypts the lists modulo p alone: half of the work.
- E_DC(s) is made fresh as well: divided by E_DC(rand + s) it would be (1 + n)^-rand, which anybody can read, and Comp
  knows rand + s.
- The order that decides ties is the permutation: Comp answers the first of the largest.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from bandits.coins import Coins, Noise
from bandits.fixed_point import PublicMap, Scales, bounds, rounded, words
from bandits.linear_problem import LinearProblem, ProblemError
from mpc.errors import ConfigError, Desync, RangeError

from ...published import outcome
from ...published.cores import Cores
from ...published.drive import STEPS, SUM, Part, Play, Receive, Send, Watch
from ...published.frame import Message
from ...published.paillier import Counts, Encryptor, Integer, LinearForms, PublicKey, SecretKey
from .messages import (
    Kind,
    PublicProblem,
    Role,
    clear_arms,
    number_of,
    pack,
    pack_ciphertexts,
    pack_number,
    pack_problem,
    pack_ranges,
    problem_of,
    ranges_of,
    unpack,
)

SETUP = "setup"
ESTIMATE, INDICES, FRESH, DECRYPTIONS = "estimate", "indices", "fresh r^n", "decryptions"
"""Parts of a step: the paper's 3.i, here in the clear; 3.ii; ours; and 4.i."""


class Phase(str, Enum):
    """Of a run, as the paper counts its operations."""

    START = "initialisation"
    LOOP = "exploration-exploitation"
    SWITCH = "key switching"


@dataclass
class Outcome(outcome.Outcome):
    """What a participant did and learned.  phases: its counts, by the phases that have ended."""

    counts: Counts = field(default_factory=Counts)
    phases: dict[str, Counts] = field(default_factory=dict)
    arms: list[int] = field(default_factory=list, repr=False)  # P's
    total: int = field(default=0, repr=False)  # DC's, a word of `scale` fraction bits
    scale: int = 0

    def ends(self, phase: Phase) -> None:
        """What was counted since the phase before is of this one."""
        self.phases[phase.value] = self.counts - sum(self.phases.values(), Counts())

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Outcome:
        """What `as_json` gave."""
        phases = {phase: Counts(**counted) for phase, counted in given["phases"].items()}
        return super().from_json({**given, "counts": Counts(**given["counts"]), "phases": phases})


def data_owner(problem: LinearProblem, scales: Scales, bits: int) -> Play[Outcome]:
    """DO: outsources arms and constants in the clear, and theta encrypted; learns nothing."""
    done = Outcome(Role.DO)
    yield Part(SETUP)
    exact = rounded(problem, scales)
    key = yield from _key(Role.COMP, bits)
    encryptor = Encryptor(key, done.counts)
    arms = words(exact.arms, scales.arm)
    yield Send(Role.P, pack_problem(PublicProblem(arms, problem.exploration, scales)))
    theta = encryptor.encrypt(words(exact.theta, scales.theta).tolist())
    yield Send(Role.P, pack_ciphertexts(Kind.THETA, theta, key))
    done.ends(Phase.START)
    return done


def data_customer(budget: int, bits: int, *, insecure: bool = False) -> Play[Outcome]:
    """DC: pays for `budget` pulls, and learns their sum alone."""
    done = Outcome(Role.DC)
    own = SecretKey.generate(bits, insecure=insecure, counts=done.counts)
    yield Part(SETUP)
    comp = yield from _key(Role.COMP, bits)
    yield Send(Role.COMP, pack(Kind.KEY, own.public.to_bytes()))
    yield Send(Role.P, pack(Kind.KEY, own.public.to_bytes()))
    yield Send(Role.P, pack_number(Kind.BUDGET, budget))
    done.scale, total_bits = ranges_of((yield from _receive(Role.P, Kind.RANGES)))
    message = yield from _receive(Role.P, Kind.SUM, key=own.public, patient=True)
    (switched,) = own.decrypt(message.ciphertexts(own.public, 1))
    done.total = unwrapped(switched, own.public.n, comp.n, total_bits)
    done.ends(Phase.SWITCH)
    done.learned("cumulative reward", 1, "it pays for the pulls")
    return done


def comparator(
    bits: int, *, insecure: bool = False, cores: int = 1, seen: Callable[[list[int]], None] | None = None
) -> Play[Outcome]:  # fmt: skip
    """Comp: says where in a list the largest plaintext is, and switches the key of a masked sum.

    cores: processes that decrypt.  seen: is told each decrypted list; what an attack by Comp starts from.
    """
    done = Outcome(Role.COMP)
    own = SecretKey.generate(bits, insecure=insecure, counts=done.counts)
    yield Part(SETUP)
    for other in (Role.DO, Role.DC, Role.P):
        yield Send(other, pack(Kind.KEY, own.public.to_bytes()))
    customer = yield from _key(Role.DC, bits)
    count, index_bits = ranges_of((yield from _receive(Role.P, Kind.RANGES)))
    lists = 0
    with Cores(cores, own.short, own.long) as spread:
        yield Part(STEPS)
        while True:
            message = yield from _receive(Role.P, Kind.INDICES, Kind.MASKED_SUM, key=own.public)
            if message.kind is Kind.MASKED_SUM:
                break
            ciphertexts = message.ciphertexts(own.public, count)
            yield Part(DECRYPTIONS)
            values = own.decrypt_on(spread, ciphertexts, bits=index_bits)
            yield Part(STEPS)
            _check_indices(values, index_bits)
            if seen is not None:
                seen(values)
            lists += 1
            yield Send(Role.P, pack_number(Kind.POSITION, values.index(max(values))))
    done.ends(Phase.LOOP)
    yield Part(SUM)
    (masked,) = own.decrypt(message.ciphertexts(own.public, 1))
    switched = Encryptor(customer, done.counts).encrypt([masked % own.public.n])
    yield Send(Role.P, pack_ciphertexts(Kind.SWITCHED_SUM, switched, customer))
    done.ends(Phase.SWITCH)
    done.learned("index of an arm, arms permuted", lists * count, "it finds the largest")
    done.learned("number of pulls", 1, "it counts the lists")
    return done


def puller(
    seed: int, bits: int, *, noise: Noise = Noise.SIGN, cores: int = 1, watch: Watch | None = None
) -> Play[Outcome]:  # fmt: skip
    """P: pulls the arms, and computes on what it cannot decrypt, in so many processes."""
    done = Outcome(Role.P)
    yield Part(SETUP)
    comp = yield from _key(Role.COMP, bits)
    customer = yield from _key(Role.DC, bits)
    budget = number_of((yield from _receive(Role.DC, Kind.BUDGET)))
    problem = problem_of((yield from _receive(Role.DO, Kind.PROBLEM)))
    count, dim = problem.arms.shape
    theta = (yield from _receive(Role.DO, Kind.THETA, key=comp)).ciphertexts(comp, dim)
    pulls = _Pulls(problem, theta, Encryptor(comp, done.counts, pooled=True), _coins(seed, budget, problem, noise))
    index_bits, total_bits = pulls.range_bits(problem.exploration.noise * noise.largest)
    check_room(comp, customer, max(index_bits, total_bits), total_bits)
    yield Send(Role.COMP, pack_ranges(count, index_bits))
    yield Send(Role.DC, pack_ranges(problem.scales.reward, total_bits))
    if budget > 1:
        pulls.prepare()
    pulls.cloud.fill(count if budget > 1 else 1)
    done.ends(Phase.START)
    with pulls.spread(cores if budget > 1 else 1) as spread:
        yield Part(STEPS)
        for step in range(1, budget):
            yield Part(ESTIMATE)
            c, e = pulls.estimate()
            yield Part(INDICES)
            indices = pulls.indices(c, e, spread)
            yield Part(STEPS)
            order = pulls.order(step)
            hidden = pulls.cloud.rerandomise([indices[arm] for arm in order])
            yield Send(Role.COMP, pack_ciphertexts(Kind.INDICES, hidden, comp))
            yield Part(FRESH)
            pulls.cloud.fill(count if step + 1 < budget else 1, spread)  # while Comp decrypts
            yield Part(STEPS)
            place = number_of((yield from _receive(Role.COMP, Kind.POSITION)))
            if place >= count:
                raise Desync(f"Comp answered place {place} of {count}: run the same release everywhere")
            pulls.pull(order[place])
            if watch is not None:
                watch(step + 1)
    done.ends(Phase.LOOP)
    yield Part(SUM)
    rand = secrets.randbelow(comp.n)
    masked = pulls.cloud.rerandomise([pulls.cloud.add_public(pulls.total(), rand)])
    yield Send(Role.COMP, pack_ciphertexts(Kind.MASKED_SUM, masked, comp))
    message = yield from _receive(Role.COMP, Kind.SWITCHED_SUM, key=customer)
    (switched,) = message.ciphertexts(customer, 1)
    fresh = Encryptor(customer, done.counts)
    answer = fresh.rerandomise([fresh.add_public(switched, -rand)])
    yield Send(Role.DC, pack_ciphertexts(Kind.SUM, answer, customer))
    done.ends(Phase.SWITCH)
    done.arms = pulls.arms
    done.learned("pulled arm", budget, "it pulls them")
    done.learned("budget", 1, "DC orders so many pulls")
    return done


class _Pulls:
    """What P knows between two messages: pulled arms, their noise, and theta encrypted."""

    def __init__(self, problem: PublicProblem, theta: list[Integer], cloud: Encryptor, coins: Coins) -> None:
        self.cloud, self.arms = cloud, [coins.first]
        self._problem, self._theta, self._coins = problem, theta, coins
        try:
            self._map = PublicMap(clear_arms(problem), problem.exploration, coins.budget)
        except ProblemError as error:
            raise ConfigError(f"DO sent a problem that cannot be played: {error}") from error
        self._map.update(coins.first, float(coins.noise[0]))
        self._forms: LinearForms | None = None

    def range_bits(self, largest: float) -> tuple[int, int]:
        """Of indices and of the sum, from public bounds; largest: noise that there can be, not that was drawn."""
        limits = bounds(self._map.arms, self._map.exploration, self._coins.budget, largest_noise=largest)
        return limits.index_bits(self._problem.scales), limits.total_bits(self._problem.scales)

    def prepare(self) -> None:
        """Tables of powers of E(theta) for all indices that will come."""
        bits = _signed_bits(self._map.coefficient_bound(), self._problem.scales.map)
        uses = (self._coins.budget - 1) * len(self._map.arms)
        self._forms = LinearForms(self.cloud, self._theta, bits=bits, uses=uses)

    def spread(self, cores: int) -> Cores:
        """Processes that compute indices and fresh r^n, from the tables that are there now."""
        return Cores(cores, self.cloud.obfuscator, *([] if self._forms is None else [self._forms.form]))

    def estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """c and e of all arms, as words."""
        return self._map.words(self._problem.scales)

    def indices(self, c: np.ndarray, e: np.ndarray, spread: Cores) -> list[Integer]:
        """E(B_i), not yet fit to leave."""
        assert self._forms is not None
        forms = self._forms.all_of(c.tolist(), spread)
        return [self.cloud.add_public(form, offset) for form, offset in zip(forms, e.tolist(), strict=True)]

    def order(self, step: int) -> list[int]:
        """The arms in the order of this step's list: from the one that wins any tie to the one that loses all."""
        return list(np.argsort(-self._coins.ties[step]).tolist())

    def pull(self, arm: int) -> None:
        """Pull it."""
        self._map.update(arm, float(self._coins.noise[len(self.arms)]))
        self.arms.append(arm)

    def total(self) -> Integer:
        """E(s) = prod_j E(theta_j)^(sum of x_j) (1 + n)^(sum of eta)."""
        pulled = self._problem.arms[self.arms].sum(axis=0).tolist()
        products = [self.cloud.multiply(theta, int(factor)) for theta, factor in zip(self._theta, pulled)]
        total = products[0]
        for product in products[1:]:
            total = self.cloud.add(total, product)
        return self.cloud.add_public(total, sum(words(self._coins.noise, self._problem.scales.reward).tolist()))


def unwrapped(switched: int, own: int, comp: int, bits: int) -> int:
    """s from (rand + s mod n_Comp) - rand modulo DC's own n: without the n_Comp that it may miss or have too much."""
    for wraps in (0, 1, -1):
        value = (switched + wraps * comp) % own
        value = value - own if value > own // 2 else value
        if abs(value) < 1 << (bits - 1):
            return value
    raise RangeError("the sum that P sent is out of range: it was not encrypted under DC's key, or the keys differ")


def check_room(comp: PublicKey, customer: PublicKey, bits: int, total_bits: int) -> None:
    """A plaintext fits n, and DC can tell a sum from one that wrapped."""
    if bits + 2 > min(comp.bits, customer.bits):
        raise ConfigError(f"values of {bits} bits do not fit a key of {min(comp.bits, customer.bits)}: use larger keys")
    for wraps in (1, 2):
        rest = wraps * comp.n % customer.n
        if 0 < min(rest, customer.n - rest) < 1 << (total_bits + 1):
            raise ConfigError("the keys of Comp and DC are too close to each other: make new ones")


def _coins(seed: int, budget: int, problem: PublicProblem, noise: Noise) -> Coins:
    try:
        return Coins.draw(seed, budget=budget, arms=len(problem.arms), size=problem.exploration.noise, noise=noise)
    except ProblemError as error:
        raise ConfigError(f"DC orders {budget:,} pulls, which cannot be played: {error}") from error


def _signed_bits(bound: float, scale: int) -> int:
    return math.ceil(bound * 2.0**scale + 1.0).bit_length()


def _check_indices(values: list[int], bits: int) -> None:
    for place, value in enumerate(values):
        if not abs(value) < 1 << (bits - 1):
            raise RangeError(
                f"entry {place} of P's list is out of range: P or DO did not use the key of this run's Comp"
            )


def _key(sender: Role, bits: int) -> Generator[Any, Any, PublicKey]:
    message = yield from _receive(sender, Kind.KEY)
    return PublicKey.from_bytes(message.rest, bits=bits, sender=sender)


def _receive(
    sender: Role, *kinds: Kind, key: PublicKey | None = None, patient: bool = False
) -> Generator[Any, Any, Message]:
    raw = yield Receive(sender, patient)
    return unpack(raw, sender, *kinds, key=key)

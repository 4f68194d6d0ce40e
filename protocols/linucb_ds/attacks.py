"""The attacks of Comp, P and DC on runs of the protocol, with what these really get hold of; and what comes of them.

    as published     Comp: the decrypted lists.  P: the arms it pulls and the noise it draws.
    arms shown       nobody sees a list.  A computing party: arms and noise, as P.
    arms hidden      a computing party: what is opened in place of the lists, masked differences of indices; and in
                     place of the arms, its own share of each one-hot.
    nothing          random numbers in place of all that: what public data alone are worth.  A guess may do better than
                     one in K, since both the policy and the guesser like long arms.

DC is told a sum: as published with all its digits, on shares rounded.  It plays games that are small enough to list
all thetas that fit.  The attacks themselves are `bandits.attacks.linucb_comp`, `linucb_p` and `linucb_dc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.attacks.linucb_comp import Recovered, recover, without_signs
from bandits.attacks.linucb_dc import fitting_exactly, share_that_fits
from bandits.attacks.linucb_p import cosine, estimate
from bandits.coins import Coins
from bandits.fixed_point import Scales, reals, rounded, words
from bandits.linear_problem import LinearProblem
from mpc.rounds import Open, Request

from ..run.simulate import Simulation, simulate
from .classic.run import play_classic
from .mpc.dealt_coins import own_coins, replayed
from .mpc.player import HiddenArms
from .mpc.run import Outsourced, pulled
from .mpc.settings import Settings

SMALL = (2, 4, 20)  # d, K and N of DC's games
KEY_BITS = 256  # the attacks leave keys alone: short ones are as good
_PRECISE = Scales(40, 40, 40)
_UNIT = 10.0 * 2.0**-63  # a masked difference as a number of an index's size


@dataclass(frozen=True)
class CompFound:
    """arms, orders: shares of pulled arms and of places in the lists that are right.  reward: largest error.

    theta: relative error of the regression; exact: the same where every noise was seen as the sign it is, or None.
    """

    arms: float
    orders: float
    reward: float
    theta: float
    exact: float | None


@dataclass(frozen=True)
class Attacked:
    """One run.  comp: None where there are no lists.  p: cosine of its estimate with theta."""

    comp: CompFound | None
    p: float


@dataclass(frozen=True)
class DCFound:
    """log2 of how many thetas there are, are left by one sum, and by the sums of two orders of the same theta."""

    all: float
    one: float
    two: float


def dc_published(problem: LinearProblem, seeds: tuple[int, int]) -> DCFound:
    """From sums as DC decrypts them.  problem: of the small size."""
    found, scales = [], Scales()
    exact, budget = rounded(problem, scales), SMALL[2]
    arms, noise = words(exact.arms, scales.arm), int(words(problem.exploration.noise, scales.reward))
    for seed in seeds:
        total = play_classic(problem, budget, seed=seed, scales=scales, bits=KEY_BITS, insecure=True).total
        found.append(fitting_exactly(arms, noise, math.ceil(_radius(problem, scales)), budget, total))
    return DCFound(_thetas(problem, scales), math.log2(len(found[0])), math.log2(len(found[0] & found[1])))


def dc_on_shares(problem: LinearProblem, seeds: tuple[int, int], *, hide: bool) -> DCFound:
    """From sums as they are revealed to DC."""
    settings, rng = Settings.of(problem, SMALL[2], hide=hide), np.random.default_rng(seeds)
    told = [(simulate(Outsourced(settings, 2, seed, problem), seed=seed).word, settings.unit) for seed in seeds]
    bound, noise = problem.exploration.theta_norm, problem.exploration.noise
    shares = [share_that_fits(settings.arms, noise, bound, SMALL[2], told[:count], rng) for count in (1, 2)]
    thetas = _thetas(problem, settings.scales)
    one, two = (thetas + math.log2(max(share, 2.0**-thetas)) for share in shares)
    return DCFound(thetas, one, two)


def _thetas(problem: LinearProblem, scales: Scales) -> float:
    return math.log2(math.pi) + 2.0 * math.log2(_radius(problem, scales))


def _radius(problem: LinearProblem, scales: Scales) -> float:
    return problem.exploration.theta_norm * 2.0**scales.theta


def classic(problem: LinearProblem, budget: int, seed: int) -> Attacked:
    """The published protocol, with Paillier."""
    lists: list[list[int]] = []
    run = play_classic(
        problem, budget, seed=seed, scales=_PRECISE, bits=KEY_BITS, insecure=True, seen=lists.append
    )  # fmt: skip
    exact = rounded(problem, run.scales)
    coins = Coins.draw(seed, budget=budget, arms=len(problem.arms), size=problem.exploration.noise)
    seen = reals(np.array(lists, object), run.scales.index)
    paid = reals(words(exact.arms @ exact.theta, run.scales.reward), run.scales.reward)[run.arms] + coins.noise
    found = _comp(exact, seen, np.array(run.arms), paid, np.argsort(-coins.ties[1:], axis=1))
    return Attacked(found, cosine(estimate(exact.arms, run.arms, coins.noise, exact.exploration), exact.theta))


def shown(problem: LinearProblem, budget: int, seed: int) -> Attacked:
    """On shares, arms shown to the computing parties."""
    settings = Settings.of(problem, budget)
    run, coins = simulate(Outsourced(settings, 2, seed, problem), seed=seed), own_coins(settings, seed)
    assert run.arms is not None
    return Attacked(None, cosine(estimate(settings.arms, run.arms, coins.noise, problem.exploration), problem.theta))


def hidden(problem: LinearProblem, budget: int, seed: int) -> tuple[Attacked, Attacked]:
    """On shares, arms hidden; and beside it the same attackers of the same run with random numbers for their view."""
    view = HiddenView(problem, budget, seed)
    rng = np.random.default_rng(seed)
    masks = np.pad(rng.integers(-(1 << 63), 1 << 63, view.lists[:, 1:].shape) * _UNIT, ((0, 0), (1, 0)))
    blind = rng.integers(len(problem.arms), size=budget)
    return _without_arms(problem, view, view.lists, view.own_arms, rng), _without_arms(problem, view, masks, blind, rng)


def _without_arms(
    problem: LinearProblem, truth: HiddenView, lists: np.ndarray, arms: np.ndarray, rng: np.random.Generator
) -> Attacked:
    """P's noise is nobody's here, so the attacker makes up its own."""
    paid = (problem.arms @ problem.theta)[truth.pulled] + truth.noise
    places = np.tile(np.arange(len(problem.arms)), (len(lists), 1))  # differences stand by arm
    made_up = rng.choice([-1.0, 1.0], len(arms)) * problem.exploration.noise
    found = estimate(problem.arms, arms.tolist(), made_up, problem.exploration)
    return Attacked(_comp(problem, lists, truth.pulled, paid, places), cosine(found, problem.theta))


class HiddenView:
    """What a computing party gets hold of in a run with hidden arms, beside what really was.

    lists: (N - 1, K) differences of the first arm's index and the others', as opened.  own_arms: where the party's
    share of each one-hot is largest.  pulled, noise: the truth.
    """

    def __init__(self, problem: LinearProblem, budget: int, seed: int, *, party: int = 1) -> None:
        arms = len(problem.arms)
        pairs = arms * (arms - 1) // 2
        opened: list[np.ndarray] = []

        def listener(request: Request, _: np.ndarray, reply: Any) -> None:
            if isinstance(request, Open) and request.words.shape[1:] == (pairs,) and not request.xor:
                differences = np.asarray(reply).astype(np.uint64)[: arms - 1].view(np.int64)
                opened.append(np.concatenate([[0.0], differences * _UNIT]))

        settings = Settings.of(problem, budget, hide=True)
        simulation = Simulation(Outsourced(settings, 2, seed, problem), seed=seed, listener=listener)
        for _ in range(budget):
            simulation.turn()
        simulation.player.finish()
        assert isinstance(simulation.player, HiddenArms)
        assert len(opened) == budget, "one comparison of all pairs a pull"
        self.lists = np.array(opened[1:])
        self.pulled = np.array(pulled(simulation.player))
        self.noise = replayed(settings, seed, simulation.dealer.coin_key, simulation.rehearsed.turn).noise
        self.own_arms = np.array([int(onehot[party].argmax()) for onehot in simulation.player.chosen])


def _comp(
    problem: LinearProblem, lists: np.ndarray, arms: np.ndarray, paid: np.ndarray, orders: np.ndarray
) -> CompFound:
    found = recover(lists, problem.arms, problem.exploration)
    size = float(np.linalg.norm(problem.theta)) or 1.0
    exact = without_signs(found, problem.arms, problem.exploration.noise)
    return CompFound(
        arms=float((found.arms == arms).mean()),
        orders=float((found.orders == orders).mean()),
        reward=float(np.abs(found.rewards - paid[:-1]).max()),
        theta=_error(found, problem) / size,
        exact=None if exact is None else float(np.linalg.norm(exact - problem.theta)) / size,
    )


def _error(found: Recovered, problem: LinearProblem) -> float:
    return float(np.linalg.norm(found.theta - problem.theta))

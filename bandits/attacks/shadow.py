"""A likelihood-ratio attack with shadow bandits, in the spirit of LiRA (Carlini et al. 2022).

For a target context the adversary plays the bandit many times with the target in the stream and many times with its
double, on fresh coins, and compares a number T that the released policy shows of the target with those of the shadows.
It knows all other contexts and what every arm would have paid; it lacks the coins.

    score = (T - m) / sqrt(v)        m, v: mean and variance of T over the other shadows, both sides

It orders targets as the likelihood ratio does if T is normal with variance v on both sides and its mean is higher by
the same multiple of sqrt(v) where the target was learned from.  (Means and variances fitted to each side apart found
less: the difference within a target is below what 16 shadows can tell.)  Three adversaries, three numbers:

- ARMS sees the arms that the released policy pulls on 32 queries of the target: T is the share of those that would have
  paid when the target was played.  What an arm pays on a query follows from target and arm alone, learned from or not,
  so rewards of queries add nothing.
- WEIGHTS holds the released weights: T = -sum over a of (r_a - w_a . x)^2, how well they fit what arms would have paid.
- STATE holds the inverse matrices P_a too: T = sum over a of x' P_a^-1 x.  The sum of all P_a^-1 is that of all x x',
  whatever was pulled, so T is known to the adversary on both sides: nothing is hidden from it.

The parties of the private bandit hold shares of weights and matrices; nobody holds what WEIGHTS and STATE do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..choice import arm_probabilities
from ..environments import Environment
from ..linear import Choice
from .advantage import measure
from .game import Game, Learner, Plan, Row, Watch

QUERIES = 32
ARMS, WEIGHTS, STATE = f"arms of {QUERIES} queries", "the released weights", "the released weights and matrices"
_SHADOWS = 16  # on each side of a target
_FLOOR = 1e-8  # of a variance


def shadow(environment: Environment, plan: Plan, learner: Learner, watch: Watch) -> list[Row]:
    """At each checkpoint; a run is a target with a stream of its own.

    Every bandit takes its turn as the released one and is judged by its target's other shadows.
    """
    rng, done = plan.rng(1), 0
    found: dict[tuple[str, int], list[np.ndarray]] = {
        (knows, end): [] for knows in (ARMS, WEIGHTS, STATE) for end in plan.ends
    }
    for targets in plan.portions(environment, 2 * _SHADOWS, 8):
        game = Game.draw(environment, plan, targets, rng)
        for step, shown in _play(game, environment, plan, learner, rng):
            for knows, number in shown.items():
                found[knows, step].append(deviations(number))
            watch((done + step * targets) // plan.runs)
        done += plan.steps * targets
    scores = {place: np.concatenate(parts) for place, parts in found.items()}
    return [Row("shadow", *place, measure(both[:, 0], both[:, 1])) for place, both in scores.items()]


def deviations(number: np.ndarray) -> np.ndarray:
    """(targets, 2, shadows) scores from (targets, 2, shadows) numbers.

    Judged by all shadows but itself and its partner on the other side, so that members and others are judged alike.
    """
    centred = number - number.mean(axis=(1, 2), keepdims=True)
    judges = number.shape[2] - 1
    mean, square = (
        ((power.sum(axis=2, keepdims=True) - power) / judges).mean(axis=1, keepdims=True)
        for power in (centred, centred**2)
    )
    return np.asarray((centred - mean) / np.sqrt(np.maximum(square - mean**2, _FLOOR)))


def _play(
    game: Game, environment: Environment, plan: Plan, learner: Learner, rng: np.random.Generator
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Steps done and, at a checkpoint, the (targets, 2, shadows) numbers that each adversary sees."""
    targets = len(game.at)
    stream = np.repeat(np.arange(targets), 2 * _SHADOWS)[:, None]
    policy = learner(stream.size)
    asked = np.repeat(environment.contexts[game.pair[:, 0]], 2 * _SHADOWS, axis=0)
    outcomes = np.zeros((targets, environment.arms))
    for step in range(plan.steps):
        rows = np.repeat(game.rows(step), _SHADOWS)[:, None]
        x, choice = environment.contexts[rows], Choice.draw(rng, len(rows), environment.arms, plan.eps)
        arms, coins = choice.pick(policy.scores(x, choice)), rng.random((targets, environment.arms))
        policy.update(x, arms, (coins[stream, arms] < environment.chances[rows, arms]).astype(np.float64))
        here = (game.at == step)[:, None]
        outcomes = np.where(here, coins < environment.chances[game.pair[:, 0]], outcomes)
        shown = {}
        if step + 1 in plan.ends:
            would_pay = outcomes[stream[:, 0]]
            queried = arm_probabilities(policy.scores(asked[:, None], choice)[:, 0], plan.eps)
            fit = (would_pay - policy.predictions(asked[:, None])[:, 0]) ** 2
            solved = np.linalg.solve(policy.inverse, asked[:, None, :, None])[..., 0]
            shown = {
                ARMS: (rng.multinomial(QUERIES, queried) * would_pay).sum(axis=1) / QUERIES,
                WEIGHTS: -fit.sum(axis=1),
                STATE: np.einsum("rd,rad->r", asked, solved),
            }
        yield step + 1, {knows: number.reshape(targets, 2, _SHADOWS) for knows, number in shown.items()}

"""The attack on the whole sequence of arms and rewards, a_1 r_1 .. a_T r_T: what puller and payer see together.

    log-ratio = sum over s of  log pi_s(a_s | target at step t) - log pi_s(a_s | double at step t)

pi_s are the chances with which epsilon-greedy pulls, from replaying the learner on the one and on the other history.
Each term is at most one step's eta in absolute value, whatever is replayed: this is the test that differential
privacy bounds.  A context tells through its own arm, and through later arms by what was learned from it.  Five
adversaries; the first three know all other contexts, the target, its double and the step:

- ONE_ARM uses the arm of step t alone; epsilon-greedy caps its advantage at 1 - eps.
- REPLAY uses all arms.
- CHANCES knows besides how likely an arm pays for a context, and uses the reward of step t as well.  The privacy of
  the arms does not cover it.
- PUBLIC knows target, step and the public distribution, and has the outsider's likelihoods instead of a replay.
- ANYWHERE is PUBLIC without the step: was the target met at any step so far?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..choice import arm_probabilities
from ..environments import Environment
from ..linear import Choice
from .advantage import measure
from .game import Game, Learner, Plan, Row, Watch
from .outsider import Outsider

ONE_ARM = "all other contexts: the arm of its step"
REPLAY = "all other contexts: all arms"
CHANCES = "all other contexts and chances: all arms, rewards"
PUBLIC = "public contexts: the arm of its step"
ANYWHERE = "public contexts, not its step: all arms"
_OF_ONE_STEP = (ONE_ARM, PUBLIC)


class Seen(NamedTuple):
    """(streams, 2) log-ratios in the two worlds; largest: (streams,) of any one arm so far, in absolute value."""

    ratios: dict[str, np.ndarray]
    largest: np.ndarray


def sequence(environment: Environment, plan: Plan, learner: Learner, watch: Watch) -> list[Row]:
    """At each checkpoint; a run is a stream, played once in each of its worlds.

    learner: of a policy whose scores are not random.  What rests on one step has one row, at the first checkpoint.
    """
    rng, done = plan.rng(2), 0
    found: dict[int, list[Seen]] = {end: [] for end in plan.ends}
    for streams in plan.portions(environment, 4, 8):
        game = Game.draw(environment, plan, streams, rng)
        for step, seen in played(game, environment, plan, learner, rng):
            if seen is not None:
                found[step].append(seen)
            watch((done + step * streams) // plan.runs)
        done += plan.steps * streams
    return [
        _row(knows, end, found[end])
        for knows in (ONE_ARM, REPLAY, CHANCES, PUBLIC, ANYWHERE)
        for end in plan.ends
        if end == plan.ends[0] or knows not in _OF_ONE_STEP
    ]


def _row(knows: str, end: int, portions: list[Seen]) -> Row:
    both = np.concatenate([seen.ratios[knows] for seen in portions])
    advantage, most = measure(both[:, :1], both[:, 1:]), float(np.abs(both).max())
    if knows in _OF_ONE_STEP:
        return Row("sequence", knows, end, advantage, most, most)
    if knows == REPLAY:
        return Row("sequence", knows, end, advantage, max(float(seen.largest.max()) for seen in portions), most)
    return Row("sequence", knows, end, advantage)


def played(
    game: Game, environment: Environment, plan: Plan, learner: Learner, rng: np.random.Generator
) -> Iterator[tuple[int, Seen | None]]:
    """Steps done, and at a checkpoint what is seen.

    Replicas are (streams, worlds, hypotheses): in each world the bandit, and a replay of its arms and rewards on the
    other world's contexts.
    """
    streams, world = len(game.at), np.arange(2)
    stream = np.arange(streams)[:, None]
    policy = learner(4 * streams)
    outsider = Outsider(environment, game.public, plan.eps, learner, rng)
    targets = environment.contexts[game.pair[:, 0]]
    one_arm, replay, reward, public, anywhere = (np.zeros((streams, 2)) for _ in range(5))
    largest = np.zeros(streams)
    for step in range(plan.steps):
        rows, here = game.rows(step), (game.at == step)[:, None]
        x = environment.contexts[np.tile(rows, 2)].reshape(4 * streams, 1, -1)
        choice = Choice.draw(rng, 2 * streams, environment.arms, plan.eps)
        scores = policy.scores(x, choice).reshape(streams, 2, 2, -1)
        arms = choice.pick(scores[:, world, world].reshape(2 * streams, 1, -1)).reshape(streams, 2)
        rewards = rng.random((streams, environment.arms))[stream, arms] < environment.chances[rows, arms]
        policy.update(x, *(np.repeat(seen, 2).reshape(-1, 1) for seen in (arms, rewards.astype(np.float64))))

        ratio = _log_ratio(arm_probabilities(scores, plan.eps)[stream, world, :, arms])
        likelihoods = outsider.likelihoods(targets)[stream, arms]
        outsider.learn()
        replay += ratio
        anywhere += likelihoods
        largest = np.maximum(largest, np.abs(ratio).max(axis=1))
        if here.any():
            one_arm, public = np.where(here, ratio, one_arm), np.where(here, np.log(likelihoods), public)
            pays = environment.chances[game.pair[:, None, :], arms[:, :, None]]
            reward = np.where(here, _log_ratio(np.where(rewards[..., None], pays, 1.0 - pays)), reward)
        if step + 1 in plan.ends:
            ratios = {
                ONE_ARM: one_arm, REPLAY: replay.copy(), CHANCES: replay + reward, PUBLIC: public,
                ANYWHERE: np.log(anywhere / (step + 1)),
            }  # fmt: skip
            yield step + 1, Seen(ratios, largest)
        else:
            yield step + 1, None


def _log_ratio(pair: np.ndarray) -> np.ndarray:
    """The log of the first of two chances over the second, along the last axis; infinite over 0, nan if both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(pair[..., 0]) - np.log(pair[..., 1]))

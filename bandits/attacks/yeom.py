"""The attack of Yeom, Giacomelli, Fredrikson and Jha (2018), as Hannun et al. use it on a bandit.

    member  if  p_train(r | a) > p_test(r | a),  a coin on equality

The adversary sees one arm and its reward, and knows how rewards follow arms among contexts that were learned from and
among others, which are rows that are not played, or the data set's own where it brings some to hold out.  Both
conditionals are counted on one half of the samples and used on the other half.  Where they are counted on the very
samples that they are used on, as the paper may have done, chance adds to the advantage: `by_run` has both.

The policy of the checkpoint chooses the arms of all samples alike, exploration included.  A member's reward is the one
drawn for that arm at the step when it was played: for the arm that was then pulled it is the very reward that was
learned from, which is what a learner could have memorised; for any other arm nobody has seen it, so it is as good as
new.  The reward of a held-out context is drawn.  A row that was played twice is two members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..environments import Environment
from ..linear import Choice, LinearBandit
from .advantage import measure
from .game import Learner, Plan, Row, Watch, in_turn, split

PAIR = "an arm and its reward"
_AT_ONCE = 200_000  # scores in memory
_MOST_MEMBERS = 10_000  # as many as a test file has; a sample of those of a longer run


class Samples(NamedTuple):
    """(runs, samples) arms and rewards, 0 or 1."""

    arms: np.ndarray
    rewards: np.ndarray


def yeom(environment: Environment, plan: Plan, learner: Learner, watch: Watch) -> list[Row]:
    """At each checkpoint; a run is a bandit with a split of its own."""
    rng, done = plan.rng(0), 0
    found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {end: [] for end in plan.ends}
    for runs in plan.portions(environment, 1, 16 * environment.arms):
        for step, samples in _play(runs, environment, plan, learner, rng):
            if samples is not None:
                found[step].append(likelihoods(*samples, environment.arms))
            watch((done + step * runs) // plan.runs)
        done += plan.steps * runs
    return [
        Row("yeom", PAIR, end, measure(*(np.concatenate(side) for side in zip(*parts, strict=True))))
        for end, parts in found.items()
    ]


class Advantages(NamedTuple):
    """At one checkpoint, (runs,): counted on one half and used on the other, and counted on what they are used on."""

    step: int
    apart: np.ndarray
    same: np.ndarray


def by_run(environment: Environment, plan: Plan, learner: Learner) -> list[Advantages]:
    """The advantage of each run alone, at each checkpoint; P(said | member) - P(said | other), a coin counts 1/2."""
    rng = plan.rng(0)
    found: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {end: [] for end in plan.ends}
    for runs in plan.portions(environment, 1, 16 * environment.arms):
        for step, samples in _play(runs, environment, plan, learner, rng):
            if samples is not None:
                both = [likelihoods(*samples, environment.arms, apart=apart) for apart in (True, False)]
                found[step].append((_said(*both[0]), _said(*both[1])))
    return [
        Advantages(end, *(np.concatenate(side) for side in zip(*parts, strict=True))) for end, parts in found.items()
    ]


def _said(members: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.asarray((np.sign(members).mean(axis=1) - np.sign(others).mean(axis=1)) / 2.0)


def likelihoods(members: Samples, others: Samples, arms: int, *, apart: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """log p_train(r | a) - log p_test(r | a) for every second sample of members and others, counted on the rest.

    0, a coin, for an arm that one side never pulled and for a reward that neither side saw.
    apart: if not, counted on all samples, for all of them.
    """
    counted, used = (slice(0, None, 2), slice(1, None, 2)) if apart else (slice(None), slice(None))
    tables = [_conditional(Samples(*(column[:, counted] for column in side)), arms) for side in (members, others)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(tables[0]) - np.log(tables[1])
    ratio[np.isnan(ratio)] = 0.0
    run = np.arange(len(ratio))[:, None]
    scores = [ratio[run, side.arms[:, used], side.rewards[:, used]] for side in (members, others)]
    return scores[0], scores[1]


def _conditional(samples: Samples, arms: int) -> np.ndarray:
    """(runs, arms, 2): the share of each reward among the pulls of an arm; nan for an arm never pulled."""
    runs = len(samples.arms)
    place = (np.arange(runs)[:, None] * arms + samples.arms) * 2 + samples.rewards
    counts = np.bincount(place.ravel(), minlength=2 * arms * runs).reshape(runs, arms, 2)
    with np.errstate(invalid="ignore"):
        shares: np.ndarray = counts / counts.sum(axis=-1, keepdims=True)
    return shares


def _play(
    runs: int, environment: Environment, plan: Plan, learner: Learner, rng: np.random.Generator
) -> Iterator[tuple[int, tuple[Samples, Samples] | None]]:
    """Steps done and, at a checkpoint, samples of members and of held-out contexts."""
    source = environment.held_out or environment
    parts = [_parts(environment, plan.steps, rng) for _ in range(runs)]
    stream = np.concatenate([in_turn(played, plan.steps, 1, rng) for played, _ in parts])
    others = np.stack([held_out[: plan.steps] for _, held_out in parts])
    paid = _drawn(environment, stream, rng)
    policy, run = learner(runs), np.arange(runs)
    for step in range(plan.steps):
        x, choice = environment.contexts[stream[:, step, None]], Choice.draw(rng, runs, environment.arms, plan.eps)
        arms = choice.pick(policy.scores(x, choice))
        policy.update(x, arms, paid[run, step, arms[:, 0], None].astype(np.float64))
        samples = None
        if step + 1 in plan.ends:
            met = np.linspace(0, step, min(step + 1, _MOST_MEMBERS)).astype(int)  # evenly from the first to the last
            samples = (
                _answers(policy, environment, stream[:, met], paid[:, met], plan.eps, rng),
                _answers(policy, source, others, _drawn(source, others, rng), plan.eps, rng),
            )
        yield step + 1, samples


def _parts(environment: Environment, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to play, and rows to hold out, of the data set itself or of what it brings for that."""
    if environment.held_out is None:
        return split(environment, steps, rng)
    return rng.permutation(len(environment.contexts)), rng.permutation(len(environment.held_out.contexts))


def _drawn(environment: Environment, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What every arm pays for each of the rows."""
    return np.asarray(rng.random((*rows.shape, environment.arms)) < environment.chances[rows])


def _answers(
    policy: LinearBandit, environment: Environment, rows: np.ndarray, paid: np.ndarray, eps: float,
    rng: np.random.Generator,
) -> Samples:  # fmt: skip
    """What the policy pulls for (runs, samples) rows as it is now, and what that pays."""
    runs, samples = rows.shape
    width = max(1, _AT_ONCE // (runs * environment.arms))
    parts = []
    for first in range(0, samples, width):
        x = environment.contexts[rows[:, first : first + width]]
        choice = Choice.draw(rng, runs, environment.arms, eps, batch=x.shape[1])
        parts.append(choice.pick(policy.scores(x, choice)))
    arms = np.concatenate(parts, axis=1)
    return Samples(arms, np.take_along_axis(paid, arms[..., None], axis=2)[..., 0].astype(np.int64))

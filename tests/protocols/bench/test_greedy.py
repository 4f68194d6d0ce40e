"""A run without exploration is judged by itself: the arms of a ridge regression pass, and one other arm does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bandits.data import load
from protocols.bench.faults_cases import CASES, Result
from protocols.bench.greedy import departure

ARMS, DIM, STEPS = 3, 4, 60


@pytest.fixture(scope="module")
def played() -> Result:
    """What a run would leave: of equal scores the first arm is pulled."""
    episode = load("synthetic", arms=ARMS, dim=DIM).episode(STEPS, 1)
    gram, sums, arms = np.stack([np.eye(DIM)] * ARMS), np.zeros((ARMS, DIM)), list[int]()
    for context, outcomes in zip(episode.contexts, episode.outcomes, strict=True):
        arms.append(int(np.argmax([context @ np.linalg.solve(gram[arm], sums[arm]) for arm in range(ARMS)])))
        gram[arms[-1]] += np.outer(context, context)
        sums[arms[-1]] += outcomes[arms[-1]] * context
    rewards = episode.outcomes[np.arange(STEPS), arms]
    return Result({}, {"arms": np.array(arms)[:, None], "rewards": rewards[:, None]})


def test_the_arms_of_the_regression_pass_and_no_other(played: Result) -> None:
    contexts = load("synthetic", arms=ARMS, dim=DIM).episode(STEPS, 1).contexts
    arms, rewards = played.steps["arms"][:, 0].tolist(), played.steps["rewards"][:, 0].tolist()
    assert departure(contexts, arms, rewards, ARMS) == ""
    found = []
    for at in range(10, STEPS):
        wrong = [*arms[:at], (arms[at] + 1) % ARMS, *arms[at + 1 :]]
        found.append(departure(contexts, wrong, rewards, ARMS))
    assert sum(bool(words) for words in found) >= 0.95 * len(found), "two scores may be near each other"
    assert any(words.startswith("arm ") and "of decision 10 scores" in words for words in found)


def test_a_run_with_material_is_judged_by_its_own_arms_and_by_what_they_are_paid(played: Result) -> None:
    case = next(case for case in CASES if case.name == "ppcb material")
    assert case.same(played, played) == ""
    arms, rewards = played.steps["arms"].copy(), played.steps["rewards"].copy()
    rewards[7] = 1 - rewards[7]
    assert case.same(replace(played, steps={"arms": arms, "rewards": rewards}), played) == "decision 7 was not paid so"
    arms[30:] = (arms[30:] + 1) % ARMS
    outcomes = load("synthetic", arms=ARMS, dim=DIM).episode(STEPS, 1).outcomes
    wrong = {"arms": arms, "rewards": outcomes[np.arange(STEPS), arms[:, 0]][:, None]}
    assert case.same(replace(played, steps=wrong), played).startswith("arm ")
    assert case.same(replace(played, steps={name: each[:50] for name, each in wrong.items()}), played)

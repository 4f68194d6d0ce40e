"""The privacy of a step, against the exact chances of epsilon-greedy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandits import arm_probabilities
from bandits.privacy import advanced, basic, eps_for, eta_bound, eta_per_step

CASES = [(arms, eps) for arms in (2, 5, 10, 100) for eps in (0.01, 0.1, 0.5, 1.0)]


@pytest.mark.parametrize(("arms", "eps"), CASES)
def test_eta_is_the_largest_ratio_of_chances(arms: int, eps: float) -> None:
    scores = np.arange(arms)
    chances = [arm_probabilities(np.roll(scores, shift), eps) for shift in range(arms)]
    largest = max(np.log(a / b).max() for a in chances for b in chances[:3])
    assert eta_per_step(arms, eps) == pytest.approx(largest, abs=1e-12)
    assert eta_per_step(arms, eps) <= eta_bound(arms, eps) + 1e-12


@pytest.mark.parametrize(("arms", "eps"), CASES)
def test_the_inverse_gives_back_eps(arms: int, eps: float) -> None:
    assert eps_for(arms, eta_per_step(arms, eps)) == pytest.approx(eps)


def test_ends() -> None:
    assert eta_per_step(10, 0.0) == math.inf and eta_bound(10, 0.0) == math.inf
    assert eta_per_step(1, 0.1) == 0.0
    assert eps_for(10, math.inf) == 0.0
    for wrong in (lambda: eta_per_step(0, 0.1), lambda: eta_per_step(2, 1.5), lambda: advanced(1.0, 5, 0.0)):
        with pytest.raises(ValueError, match=r"needed|probability"):
            wrong()


def test_advanced_composition_wins_for_many_private_steps() -> None:
    assert advanced(0.01, 10_000, 1e-6) < basic(0.01, 10_000)
    assert advanced(5.0, 10, 1e-6) > basic(5.0, 10)

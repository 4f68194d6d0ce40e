"""The audit finds choosers that leak, and holds its confidence on those that do not."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="the extra 'privacy' is not installed")

from bandits import arm_probabilities, best_arms, epsilon_greedy
from bandits.audit import Chooser, audit, count, lower_bound, opposite_scores
from bandits.privacy import eta_per_step


def plaintext(eps: float, seed: int) -> Chooser:
    rng = np.random.default_rng(seed)
    return lambda scores: epsilon_greedy(scores, eps, rng)


def never_the_worst(eps: float, seed: int) -> Chooser:
    """Explores among all arms but the one with the smallest index of the lowest score: a leak without bound."""
    rng = np.random.default_rng(seed)

    def choose(scores: np.ndarray) -> np.ndarray:
        onehot = epsilon_greedy(scores, eps, rng)
        worst = np.eye(scores.shape[-1], dtype=np.int64)[scores.argmin(axis=-1)]
        return np.where((onehot & worst).any(axis=-1, keepdims=True), best_arms(scores), onehot)

    return choose


@pytest.mark.parametrize(("arms", "eps"), [(2, 0.5), (10, 0.1), (5, 1.0), (1, 0.3)])
def test_epsilon_greedy_respects_its_eta_and_the_bound_is_near(arms: int, eps: float) -> None:
    """100,000 runs on each context, on a fixed seed.  Exceeds eta at p < 1e-3."""
    finding = audit(plaintext(eps, 1), arms, runs=100_000)
    eta = eta_per_step(arms, eps)
    assert eta - 0.3 < finding.lower <= eta
    assert finding.runs == 100_000


def test_half_the_exploration_is_found() -> None:
    """eps is half of what is stated: the bound passes the stated eta."""
    assert audit(plaintext(0.05, 2), 10, runs=30_000).lower > eta_per_step(10, 0.1)


def test_an_arm_that_is_never_explored_is_found() -> None:
    finding = audit(never_the_worst(0.1, 3), 10, runs=30_000)
    assert finding.lower > eta_per_step(10, 0.1)


@pytest.mark.parametrize("swapped", [False, True])
def test_both_directions_are_looked_at(swapped: bool) -> None:
    """Arm 0 is rare under one context, 0.5 and 0.05; the other arms differ by less than 2."""
    counts = np.array([[500, 250, 250], [50, 475, 475]])[:: -1 if swapped else 1]
    finding = lower_bound(counts, counts, confidence=0.999)
    assert finding.arm == 0
    assert np.log(10) - 0.7 < finding.lower < np.log(10)


def test_the_event_comes_from_the_held_out_half() -> None:
    """Arm 0 stands out in the held-out half only, arm 1 in the tested half only: nothing may be claimed."""
    held_out = np.array([[800, 100, 100], [100, 450, 450]])
    tested = np.array([[333, 1, 666], [333, 600, 67]])
    finding = lower_bound(held_out, tested, confidence=0.999)
    assert (finding.arm, finding.lower) == (0, 0.0)
    assert lower_bound(tested, tested, confidence=0.999).lower > 3


def test_the_confidence_is_kept() -> None:
    """2,000 audits at 90 %: an eta-private chooser passes its eta in at most 10 % of them, up to 4 deviations."""
    arms, eps, rng = 4, 0.4, np.random.default_rng(4)
    chances = np.stack([arm_probabilities(scores, eps) for scores in opposite_scores(arms)])
    above = 0
    for _ in range(2000):
        halves = [np.stack([rng.multinomial(200, row) for row in chances]) for _ in range(2)]
        above += lower_bound(*halves, confidence=0.9).lower > eta_per_step(arms, eps)
    assert 0 < above <= 2000 * 0.1 + 4 * np.sqrt(2000 * 0.09)


def test_every_run_is_counted_once() -> None:
    said: list[int] = []
    sizes: list[int] = []

    def choose(scores: np.ndarray) -> np.ndarray:
        sizes.append(len(scores))
        return best_arms(scores)

    assert count(choose, np.array([0.0, 1.0, 0.5]), 25, batch=10).tolist() == [0, 25, 0]
    assert sizes == [10, 10, 5]
    assert audit(choose, 3, runs=25, batch=10, progress=said.append).runs == 25
    assert said[-1] == 50 and sorted(set(said)) == said


@pytest.mark.parametrize(
    "pulled",
    [lambda scores: np.zeros(scores.shape, int), lambda scores: np.ones(scores.shape, int),
     lambda scores: scores.argmax(axis=-1)],
    ids=["no arm", "all arms", "indices"],
)  # fmt: skip
def test_what_is_not_one_arm_a_row_is_refused(pulled: Chooser) -> None:
    with pytest.raises(ValueError, match="one arm"):
        audit(pulled, 3, runs=10)


def test_mistakes_say_the_cure() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        audit(plaintext(0.1, 5), 3, runs=1)
    with pytest.raises(ValueError, match="probability"):
        audit(plaintext(0.1, 5), 3, runs=10, confidence=1.0)

"""Argmax: one-hot and correct down to the last unit, ties uniform, exploration as stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits import arm_probabilities, best_arms
from mpc import Session, ops
from mpc.ops import Compare, Keys
from mpc.ops.argmax import unique_keys
from mpc.share import Share
from tests.oracles import stats

Fixture = Callable[..., Any]
WAYS: dict[str, Callable[..., Any]] = {
    "all pairs": ops.argmax,
    "tournament": ops.argmax_tournament,
    "published": ops.argmax_published,
}


def chosen(
    session: Session, evaluate: Fixture, scores: np.ndarray, way: str = "all pairs", scale: int = 0, **rest: Any
) -> np.ndarray:
    """The one-hot rows, checked to be one-hot."""
    onehot = evaluate(session, WAYS[way](session, session.share(scores, scale=scale), **rest))
    assert onehot.shape == scores.shape
    assert ((onehot == 0) | (onehot == 1)).all() and (onehot.sum(axis=-1) == 1).all()
    return onehot


@pytest.mark.parametrize("how", Compare)
@pytest.mark.parametrize("arms", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("way", WAYS)
def test_the_largest_wins(
    way: str, arms: int, how: Compare, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Distinct scores, to the edge of the range, with batch axes."""
    session, rng = simulate(parties), np.random.default_rng(arms)
    scores = np.stack([rng.permutation(np.linspace(-(2**43) + 1, 2**43 - 1, arms).astype(np.int64)) for _ in range(6)])
    scores = scores.reshape(2, 3, arms)
    assert (chosen(session, evaluate, scores, way, how=how) == best_arms(scores)).all()
    assert (chosen(session, evaluate, scores[0, 0], way, how=how) == best_arms(scores[0, 0])).all()


@pytest.mark.parametrize("way", ["all pairs", "tournament"])
def test_a_gap_of_one_unit_decides_among_64_arms(way: str, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, rng = simulate(parties), np.random.default_rng(13)
    scores = np.stack([rng.permutation(64) for _ in range(8)]) * 2.0**-20 - 3.0
    assert (chosen(session, evaluate, scores, way, scale=20) == best_arms(scores)).all()


@pytest.mark.parametrize("group", [1, 2, 3, 7, 10, 12])
def test_groups_of_any_size(group: int, simulate: Fixture, evaluate: Fixture) -> None:
    """With scores at the lower end, so that padding must lie below them."""
    scores = np.random.default_rng(14).permuted(np.tile(np.arange(10) - 2**43 + 1, (5, 1)), axis=-1)
    assert (chosen(simulate(3), evaluate, scores, "tournament", group=group) == best_arms(scores)).all()


@pytest.mark.parametrize("way", WAYS)
def test_ties_are_broken_uniformly(way: str, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Three of five arms tie in 6,000 rows.  Rejects at p < 1e-6, on a fixed seed."""
    scores = np.tile([4, 7, 7, -2, 7], (6000, 1))
    counts = chosen(simulate(parties), evaluate, scores, way, score_bits=8).sum(axis=0)
    assert counts[0] == counts[3] == 0
    assert stats.chisquare(counts[[1, 2, 4]]).pvalue > 1e-6


@pytest.mark.parametrize("way", ["all pairs", "tournament"])
@pytest.mark.parametrize("arms", [2, 5, 8])
def test_exploration_is_epsilon_greedy(way: str, arms: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Joint counts of 8,000 rows against bandits.arm_probabilities.  Rejects at p < 1e-6, on a fixed seed.

    The score of the best arm is as far above the others as the range allows: exploration must still pass it.
    """
    eps, scores = 0.3, np.full(arms, -(2**15) + 1)
    scores[arms // 2] = 2**15 - 1
    onehot = chosen(simulate(parties, 2), evaluate, np.tile(scores, (8000, 1)), way, score_bits=16, eps=eps)
    expected = arm_probabilities(scores, eps) * len(onehot)
    assert stats.chisquare(onehot.sum(axis=0), expected).pvalue > 1e-6


def test_exploration_with_a_tie(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Rejects at p < 1e-6, on a fixed seed."""
    scores = np.array([1, 1, 0])
    onehot = chosen(simulate(parties), evaluate, np.tile(scores, (8000, 1)), score_bits=16, eps=0.25)
    assert stats.chisquare(onehot.sum(axis=0), arm_probabilities(scores, 0.25) * 8000).pvalue > 1e-6


@pytest.mark.parametrize("way", ["all pairs", "tournament"])
def test_the_ends_of_epsilon(way: str, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session, scores = simulate(parties), np.tile([1, 9, 5, 3], (4000, 1))
    greedy = chosen(session, evaluate, scores, way, score_bits=16, eps=0.0)
    assert (greedy == best_arms(scores)).all()
    uniform = chosen(session, evaluate, scores, way, score_bits=16, eps=1.0).sum(axis=0)
    assert stats.chisquare(uniform).pvalue > 1e-6  # rejects at p < 1e-6, on a fixed seed


@pytest.mark.parametrize("eps", [0.0, 0.5])
@pytest.mark.parametrize("blur", [0, 1, 3, 12])
@pytest.mark.parametrize("arms", [1, 2, 3, 4, 5, 8, 9, 64])
def test_keys_are_unique_and_fit_their_width(
    arms: int, blur: int, eps: float, simulate: Fixture, reveal: Fixture
) -> None:
    """At both ends of the range, which blur makes smaller; with padding of a tournament below all."""
    session, keys, reach = simulate(2), Keys(arms, 20, eps, blur), 2**19 - (2**blur if blur else 1)
    scores = np.tile(np.where(np.arange(arms) % 2, reach, -reach), (300, 1))
    noisy: Share = unique_keys(session, session.share(scores, scale=0), keys)
    words = reveal(noisy)
    assert all(len(set(row)) == arms for row in words.tolist())
    padding = -(1 << (keys.high - 1))
    assert padding < words.min() and words.max() - padding < 1 << (keys.width - 1)
    over = words - (scores << keys.shift)
    plain = (over >= 0) & (over < 1 << max(keys.tie, blur))
    assert plain.all() if eps == 0.0 else 0.3 < plain.all(axis=-1).mean() < 0.9 or arms == 1


@pytest.mark.parametrize("way", ["all pairs", "tournament"])
@pytest.mark.parametrize(("arms", "blur"), [(5, 9), (5, 2), (5, 1), (9, 7), (2, 4)])
def test_an_order_that_reaches_into_scores_decides_where_they_are_close(
    way: str, arms: int, blur: int, parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Close arms win uniformly, whatever the rest of them; what is lower by 2^blur never does.  At p < 1e-6."""
    keys = Keys(arms, 20, 0.0, blur)
    scores = np.full(arms, -(2**blur))
    scores[1:] += 2**blur - ((1 << keys.place) - 1) * (np.arange(1, arms) % 2)
    onehot = chosen(simulate(parties), evaluate, np.tile(scores, (3000, 1)), way, score_bits=20, blur=blur)
    counts = onehot.sum(axis=0)
    assert counts[0] == 0
    assert arms == 2 or stats.chisquare(counts[1:]).pvalue > 1e-6


def test_an_order_that_reaches_into_scores_hides_no_exploration(
    parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Arms further apart than 2^blur are epsilon-greedy as ever.  Rejects at p < 1e-6, on a fixed seed."""
    scores = np.array([-(2**15) + 600, 2**15 - 600, 0])
    onehot = chosen(simulate(parties), evaluate, np.tile(scores, (6000, 1)), score_bits=16, eps=0.3, blur=9)
    assert stats.chisquare(onehot.sum(axis=0), arm_probabilities(scores, 0.3) * 6000).pvalue > 1e-6


def test_the_largest_value(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    session = simulate(parties)
    scores = session.share(np.random.default_rng(15).integers(-1000, 1000, (2, 3, 5)) * 2.0**-5)
    onehot = session.run(ops.argmax(session, scores))
    best = evaluate(session, ops.max_value(session, scores, onehot))
    clear = np.random.default_rng(15).integers(-1000, 1000, (2, 3, 5)) * 2.0**-5
    assert (best == clear.max(axis=-1)).all()

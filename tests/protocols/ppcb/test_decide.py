"""A decision: among eligible arms only, fair in its exploration, and by the index that its policy promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bandits.environments import unit_rows
from bandits.linear import LinearBandit
from mpc import RangeError
from mpc.correlations import Gaussian
from protocols.ppcb.bonus import with_bonus
from protocols.ppcb.run import twin_of
from protocols.ppcb.settings import Argmax, Policy, Settings
from tests.oracles import stats

from .runs import Parts, clear, name_of, settings

CHANGES: list[dict[str, Any]] = [
    {},
    {"argmax": Argmax.CIRCUIT},
    {"argmax": Argmax.TOURNAMENT},
    {"policy": Policy.LINUCB},
    {"policy": Policy.THOMPSON},
]


def learned(given: Settings, seed: int = 3) -> LinearBandit:
    """A twin that has seen twenty contexts of each replica."""
    twin, rng = twin_of(given), np.random.default_rng(seed)
    shape = given.replicas, 20
    x = unit_rows(rng.normal(size=(given.replicas * 20, given.dim))).reshape(*shape, given.dim)
    twin.update(x, rng.integers(0, given.arms, shape), rng.random(shape))
    return twin


def contexts(given: Settings, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = given.replicas, given.batch, given.dim
    return unit_rows(rng.normal(size=(given.replicas * given.batch, given.dim))).reshape(shape)


@pytest.mark.parametrize("changes", CHANGES, ids=name_of)
@pytest.mark.parametrize("eligible", [[0, 2, 5], [5], [1, 2, 3, 4], [4, 0], [0, 1, 2, 3, 4, 5]], ids=str)
def test_only_eligible_arms_are_chosen_as_the_twin_chooses(
    changes: dict[str, Any], eligible: list[int], parties: int
) -> None:
    """The twin sees those arms alone, with the coins of the same decision."""
    given = settings(arms=6, replicas=20, batch=2, eps=0.3, owners=parties, **changes)
    twin = learned(given)
    secret, arms = Parts(parties, given, start=twin), np.array(eligible)
    x = contexts(given, 1)
    onehot = secret.decide(x, 0, arms)
    assert onehot.shape == (20, 2, 6)
    assert (onehot.sum(axis=-1) == 1).all() and ((onehot == 0) | (onehot == 1)).all()
    ineligible = np.setdiff1d(np.arange(6), arms)
    assert (onehot[..., ineligible] == 0).all()
    if len(eligible) == 1:
        return
    choice = secret.choice(0)
    scores = twin.scores(x, choice)[..., arms]
    wanted, scores = choice.pick(scores), choice.ranks(scores)
    best = scores.max(axis=-1)
    found = onehot[..., arms].argmax(axis=-1)
    assert (found == wanted)[choice.explore].all()
    close = 2.0**-12 if given.policy is Policy.EPSILON_GREEDY else 2e-3
    assert (best - np.take_along_axis(scores, found[..., None], axis=-1)[..., 0] < close)[~choice.explore].all()


@pytest.mark.parametrize("changes", [{}, {"state_bits": 26}, {"state_bits": 30}, {"batch": 20}], ids=name_of)
def test_arms_that_learned_the_same_are_pulled_as_often(changes: dict[str, Any]) -> None:
    """Each was told the same, and rounded apart.  Told apart by their scores alone, a context always gets one of them.

    Exact binomial tests of 400 choices, for each of 8 contexts, at p < 1e-4 over all of them.
    """
    rng, given = np.random.default_rng(6), settings(arms=2, replicas=1, eps=0.0, owners=2, **changes)
    alike = Parts(2, given)
    for _ in range(40 // given.batch):
        x = unit_rows(rng.normal(size=(given.batch, 8)))[None]
        rewards = (rng.random((1, given.batch)) < 0.5 + 0.5 * x[..., 0]).astype(float)
        for arm in (0, 1):
            alike.learn(x, np.full((1, given.batch), arm), rewards)
    asked = np.repeat(unit_rows(rng.normal(size=(8, 8))), 400, axis=0)[None]
    counts = {}
    for bits in (given.tie_bits, 0):
        alike.given = replace(given, tie_bits=bits)
        counts[bits] = alike.decide(asked, bits)[0].reshape(8, 400, 2)[..., 1].sum(axis=1)
    assert all(stats.binomtest(int(count), 400, 0.5).pvalue > 1e-4 / 8 for count in counts[given.tie_bits])
    assert set(counts[0]) == {0, 400}


def test_a_mask_says_the_same_as_a_list() -> None:
    given = settings(arms=6, replicas=8, owners=2)
    twin = learned(given)
    by_list, by_mask = (Parts(2, given, start=twin) for _ in range(2))
    x = contexts(given, 2)
    listed = by_list.decide(x, 0, np.array([1, 3, 4]))
    assert (listed == by_mask.decide(x, 0, np.isin(np.arange(6), [1, 3, 4]))).all()


def test_nobody_eligible_is_refused() -> None:
    with pytest.raises(RangeError, match="at least one arm"):
        Parts(2, settings(owners=2)).decide(contexts(settings(), 1), 0, np.array([], int))


@pytest.mark.parametrize("argmax", Argmax)
def test_exploring_is_uniform_over_the_eligible(argmax: Argmax) -> None:
    """Chi-square of 1,200 exploring choices of 3 in 6 arms, and of the ties of untaught scores.  At p < 1e-4."""
    for eps in (1.0, 0.0):
        given = settings(arms=6, replicas=400, eps=eps, argmax=argmax, owners=2)
        secret = Parts(2, given, start=learned(given) if eps == 1.0 else None)
        counts = sum(
            secret.decide(contexts(given, 4), block, np.array([0, 2, 5])).sum(axis=(0, 1)) for block in range(3)
        )
        assert counts[[1, 3, 4]].sum() == 0
        assert stats.chisquare(counts[[0, 2, 5]]).pvalue > 1e-4


@pytest.mark.parametrize("eps", [0.05, 0.5])
def test_it_explores_as_often_as_it_says(eps: float) -> None:
    """One arm far better than the others: whatever else is chosen was explored.  Exact binomial test at p < 1e-4."""
    given = settings(arms=4, replicas=500, eps=eps, owners=2)
    best = LinearBandit(500, 4, 8)
    best.weights[:, 2, 0] = 0.9
    secret, x = Parts(2, given, start=best), np.zeros((500, 1, 8))
    x[..., 0] = 1.0
    counts = sum(secret.decide(x, block).sum(axis=(0, 1)) for block in range(4))
    others = int(counts[[0, 1, 3]].sum())
    assert stats.binomtest(others, 2000, 0.75 * eps).pvalue > 1e-4
    assert stats.chisquare(counts[[0, 1, 3]]).pvalue > 1e-4


@pytest.mark.parametrize("policy", [Policy.LINUCB, Policy.THOMPSON])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0])
def test_the_index_is_the_prediction_and_the_bonus(policy: Policy, alpha: float, parties: int) -> None:
    """Error: alpha times that of the root, times the normal draw, and rounding."""
    given = settings(arms=6, replicas=10, batch=2, policy=policy, alpha=alpha, owners=parties)
    twin, secret = learned(given), Parts(parties, given, start=learned(given))
    x = contexts(given, 5)
    v = np.einsum("rade,rbe->rbad", twin.inverse, x)
    share = secret.session.share
    prediction = share(twin.predictions(x), scale=40)
    secret.dealer.enter(1)
    index = secret.session.run(with_bonus(secret.session, prediction, secret.contexts(x), share(v, scale=20), given))
    noise: Any = 1.0
    if policy is Policy.THOMPSON:
        (item,) = secret.dealer.coin_items
        assert isinstance(item, Gaussian) and item.deviation == alpha
        noise = secret.choice(1).noise if alpha else 0.0
    wanted = twin.predictions(x) + alpha * noise * twin.widths(x)
    assert index.scale == 40
    assert (np.abs(clear(index) * 2.0**-40 - wanted) <= 1e-3 * alpha * np.abs(noise) + 1e-5).all()


def test_the_index_of_a_context_that_says_nothing_is_its_prediction(parties: int) -> None:
    """x = 0: the root of a few units in the last place, which stands for the root of 0."""
    given = settings(arms=6, replicas=4, policy=Policy.LINUCB, owners=parties)
    secret, zeros = Parts(parties, given), np.zeros((4, 1, 8))
    prediction, v = secret.session.share(np.zeros((4, 1, 6)), scale=40), np.zeros((4, 1, 6, 8))
    index = secret.session.run(
        with_bonus(secret.session, prediction, secret.contexts(zeros), secret.session.share(v, scale=20), given)
    )
    found = clear(index) * 2.0**-40
    assert (found >= 0).all() and (found < 4e-3).all()


def test_the_dealers_normal_draws_are_the_twins() -> None:
    """What a Thompson step adds is alpha times the noise that the twin reads from the coins."""
    given = settings(policy=Policy.THOMPSON, alpha=0.7, owners=2)
    secret = Parts(2, given)
    secret.decide(contexts(given, 6), 3)
    item = next(item for item in secret.dealer.coin_items if isinstance(item, Gaussian))
    rows = secret.choice(3).noise * 0.7 * 2.0**item.scale
    assert np.abs(rows - np.rint(rows)).max() < 1e-6 and rows.std() > 0.3 * 0.7 * 2.0**item.scale

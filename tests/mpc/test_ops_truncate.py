"""Truncation is exact to one unit on every value; the published one is not, and eta is what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import Session, ops
from mpc.correlations import WrapMask
from mpc.ops.truncate import wrap_count
from mpc.share import Share
from offline import InsecureSeededDealer, Recorder

Fixture = Callable[..., Any]
LARGEST = (1 << 62) - 1
EDGES = np.array([LARGEST, -LARGEST, 0, -1, 1, 1 << 61, -(1 << 61)])
CATASTROPHE = float(1 << 20)  # units in the last place


def random_words(count: int, seed: int) -> np.ndarray:
    """Uniform in |x| < 2^62, the edges in front."""
    return np.concatenate([EDGES, np.random.default_rng(seed).integers(-LARGEST, LARGEST + 1, count - EDGES.size)])


def truncated(session: Session, evaluate: Fixture, x: np.ndarray, bits: int) -> np.ndarray:
    return evaluate(session, ops.truncate(session, session.share(x, scale=0), bits))


def test_error_of_a_million_words(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """Exact in int64: |y 2^f| < 2^62 + 2^f.  The mean is within 4 standard errors of 0, on a fixed seed."""
    session, bits = simulate(parties), 20
    errors = []
    for seed in range(4):
        x = random_words(250_000, seed)
        error = (truncated(session, evaluate, x, bits) << bits) - x
        assert np.abs(error).max() < 1 << bits
        errors.append(error)
    ulp = np.concatenate(errors) / 2.0**bits
    assert ulp.size == 10**6
    assert abs(ulp.mean()) < 4 * ulp.std() / np.sqrt(ulp.size)
    assert ulp.std() > 0.3  # uniform words round both ways: 6^-0.5 = 0.41


@pytest.mark.parametrize("bits", [1, 2, 13, 31, 32, 33, 45, 61, 62])
def test_error_at_other_bits(bits: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    x = random_words(20_000, bits)
    error = (truncated(simulate(parties), evaluate, x, bits) << bits) - x
    assert np.abs(error).max() < 1 << bits
    ulp = error / 2.0**bits
    assert abs(ulp.mean()) < 4 * ulp.std() / np.sqrt(ulp.size)  # 4 standard errors, on a fixed seed


def test_multiples_are_divided_exactly(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    y = np.arange(-500, 500)
    assert (truncated(simulate(parties), evaluate, y << 20, 20) == y).all()


def test_the_coin_is_unbiased_for_one_value(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """x = -3 / 4 of a unit: rounds to -1 three times in four.  Within 5 standard errors, on a fixed seed."""
    y = truncated(simulate(parties), evaluate, np.full(40_000, -3), 2)
    assert set(np.unique(y)) == {-1, 0}
    assert abs((y == -1).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / y.size)


def test_scales(simulate: Fixture) -> None:
    session = simulate(2)
    x = session.share([1.5], scale=30)
    assert session.run(ops.truncate(session, x, 10)).scale == 20
    assert session.run(ops.truncate(session, x, 31)).scale == 0


@pytest.mark.parametrize("bits", [1, 2, 13, 32, 33, 45, 61, 62])
def test_rounding_off_is_exact_for_every_word(bits: int, parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """floor(x / 2^bits + 1/2) in Python's integers: at the edges of the range, at ties and beside them, at random."""
    half, largest = 1 << (bits - 1), LARGEST - (1 << (bits - 1))
    near = [k * (1 << bits) + half + off for k in (-3, -2, -1, 0, 1, 2) for off in (-1, 0, 1)]
    rng = np.random.default_rng(bits)
    words = [largest, -largest, 0, *near, *rng.integers(-largest, largest + 1, 3000).tolist()]
    x = np.array([word for word in words if abs(word) <= largest])
    session = simulate(parties)
    y = evaluate(session, ops.round_off(session, session.share(x, scale=0), bits))
    assert y.tolist() == [(word + half) >> bits for word in x.tolist()]


def test_rounding_off_knows_no_coin(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """One value, ten thousand masks: one result, where `truncate` has two."""
    session = simulate(parties)
    x = session.share(np.full(10_000, 5), scale=0)
    assert set(evaluate(session, ops.round_off(session, x, 2)).tolist()) == {1}
    assert set(evaluate(session, ops.truncate(session, x, 2)).tolist()) == {1, 2}


def test_what_rounding_off_draws_is_declared(simulate: Fixture) -> None:
    recorder = Recorder(2)
    session = Session.simulate(2, recorder)
    x = session.share(np.ones((2, 3)), scale=30)
    assert session.run(ops.round_off(session, x, 12)).scale == 18
    assert tuple(recorder.items) == ops.rounding_items((2, 3), 12)
    assert session.run(ops.round_off(session, x, 33)).scale == 0


def test_the_published_one_fails_on_large_words_and_eta_mends_it(
    parties: int, simulate: Fixture, evaluate: Fixture
) -> None:
    """Each word fails with probability |x| / 2^64: within 5 standard deviations of that sum, on a fixed seed."""
    session, bits = simulate(parties), 20
    failed, expected, variance = 0, 0.0, 0.0
    for seed in range(4):
        x = random_words(250_000, seed)
        shared = session.share(x, scale=0)
        published = evaluate(session, ops.truncate_published(session, shared, bits))
        mended = evaluate(session, ops.truncate_published(session, shared, bits, eta=True))
        chance = np.abs(x.astype(np.float64)) / 2.0**64
        failed += int((np.abs(published - x / 2.0**bits) > CATASTROPHE).sum())
        expected, variance = expected + chance.sum(), variance + (chance * (1 - chance)).sum()
        error = mended - x / 2.0**bits
        assert np.abs(error).max() <= parties + 2.0**-8  # and never a catastrophe; x / 2^20 has 42 bits
        assert abs(error.mean() + parties / 2) < 5 * np.sqrt(parties / 12 / x.size)  # the bias it states
    print(f"\nN = {parties}: published {failed} catastrophes, {expected:.0f} expected; with eta 0; ours 0")
    assert failed > 0
    assert abs(failed - expected) < 5 * np.sqrt(variance)


def test_the_published_one_is_sound_on_small_words(parties: int, simulate: Fixture, evaluate: Fixture) -> None:
    """|x| < 2^40 fails with probability 2^-24 each: 100,000 on a fixed seed do not (0.3 % of seeds would)."""
    session = simulate(parties)
    x = np.random.default_rng(8).integers(-(2**40), 2**40, 100_000)
    y = evaluate(session, ops.truncate_published(session, session.share(x, scale=0), 20))
    assert np.abs(y - x / 2.0**20).max() <= parties


class Remembering(InsecureSeededDealer):
    """Keeps the r it deals for wrap counts."""

    def draw(self, item: Any) -> tuple[np.ndarray, ...]:
        fields = super().draw(item)
        if isinstance(item, WrapMask):
            self.r = fields[0].sum(axis=0, dtype=np.uint64)
        return fields


def signed(words: np.ndarray) -> list[int]:
    return [int(v) for v in words.view(np.int64)]


def exact_wraps(x: Share) -> list[int]:
    """theta in x = sum of signed shares - theta 2^64, in Python's integers."""
    rows = [signed(row) for row in x.words]
    joined = signed(x.words.sum(axis=0, dtype=np.uint64))
    return [(sum(column) - value) >> 64 for column, value in zip(zip(*rows, strict=True), joined, strict=True)]


def test_wraps_against_python_integers(parties: int, reveal: Fixture) -> None:
    """With eta always; without, wrong exactly where x + r itself leaves [-2^63, 2^63)."""
    dealer = Remembering(parties, 9)
    session = Session.simulate(parties, dealer)
    x = random_words(20_000, 9)
    shared = session.share(x, scale=0)
    theta = np.array(exact_wraps(shared))
    assert (wrap_count(shared.words).view(np.int64) == theta).all() and len(set(theta.tolist())) > 1

    assert (reveal(session.run(ops.wraps(session, shared))) == theta).all()
    published = reveal(session.run(ops.wraps(session, shared, eta=False)))
    sums = [value + r for value, r in zip(x.tolist(), signed(dealer.r), strict=True)]
    wrapped = np.array([not -(1 << 63) <= total < 1 << 63 for total in sums])
    assert ((published != theta) == wrapped).all() and wrapped.any()

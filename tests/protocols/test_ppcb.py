"""The private contextual bandit: the twin's arms, 12 rounds, an exact ledger, and no silent wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits.environments import Environment, Episode, synthetic_linear, unit_rows
from bandits.linear import LinearBandit
from mpc import Open, RangeError, Session
from mpc.ledger import Entry
from mpc.rounds import Request
from protocols.ppcb.program import PAYER, PULLER, Settings, State, step
from protocols.ppcb.simulate import Run, World, blocks, share_contexts, simulate, split
from protocols.ppcb.witness import WitnessDealer

ENVIRONMENT = synthetic_linear(4, 8, rows=400, seed=1)


def settings(**changes: Any) -> Settings:
    return Settings(**{"arms": 4, "dim": 8, "eps": 0.2, **changes})


def dealer(parties: int) -> WitnessDealer:
    """The same coins in every test run."""
    keys = [bytes([1, party] * 8) for party in range(parties)]
    return WitnessDealer(parties, keys=keys, own_key=bytes([2, 3] * 8))


def played(environment: Environment, given: Settings, parties: int, steps: int, seed: int = 7) -> Run:
    return simulate(environment, given, parties=parties, steps=steps, seed=seed, dealer=dealer(parties))


@pytest.mark.parametrize("newton", [0, 1])
def test_it_pulls_the_arms_of_its_twin(newton: int, parties: int) -> None:
    """Three replicas of 300 steps: same arms, so same rewards, and more of them than by chance."""
    run = played(ENVIRONMENT, settings(replicas=3, newton=newton), parties, 300)
    assert run.differences == ()
    assert (run.rewards == run.twin_rewards).all()
    assert run.rewards[150:].mean() > ENVIRONMENT.chances.mean() + 0.02


def test_the_state_is_the_exact_inverse(parties: int) -> None:
    run = played(ENVIRONMENT, settings(newton=1), parties, 400, 3)
    twin, episode = LinearBandit(1, 4, 8), ENVIRONMENT.episode(400, 3)
    for x, arm, reward in zip(episode.contexts, run.arms, run.rewards, strict=True):
        twin.update(x[None], arm, reward)
    assert np.abs(run.state[:, :, :8] - twin.inverse).max() < 1e-3
    assert np.abs(run.state[:, :, 8] - twin.weights).max() < 1e-3
    assert np.linalg.eigvalsh(run.state[:, :, :8]).min() > 0


@pytest.mark.parametrize("arms", [10, 100])
def test_a_step_takes_twelve_rounds_and_two_hops(arms: int, parties: int) -> None:
    environment = synthetic_linear(arms, 20, rows=50)
    run = played(environment, Settings(arms=arms, dim=20), parties, 3, 1)
    assert run.cost.rounds == 12 * 3
    assert run.cost.client_hops == 2 * 3
    if arms == 10:
        assert run.cost.opened_bytes / 3 <= 60_000


def test_the_ledger_is_the_papers_table(parties: int) -> None:
    run = played(ENVIRONMENT, settings(), parties, 20, 1)
    assert run.ledger == (Entry(PULLER, "arm", 20, "it is pulled"),)


def test_every_opening_is_uniform(uniformity: Callable[[np.ndarray, int], float]) -> None:
    """All openings of 40 steps by the ring they are opened in.  Rejects at p < 1e-6, on a fixed seed."""
    opened: dict[int, list[np.ndarray]] = {}

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            opened.setdefault(request.bits, []).append(np.asarray(reply).astype(np.uint64).reshape(-1))

    world = World([ENVIRONMENT.episode(40, seed) for seed in range(8)])
    given = settings(replicas=8)
    clients = {PULLER: world.puller(8), PAYER: world.payer(given.state_bits)}
    session = Session.simulate(2, dealer(2), clients=clients, listener=listener)
    state = State.start(session, given)
    for contexts in world.contexts:
        session.run(step(session, state, share_contexts(session, split(contexts, 2), given), given))
    for bits, words in opened.items():
        assert uniformity(np.concatenate(words), bits) > 1e-6, bits


def _contexts(rows: np.ndarray) -> Environment:
    return Environment("given", rows, np.full((len(rows), 4), 0.5))


@pytest.mark.parametrize("bound", [1.0, 2.5])
def test_contexts_up_to_the_bound_never_wrap(bound: float, parties: int) -> None:
    """Unit vectors, zero vectors, and the bound itself: the first update's reciprocal is at the end of its table."""
    rows = np.concatenate([np.eye(8), -np.eye(8), np.zeros((2, 8)), unit_rows(np.ones((1, 8)))]) * bound
    run = played(_contexts(rows), settings(bound=bound, steps=100), parties, 60, 5)
    assert all(difference.gap < 2.0**-12 for difference in run.differences), "ties in the clear are ties to rounding"
    assert np.abs(run.state[:, :, :8]).max() < 1.01
    assert np.linalg.eigvalsh(run.state[:, :, :8]).min() > 0


def test_a_hair_above_the_bound_is_refused_where_it_is_shared(parties: int) -> None:
    rows = np.zeros((1, 8))
    rows[0, 0] = 1.001
    with pytest.raises(RangeError, match=r"block of party 0 has norm 1\.001, declared is 1"):
        played(_contexts(rows), settings(), parties, 1, 1)


def test_features_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(RangeError):
        simulate(_contexts(np.full((1, 8), np.nan)), settings(), parties=2, steps=1, seed=1)


@pytest.mark.parametrize("eps", [0.0, 1.0])
def test_eps_at_its_ends(eps: float) -> None:
    run = played(ENVIRONMENT, settings(eps=eps), 2, 200, 2)
    assert run.differences == ()
    if eps == 1.0:
        assert np.bincount(run.arms[:, 0], minlength=4).min() > 20


def test_one_arm_is_always_pulled() -> None:
    run = played(synthetic_linear(1, 8, rows=50), settings(arms=1), 2, 10, 1)
    assert (run.arms == 0).all() and run.differences == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": 0}, "at least 1"),
        ({"eps": 1.5}, "probability"),
        ({"eps": -0.1}, "probability"),
        ({"arms": 100_000}, "of 64"),
        ({"ridge": 0.0}, "positive"),
        ({"steps": 0}, "at least 1 step"),
        ({"state_bits": 28}, "newton=1"),
        ({"state_bits": 28, "newton": 1}, "fewer state_bits"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RangeError, match=words):
        settings(**changes)


def test_blocks_cover_every_feature_once() -> None:
    for parties in (2, 3, 5, 7):
        assert np.concatenate([np.arange(20)[part] for part in blocks(20, parties)]).tolist() == list(range(20))


def test_scores_as_large_as_they_can_be_do_not_wrap(parties: int) -> None:
    """Contexts of norm 1/20 that always pay: the regression predicts 10 for a unit context, far beyond any reward."""
    small, unit = np.zeros((1, 8)), np.zeros((1, 8))
    small[0, 0], unit[0, 0] = 0.05, 1.0
    episode = Episode(np.concatenate([np.repeat(small, 400, axis=0), unit]), np.ones((401, 1)))
    given = settings(arms=1, newton=1)
    world, source = World([episode]), dealer(parties)
    session = Session.simulate(parties, source, clients={PULLER: world.puller(1), PAYER: world.payer(given.state_bits)})
    state, twin = State.start(session, given), LinearBandit(1, 1, 8)
    for contexts in world.contexts:
        session.run(step(session, state, share_contexts(session, split(contexts, parties), given), given))
        largest = float(twin.scores(contexts).max())
        twin.update(contexts, np.array([0]), np.array([1.0]))
    assert largest > 9.0
    table = state.table.words.sum(axis=0, dtype=np.uint64).view(np.int64) * 2.0**-given.state_bits
    assert np.abs(table[:, :, 8] - twin.weights).max() < 1e-2

"""A run on shares pulls the twin's arms and ends its batches, whatever ends them, for 1 to 20 arms and dimensions."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bandits.helba import HELBA, Batches, Constants, Problem, fresh, play, toy
from mpc.bilinear import TRIANGLE, Bilinear
from mpc.correlations import LineMask, ProductMask, SignTables, SquareMask, layout
from mpc.rounds import Input, Request, Reveal
from protocols.bench.helba_agreement import Make, Size, measure
from protocols.helba.program import ROUNDS_TO_ARM, USER
from protocols.helba.run import NEAR, Encrypted, Parties, Run
from protocols.helba.settings import Settings
from protocols.run.rehearsal import rehearse
from protocols.run.simulate import Simulation, simulate

PUBLIC, HIDDEN, NONE = Batches
TRACE = Constants(growth=None)


def played(
    problem: Problem, constants: Constants, batches: Batches = PUBLIC, *, parties: int = 2, seed: int = 1
) -> Run:
    settings = Settings(constants, problem.arms, len(problem), batches)
    return simulate(Encrypted(settings, parties, problem=problem), seed=seed)


@pytest.mark.parametrize(
    ("make", "constants", "batches", "parties", "steps", "arms"),
    [
        (toy, Constants(), PUBLIC, 2, 130, 2),
        (fresh, TRACE, PUBLIC, 3, 40, 2),
        (fresh, Constants(growth=1.0), PUBLIC, 2, 50, 3),
        (fresh, TRACE, HIDDEN, 2, 40, 2),
        (toy, Constants(growth=1.0, union=False), HIDDEN, 3, 30, 2),
        (fresh, Constants(), NONE, 3, 20, 4),
        (fresh, Constants(dim=6, norm=1.0, ridge=0.25), PUBLIC, 2, 20, 7),
        (fresh, Constants(dim=1), HIDDEN, 2, 12, 1),
        (fresh, Constants(norm=0.5), PUBLIC, 3, 12, 2),
        (fresh, Constants(norm=1.0, ridge=50.0), HIDDEN, 2, 12, 2),
        (fresh, Constants(norm=0.1), NONE, 5, 8, 2),
    ],
    ids=[
        "toy",
        "by-trace",
        "growth-1",
        "hidden-by-trace",
        "hidden-growth-1",
        "no-batches",
        "six-dimensions",
        "one",
        "short",
        "large-ridge",
        "very-short",
    ],
)
def test_the_arms_and_batch_ends_of_the_twin(
    make: Make, constants: Constants, batches: Batches, parties: int, steps: int, arms: int
) -> None:
    found = measure(Size("", constants, arms, steps, make), 3, parties=parties, batches=batches)
    assert found.near_ties == 0
    assert found.arms_equal and found.ends_equal and found.agrees
    assert found.inverse < 0.1 and found.estimate < 1e-5
    if constants.growth is None:
        assert 3 < found.updates < steps


@pytest.mark.parametrize(("arms", "dim", "parties"), [(2, 2, 2), (20, 5, 3), (3, 20, 5)])
@pytest.mark.parametrize(("batches", "rounds"), [(PUBLIC, {16, 17, 22, 23}), (HIDDEN, {23}), (NONE, {22})])
def test_rounds_do_not_depend_on_arms_dimensions_or_parties(
    batches: Batches, rounds: set[int], arms: int, dim: int, parties: int
) -> None:
    """17 within a batch, 16 where time ends it; behind an end 6 more, and where it is hidden 7."""
    given = Constants(dim=dim, norm=1.0, trace=2.0, growth=0.4)
    problem, settings = fresh(given, 14, 1, arms=arms), Settings(given, arms, 14, batches)
    simulation, told, after = Simulation(Encrypted(settings, parties, problem=problem), seed=1), [], False
    player = simulation.player
    assert isinstance(player, Parties)
    while not simulation.finished:
        before, start = simulation.session.round, player._start
        simulation.turn()
        told.append(simulation.session.round - before)
        if batches is PUBLIC:
            assert told[-1] == 16 + 6 * after + (not given.grown(simulation.done, start))
        after = player.ends[-1]
    assert set(told) == rounds


@pytest.mark.parametrize("batches", Batches)
def test_a_user_waits_for_16_rounds(batches: Batches) -> None:
    problem = fresh(TRACE, 6, 3)
    asked: list[int] = []
    waited: list[int] = []

    def listener(request: Request, _: np.ndarray, __: object) -> None:
        if isinstance(request, Input) and request.shape:
            asked.append(simulation.session.round)
        elif isinstance(request, Reveal) and request.to == USER:
            waited.append(simulation.session.round - asked[-1])

    program = Encrypted(Settings(TRACE, 2, 6, batches), 2, problem=problem)
    simulation = Simulation(program, seed=1, listener=listener)
    while not simulation.finished:
        simulation.turn()
    assert waited == [ROUNDS_TO_ARM] * 6 == [16] * 6


@pytest.mark.parametrize("batches", Batches)
def test_a_step_draws_the_same_whether_it_runs_beside_the_last_update_or_behind_it(batches: Batches) -> None:
    """A store has one order."""
    problem = fresh(TRACE, 12, 4)
    simulation = Simulation(Encrypted(Settings(TRACE, 2, 12, batches), 2, problem=problem), seed=1)
    source, drawn = simulation.session.source, []
    simulation.session.source = SimpleNamespace(draw=lambda item: drawn.append(item) or source.draw(item))  # type: ignore
    while not simulation.finished:
        drawn.clear()
        simulation.turn()
        assert tuple(drawn) == simulation.rehearsed.turn
    assert isinstance(simulation.player, Parties)
    if batches is PUBLIC:
        assert {True, False} == set(simulation.player.ends[:-1])


def test_material_of_the_toy_is_small() -> None:
    assert rehearse(Encrypted(Settings(Constants()), 2)).plan.step_bytes < 146_000


@pytest.mark.parametrize("batches", Batches)
def test_what_is_symmetric_is_opened_dealt_and_truncated_packed(batches: Batches) -> None:
    """A of d (d + 1) / 2 words and w in one product, u u' and u (r - <x, w>) in another."""
    settings = Settings(Constants(dim=12), 3, 20, batches)
    items, words = rehearse(Encrypted(settings, 2)).turn, 12 * 13 // 2 + 12
    copies = [item.x for item in items if isinstance(item, ProductMask) and item.op == Bilinear("sym:cij,kj->cki")]
    assert copies == {PUBLIC: [(1, words)] * 2, Batches.HIDDEN: [(2, words)], Batches.NONE: [(1, words)]}[batches]
    assert SquareMask((13,), TRIANGLE) in items
    fields = [field for item in items if not isinstance(item, (SignTables, LineMask)) for field in layout(item).free]
    assert max(math.prod(field.shape) for field in fields) <= 2 * words


def test_of_near_ties_the_twin_follows_the_run_and_of_nothing_else() -> None:
    """Arms with the same features: roundings choose, and the runs go on alike; nobody follows to a worse arm."""
    one = fresh(TRACE, 12, 0, arms=1)
    problem = Problem(*(np.repeat(part, 5, axis=1) for part in (one.features, one.means, one.rewards)))
    run = played(problem, TRACE, seed=1)
    assert len(set(run.arms.tolist())) > 1
    assert run.first_difference is None and run.ends_equal and (run.twin.gaps <= NEAR).all()
    policy, other = HELBA(TRACE), fresh(TRACE, 12, 0)
    alone = play(policy, other)
    assert (play(HELBA(TRACE), other, 1 - alone.arms, near=NEAR).arms == alone.arms).all()


def adversarial(steps: int, constants: Constants) -> Problem:
    """Short features that pay the most, so that w grows as it can, then the longest that way, paying the least."""
    short = np.sqrt(constants.ridge / steps)
    features = np.zeros((steps, 1, constants.dim))
    features[:, 0, 0] = np.where(np.arange(steps) < steps - 3, np.rint(short * 2**20) / 2**20, constants.norm)
    rewards = np.where(features[:, :, 0] == constants.norm, -constants.reward, constants.reward)
    return Problem(features, np.zeros((steps, 1)), rewards)


@pytest.mark.parametrize("norm", [1.0, 5.5])
def test_no_word_wraps_whatever_the_users_share(norm: float) -> None:
    given = Constants(norm=norm, growth=None)
    found = measure(Size("", given, 1, 60, lambda *_, **__: adversarial(60, given)), 0)
    assert found.ends_equal and found.inverse < 0.1 and found.estimate < 1e-4


def test_a_broken_test_of_the_trace_would_show() -> None:
    """Parties that end batches at another trace than C do not pass."""
    problem, other = fresh(TRACE, 25, 3), Constants(growth=None, trace=2.0)
    run = played(problem, other, seed=1)
    assert run.ends_equal
    assert not Encrypted(Settings(TRACE, 2, 25), 2, problem=problem).result(run.ended).ends_equal

"""Who learns what, in how many rounds: the ledger, the openings, and the attacks on the published protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bandits.attacks.linucb_comp import recover
from bandits.attacks.linucb_p import cosine, estimate
from bandits.fixed_point import play_fixed, reals, rounded
from bandits.linear_problem import LinearProblem
from mpc import EVERYONE, Open, Reveal
from mpc.correlations import SignTables, layout
from mpc.ledger import Entry
from mpc.rounds import Request
from protocols.linucb_ds.attacks import HiddenView
from protocols.linucb_ds.mpc.dealt_coins import own_coins
from protocols.linucb_ds.mpc.player import HiddenArms
from protocols.linucb_ds.mpc.run import Run
from protocols.linucb_ds.mpc.settings import Settings
from protocols.run.simulate import Simulation

from .runs import normal, simulation_of, spectral

BUDGET = 12
SUM = Entry("DC", "cumulative reward", 1, "it pays for the pulls")
SHOWN = (
    Entry(EVERYONE, "pulled arm", 1, "they draw the first"),
    Entry(EVERYONE, "noise of a reward", BUDGET, "they draw it"),
    Entry(EVERYONE, "pulled arm", BUDGET - 1, "they pull it"),
    SUM,
)


def finished(
    problem: LinearProblem, *, hide: bool, parties: int = 2, budget: int = BUDGET, **rest: Any
) -> Simulation[Run]:
    settings = Settings.of(problem, budget, hide=hide)
    simulation = simulation_of(problem, settings, **{"parties": parties, "seed": 3, **rest})
    for _ in range(budget):
        simulation.turn()
    simulation.player.finish()
    return simulation


@pytest.mark.parametrize("problem", [normal(3, 6), spectral(8)], ids=["LinUCB", "SpectralUCB"])
@pytest.mark.parametrize("hide", [False, True], ids=["shown", "hidden"])
def test_the_ledger_is_what_was_promised(problem: LinearProblem, hide: bool, parties: int) -> None:
    simulation = finished(problem, hide=hide, parties=parties)
    assert tuple(simulation.session.ledger) == ((SUM,) if hide else SHOWN)


def test_one_more_reveal_would_show() -> None:
    simulation = finished(normal(3, 6), hide=True)
    player = simulation.player
    assert isinstance(player, HiddenArms)

    def curious() -> Iterator[Any]:
        yield Reveal(player.held.roots, to=EVERYONE, what="widths", why="somebody is curious")

    simulation.session.run(curious())
    assert tuple(simulation.session.ledger) == (SUM, Entry(EVERYONE, "widths", 6, "somebody is curious"))


def test_a_pull_is_five_rounds_with_arms_shown(parties: int) -> None:
    """Four of the argmax and the arm's, whatever K; the first pull is drawn.  Four more round the sum."""
    for arms in (2, 15, 40):
        cost = finished(normal(3, arms), hide=False, parties=parties).session.meter.total
        assert (cost.rounds, cost.client_hops) == (5 * (BUDGET - 1) + 4, 2)


def test_a_pull_is_seventeen_rounds_with_arms_hidden(parties: int) -> None:
    """Where one pull cannot shorten a width much; else 6 more for each Newton iteration of the root."""
    for size, iterations in ((0.2, 0), (1.0, 1)):
        simulation = finished(normal(3, 6, size=size), hide=True, parties=parties)
        ranges, cost = simulation.player.settings.ranges, simulation.session.meter.total
        assert (ranges.root_iterations, ranges.step_iterations) == (iterations, 0)
        assert (cost.rounds, cost.client_hops) == ((17 + 6 * iterations) * BUDGET + 4, 2)


@pytest.mark.parametrize("hide", [False, True], ids=["shown", "hidden"])
def test_every_pull_draws_the_plan(hide: bool) -> None:
    simulation = finished(normal(3, 6), hide=hide)
    draws, plan = BUDGET if hide else BUDGET - 1, simulation.rehearsed.plan
    ending = simulation.player.settings.ending
    assert plan.items[: len(ending)] == ending, "any pull may be the last: each step begins with what an end draws"
    drawn = draws * plan.step_bytes + sum(layout(item).dealt_bytes for item in ending)
    assert simulation.dealer.dealt_bytes == drawn
    assert simulation.program.draws() == draws + 1


@pytest.mark.parametrize("hide", [False, True], ids=["shown", "hidden"])
def test_every_opening_is_uniform(hide: bool, uniformity: Callable[[np.ndarray, int], float]) -> None:
    """All openings of a run by the ring they are opened in.  Rejects at p < 1e-6, on a fixed seed."""
    opened: dict[int, list[np.ndarray]] = {}

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            opened.setdefault(request.bits, []).append(np.asarray(reply).astype(np.uint64).reshape(-1))

    simulation = finished(normal(3, 15), hide=hide, budget=50, listener=listener)
    ranges = simulation.player.settings.ranges
    tables = {lines.bits for lines in (ranges.root, ranges.step)}
    signs = [item for item in simulation.rehearsed.plan.items if isinstance(item, SignTables)]
    once, rest = (
        {bits for item in items for bits in (item.width, item.cut.pair_bits, item.cut.verdict_bits)}
        for items in (signs[:1], signs[1:])
    )  # the first is the rounding's, one opening of each of its rings: too few for a test here
    assert opened.keys() == {4, 64} | once | rest | (tables if hide else set())
    for bits, words in opened.items():
        assert bits in once - rest or uniformity(np.concatenate(words), bits) > 1e-6, bits


def test_comps_attack_is_at_chance_with_hidden_arms() -> None:
    """What it takes for differences of indices are masks.  12 runs of 29 lists of 6 arms: 1 in 6, within 5 deviations.

    Given the true lists, which Comp decrypts in the published protocol, it recovers every arm.
    """
    hits = tries = 0
    for seed in range(12):
        problem = normal(3, 6, seed=seed)
        view = HiddenView(problem, 30, seed)
        found = recover(view.lists, problem.arms, problem.exploration)
        assert float(np.median(found.mismatch)) > 0.1, "no guess explains a list"
        hits += int((found.arms == view.pulled).sum())
        tries += 30
    assert abs(hits / tries - 1 / 6) < 5 * np.sqrt(5 / 36 / tries)

    problem = normal(3, 6, seed=0)
    settings = Settings.of(problem, 30)
    exact = rounded(problem, settings.scales)
    run = play_fixed(problem, own_coins(settings, 1), settings.scales)
    lists = np.array([np.sort(reals(np.array(pull.indices, object), settings.scales.index)) for pull in run.pulls[1:]])
    assert (recover(lists, exact.arms, exact.exploration).arms == np.array(run.arms)).mean() > 0.9


def test_ps_attack_is_at_chance_with_hidden_arms() -> None:
    """An estimate from a party's own shares of the arms points nowhere.

    Over 14 problems its mean cosine with theta is within 5 deviations of 0; that of two directions in 3 dimensions has
    variance 1/3.  From pulled arms and their noise, which P has in the published protocol, it points at theta.
    """
    blind, seeing = [], []
    for seed in range(14):
        problem = normal(3, 8, seed=100 + seed)
        view = HiddenView(problem, 30, seed)
        rng = np.random.default_rng(seed)
        drawn = rng.choice([-1.0, 1.0], 30)
        blind.append(cosine(estimate(problem.arms, view.own_arms.tolist(), drawn, problem.exploration), problem.theta))
        settings = Settings.of(problem, 60)
        coins = own_coins(settings, seed)
        run = play_fixed(problem, coins, settings.scales)
        seeing.append(cosine(estimate(problem.arms, run.arms, coins.noise, problem.exploration), problem.theta))
    assert abs(np.mean(blind)) < 5 * np.sqrt(1 / 3 / len(blind))
    assert np.mean(seeing) > 0.8

"""DC is told the sum to the digits that are declared, and no more: rounded on shares, without a coin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.attacks.linucb_dc import fitting_exactly, share_that_fits
from bandits.fixed_point import rounded, words
from bandits.linear_problem import LinearProblem
from mpc import ConfigError
from mpc.rounds import Request, Reveal
from protocols.linucb_ds.mpc.player import HiddenArms, ShownArms
from protocols.linucb_ds.mpc.run import Run, nearest
from protocols.linucb_ds.mpc.settings import SUM_BITS, Settings
from protocols.run.simulate import Simulation

from .runs import TIES, launched, normal, played, simulation_of, spectral

SHOWN_AND_HIDDEN = pytest.mark.parametrize("hide", [False, True], ids=["shown", "hidden"])


def finished(
    problem: LinearProblem, budget: int, *, parties: int = 2, seed: int = 1, **changes: Any
) -> tuple[Simulation[Run], list[int], int]:
    """A run, what left it for DC, and the sum's word behind the parties' shares."""
    revealed: list[int] = []

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Reveal) and request.to == "DC":
            revealed.append(int(sent.view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.int64)[0]))

    settings = Settings.of(problem, budget, **changes)
    simulation = simulation_of(problem, settings, parties=parties, seed=seed, listener=listener)
    for _ in range(budget):
        simulation.turn()
    player = simulation.player
    assert isinstance(player, (ShownArms, HiddenArms))
    words_ = player.state()["total"].sum(axis=0, dtype=np.uint64).view(np.int64)
    return simulation, revealed, int(words_)


@SHOWN_AND_HIDDEN
@pytest.mark.parametrize("sum_bits", [1, SUM_BITS, 30])
def test_what_leaves_is_the_sum_to_the_nearest_unit(hide: bool, sum_bits: int, parties: int) -> None:
    for problem, budget in ((normal(3, 6), 7), (spectral(8), 5), (TIES["orthonormal"], 3), (normal(2, 3), 1)):
        simulation, revealed, word = finished(problem, budget, parties=parties, hide=hide, sum_bits=sum_bits)
        run, settings = simulation.result(), simulation.player.settings
        assert revealed == [run.word] == [nearest(word, settings)] and abs(run.word) <= 1 << sum_bits
        assert abs(run.cumulative_reward - word * 2.0**-settings.scales.reward) <= settings.unit / 2
        assert settings.unit == 2.0 ** (settings.dropped - settings.scales.reward)


@SHOWN_AND_HIDDEN
def test_a_sum_half_way_goes_up(hide: bool) -> None:
    """Whatever the masks: 12 deals of a sum that lies between two units."""
    problem = normal(2, 3)
    for seed in range(12):
        simulation, revealed, _ = finished(problem, 2, hide=hide, seed=seed)
        player, settings = simulation.player, simulation.player.settings
        assert isinstance(player, (ShownArms, HiddenArms)) and not revealed
        half = simulation.session.constant(3 << (settings.dropped - 1), 0).at_scale(settings.scales.reward)
        if isinstance(player, HiddenArms):
            player.held.total = half
        else:
            player._total = half
        player.finish()
        assert revealed == [2]


def test_more_bits_are_a_finer_unit() -> None:
    problem = normal(3, 6)
    coarse, fine = (played(problem, 10, sum_bits=bits) for bits in (SUM_BITS, SUM_BITS + 4))
    assert coarse.settings.unit == 16 * fine.settings.unit
    assert coarse.arms == fine.arms and abs(coarse.cumulative_reward - fine.cumulative_reward) <= coarse.settings.unit
    assert coarse.settings.digest != fine.settings.digest, "all parties agree on it"


def test_bits_that_there_are_not_are_refused() -> None:
    for bits in (0, -1, 61):
        with pytest.raises(ConfigError, match=r"told with 1 to \d\d bits: choose --sum-bits so, not -?\d+"):
            Settings.of(normal(3, 6), 10, sum_bits=bits)


def test_a_launch_rounds_as_a_simulation_does() -> None:
    problem = normal(3, 6)
    settings = Settings.of(problem, 6, sum_bits=5)
    assert launched(problem, settings).word == played(problem, 6, seed=5, sum_bits=5).word


@SHOWN_AND_HIDDEN
def test_the_sum_behind_the_shares_gives_theta_away_and_what_dc_is_told_does_not(hide: bool) -> None:
    """d = 2, K = 4, N = 20, signs, two orders of one theta: the words leave it alone, what is told most of 2^55."""
    problem = normal(2, 4, seed=5)
    runs = [finished(problem, 20, hide=hide, seed=seed) for seed in (1, 2)]
    settings = runs[0][0].player.settings
    exact, scales = rounded(problem, settings.scales), settings.scales
    arms, theta = words(exact.arms, scales.arm), tuple(words(exact.theta, scales.theta).tolist())
    norm, one = problem.exploration.theta_norm, int(words(1.0, scales.reward))
    left = [fitting_exactly(arms, one, int(norm * 2**scales.theta), 20, word) for _, _, word in runs]
    assert all(len(thetas) < 1 << 15 for thetas in left) and left[0] & left[1] == {theta}
    told = [(simulation.result().word, settings.unit) for simulation, _, _ in runs]
    assert share_that_fits(settings.arms, 1.0, norm, 20, told, np.random.default_rng(1), darts=1000) > 2.0**-6

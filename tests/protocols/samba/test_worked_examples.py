"""The examples that the paper works out by hand: scores, masks, permutations, bits and probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandits.samba import SeededCoins, Seeds, coins
from bandits.samba.pursuit import Pursuit
from protocols.samba.classic.masks import Field
from protocols.samba.classic.selecting import selected
from protocols.samba.owners import Holdings, LocalPolicy, Owners, Select
from protocols.samba.policies import UCB, local_policy
from protocols.samba.policies import Pursuit as LocalPursuit

ONE = float(1 << 40)


def holding(sums: list[int], pulls: list[int]) -> Holdings:
    rows = np.arange(len(sums))
    return Holdings(rows, len(rows), np.array(pulls), np.array(sums), [np.random.default_rng(i) for i in rows])


def test_ucb_at_step_68() -> None:
    """Scores 1.23, 1.01, 1.12; masked by 0.5 and permuted 1 to 2, 2 to 3, 3 to 1; the first owner pulls."""
    mine = holding([24, 10, 2], [33, 24, 10])
    scores = UCB().score(mine, 68, 1)
    assert scores == pytest.approx([1.23, 1.01, 1.12], abs=0.01)
    assert scores * 0.5 == pytest.approx([0.62, 0.50, 0.56], abs=0.01)
    to = np.array([1, 2, 0])
    listed = np.zeros(3)
    listed[to] = scores * 0.5
    assert listed == pytest.approx([0.56, 0.62, 0.50], abs=0.01)
    bits = np.eye(3, dtype=int)[selected(Field(Select.LARGEST, 8, doubles=True), listed, 0, 32)]
    assert bits.tolist() == [0, 1, 0]

    owners = Owners(UCB(), range(3), 3, noise=mine.noise, pay=lambda arm, t: 1)
    owners.mine.sums[:], owners.mine.pulls[:] = mine.sums, mine.pulls
    owners.told(bits[to], 68, 1)
    assert owners.sums.tolist() == [25, 10, 2] and owners.pulls.tolist() == [34, 24, 10]


@pytest.mark.parametrize(("x", "explores"), [(0.7, False), (0.04, True)])
def test_epsilon_greedy_explores_up_to_eps(x: float, explores: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One common uniform number, 0.7 and 0.04, compared with eps = 0.1."""
    monkeypatch.setattr(coins, "unit", lambda *_: x)
    eps = local_policy("epsilon-greedy", eps=0.1).explores(5)
    assert SeededCoins(Seeds.of(1), 3).explore(5, eps) is explores


def test_softmax_at_step_98() -> None:
    """tau = 0.1: weights in the proportions of 1339.43, 44.7 and 7.39, from means of two digits; 0.96, 0.03, 0.01."""
    mine = holding([49, 9, 1], [68, 24, 5])
    assert mine.means == pytest.approx([0.72, 0.38, 0.20], abs=0.006)
    words = np.array(local_policy("softmax", tau=0.1).words(mine, 98, 1), float)
    published = np.array([1339.43, 44.70, 7.39])
    assert words / words[2] == pytest.approx(np.exp((mine.means - 0.2) / 0.1))
    assert words / words.sum() == pytest.approx(published / published.sum(), abs=0.005)
    masked = 0.15 * published
    assert masked == pytest.approx([200.91, 6.71, 1.11], abs=0.01) and masked.sum() == pytest.approx(208.73, abs=0.01)
    assert masked / masked.sum() == pytest.approx([0.96, 0.03, 0.01], abs=0.005)
    drawn = Field(Select.DRAW, 8, doubles=True)
    part = [selected(drawn, [200_91, 6_71, 1_11], math.floor(u * 2**32), 32) for u in (0.0, 0.962, 0.963, 0.994, 0.995)]
    assert part == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("owners", [False, True])
def test_pursuit_at_its_fourth_step(owners: bool) -> None:
    """beta = 0.1, one arm paid: p = 1/3 each becomes 0.4, 0.3, 0.3."""
    if owners:
        policy: LocalPolicy = LocalPursuit(0.1)
        mine = holding([1, 0, 0], [1, 1, 1])
        policy.begin(mine)
        assert mine.own["chance"] == pytest.approx([1 / 3] * 3)
        policy.told(mine, np.array([1, 0, 0]), 4, 1)
        chances = mine.own["chance"]
    else:
        player = Pursuit(3, 0.1)
        for arm, reward in enumerate((1, 0, 0)):
            player.update(arm, reward)
        player.pull(4, SeededCoins(Seeds.of(1), 3))
        chances = player.chances
    assert chances == pytest.approx([0.4, 0.3, 0.3])

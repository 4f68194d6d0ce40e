"""The owners' side: words, locality, and state that can be kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandits.samba import NAMES
from mpc.errors import ConfigError, Desync, RangeError
from protocols.run.desk import MemoryDesk, World
from protocols.samba.owners import SCORE_BITS, Holdings, LocalPolicy, Owners, Select, paid_by, require_local
from protocols.samba.policies import ReinforcementComparison, SoftmaxRace, local_policy
from tests.forks import halves, refused


def owners_of(name: str, arms: int = 3, seed: int = 1, race: bool = False) -> Owners:
    noise = [np.random.default_rng([seed, i]) for i in range(arms)]
    made = Owners(local_policy(name, race=race), range(arms), arms, noise=noise, pay=lambda arm, t: (arm + t) % 2)
    made.first_pulls()
    return made


def test_no_noise_serves_both_halves_of_a_fork() -> None:
    refused(halves(
        """
import numpy as np
from protocols.samba.owners import Owners
from protocols.samba.policies import local_policy

def owners():
    noise = [np.random.default_rng([1, i]) for i in range(3)]
    return Owners(local_policy("thompson"), range(3), 3, noise=noise, pay=lambda arm, t: arm % 2)

begun, fresh = owners(), owners()
begun.first_pulls()
half("first pulls", lambda: fresh.first_pulls())
half("words", lambda: begun.words(4, 1).tolist())
half("told", lambda: begun.told(np.array([0, 1, 0]), 4, 1))
"""
    ))  # fmt: skip


@pytest.mark.parametrize("race", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_six_policies_are_local(name: str, race: bool) -> None:
    require_local(local_policy(name, race=race))


def test_reinforcement_comparison_is_refused_with_the_reason() -> None:
    with pytest.raises(
        ConfigError, match="reinforcement comparison breaks score locality: it needs the common reference"
    ):
        require_local(ReinforcementComparison())


def test_parity_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="parity breaks oblivious selection: Comp would need the numbers of the arms"):
        require_local(local_policy("parity"))


def test_one_that_does_not_say_it_is_found_out() -> None:
    class Silent(ReinforcementComparison):
        shared = ""

    class Peeking(LocalPolicy):
        name = "peeking"

        def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
            return mine.means / mine.sums.max(initial=1)

        def largest(self, budget: int, iteration: int) -> float:
            return 1.0

    for policy in (Silent(), Peeking()):
        with pytest.raises(
            ConfigError, match="breaks score locality: owner 0 alone computes another score than beside"
        ):
            require_local(policy)


def test_a_policy_without_iterations() -> None:
    class Idle(ReinforcementComparison):
        shared = ""
        selects = ()

    with pytest.raises(ConfigError, match="declares no iteration"):
        require_local(Idle())


@pytest.mark.parametrize("count", [255, 256])
def test_a_policy_with_more_iterations_than_messages_count(count: int) -> None:
    class Long(LocalPolicy):
        name = "long"
        selects = (Select.LARGEST,) * count

        def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
            return mine.means

        def largest(self, budget: int, iteration: int) -> float:
            return 1.0

    if count == 255:
        require_local(Long())
        return
    with pytest.raises(ConfigError, match="long declares 256 iterations, and messages count to 255: declare fewer"):
        require_local(Long())


@pytest.mark.parametrize("name", NAMES)
def test_words_stay_below_what_is_declared(name: str) -> None:
    for race in (False, True):
        owners = owners_of(name, race=race)
        policy = owners.policy
        for t in range(4, 60):
            for iteration in range(1, policy.iterations + 1):
                words = owners.words(t, iteration)
                assert all(0 <= word < 1 << policy.word_bits(60, iteration) for word in words.tolist())
                owners.told(np.eye(3, dtype=np.int64)[t % 3], t, iteration)


def test_words_are_the_formulas() -> None:
    owners = owners_of("ucb")
    n, s = owners.pulls.copy(), owners.sums.copy()
    assert n.tolist() == [1, 1, 1] and s.tolist() == [1, 1, 1]
    words = owners.words(9, 1).tolist()
    assert words == [round((1.0 + math.sqrt(2.0 * math.log(9))) * 2**SCORE_BITS)] * 3
    assert owners_of("epsilon-greedy").words(9, 1, 20).tolist() == [1 << 20] * 3
    assert owners_of("softmax").words(9, 1).tolist() == [1 << math.ceil(math.log2(math.e) / 0.06) + 40] * 3
    race = owners_of("softmax", race=True)
    gumbel = [np.random.default_rng([1, i]).gumbel() for i in range(3)]
    assert race.words(9, 1).tolist() == [round((1 / 0.06 + g) * 2**40) + (4 << 40) for g in gumbel]


def test_a_race_is_not_negative_and_not_too_large() -> None:
    smallest, largest = -math.log(-math.log(2.0**-53)), -math.log(-math.log1p(-(2.0**-53)))
    assert smallest + SoftmaxRace.lift > 0 and largest < 37
    assert SoftmaxRace(0.001).word_bits(10, 1) <= 52


def test_pursuit_moves_by_its_own_bit() -> None:
    owners = owners_of("pursuit")
    owners.told(np.array([0, 1, 0]), 4, 1)
    assert np.allclose(owners.mine.own["chance"], [0.3, 0.4, 0.3])
    assert owners.pulls.tolist() == [1, 1, 1]
    owners.told(np.array([0, 0, 1]), 4, 2)
    assert owners.pulls.tolist() == [1, 1, 2] and owners.steps == [[1], [2], [3, 4]]
    assert np.allclose(owners.mine.own["chance"], [0.3, 0.4, 0.3])


@pytest.mark.parametrize("name", NAMES)
def test_state_goes_on(name: str) -> None:
    owners, other = owners_of(name), owners_of(name)
    for t in range(4, 20):
        for iteration in range(1, owners.policy.iterations + 1):
            owners.told(np.eye(3, dtype=np.int64)[t * t % 3], t, iteration)
    other.restore(owners.state())
    assert other.steps == owners.steps and other.sums.tolist() == owners.sums.tolist()
    for iteration in range(1, owners.policy.iterations + 1):
        assert owners.words(20, iteration).tolist() == other.words(20, iteration).tolist()


def test_foreign_state_is_refused() -> None:
    state = owners_of("ucb").state()
    with pytest.raises(ConfigError, match="of other owners or of another policy"):
        owners_of("pursuit").restore(state)
    with pytest.raises(ConfigError, match="of other owners or of another policy"):
        owners_of("ucb", 2).restore(state)
    with pytest.raises(Desync, match="does not fit together"):
        owners_of("ucb").restore({**state, "pulls": state["pulls"] + 1})


def test_rewards_are_zero_or_one() -> None:
    owners = Owners(local_policy("ucb"), [4], 9, noise=[np.random.default_rng(1)], pay=lambda *_: 2)
    with pytest.raises(RangeError, match="owner 4's arm paid no 0 or 1 at step 5"):
        owners.first_pulls()
    with pytest.raises(ConfigError, match="2 owners with 1 streams of noise"):
        Owners(local_policy("ucb"), [4, 5], 9, noise=[np.random.default_rng(1)], pay=lambda *_: 1)


@pytest.mark.parametrize("paid", [0.5, -1.0, 2.0])
def test_what_the_world_pays_is_zero_or_one(paid: float) -> None:
    world = World()
    world.told.append(np.array(paid))
    with pytest.raises(RangeError, match="owner 4's arm paid no 0 or 1 at step 5"):
        paid_by([4], None, MemoryDesk(world))(4, 5)
